defmodule Nutkin.Model.Operators do
  @moduledoc """
  The operators and functions of `Kernel` that models have too.

  Where an operand is a node or a tensor, they make an operation of the model, as in Nx: `x < y` is a node of zeros and
  ones. Between plain numbers, in guards and in patterns they are those of `Kernel`, as everywhere outside the block.
  `and`, `or`, `not`, `if` and `cond` stay Elixir's, and decide while the model is written, not while it runs: in a model
  it is `logical_and/2` and `select/3`.
  """

  alias Nutkin.Model.{Builder, Distribution, Node}
  alias Nutkin.Tensor

  @table [
    {:+, 2, :add},
    {:-, 2, :subtract},
    {:*, 2, :multiply},
    {:/, 2, :divide},
    {:**, 2, :pow},
    {:-, 1, :negate},
    {:==, 2, :equal},
    {:!=, 2, :not_equal},
    {:<, 2, :less},
    {:<=, 2, :less_equal},
    {:>, 2, :greater},
    {:>=, 2, :greater_equal},
    {:max, 2, :max},
    {:min, 2, :min},
    {:rem, 2, :remainder},
    {:div, 2, :quotient},
    {:abs, 1, :abs},
    {:floor, 1, :floor},
    {:ceil, 1, :ceil},
    {:round, 1, :round}
  ]

  for {name, arity, op} <- @table do
    args = Enum.take([quote(do: left), quote(do: right)], -arity)

    @doc "The operation `#{op}` for nodes, else `Kernel.#{name}/#{arity}`."
    defmacro unquote(name)(unquote_splicing(args)) do
      expand(__CALLER__.context, unquote(name), unquote(op), unquote(args))
    end
  end

  # A negative literal is a number, also in patterns.
  defp expand(_context, :-, :negate, [number]) when is_number(number), do: Kernel.-(number)

  defp expand(nil, name, op, args) do
    quote do: Nutkin.Model.Operators.apply(unquote(name), unquote(op), unquote(args))
  end

  defp expand(_guard_or_match, name, _op, args) do
    quote do: Kernel.unquote(name)(unquote_splicing(args))
  end

  @doc false
  @spec kernel_names() :: [{atom(), arity()}]
  def kernel_names, do: for({name, arity, _op} <- @table, do: {name, arity})

  @doc false
  @spec operations() :: [atom()]
  def operations, do: for({_name, _arity, op} <- @table, do: op)

  @doc false
  @spec apply(atom(), atom(), [term()]) :: term()
  def apply(name, op, args) do
    if Enum.any?(args, &symbolic?/1) do
      Builder.call(Atom.to_string(op), args, %{})
    else
      Kernel.apply(Kernel, name, args)
    end
  end

  # A distribution is no value, but the builder says so better than Kernel.
  defp symbolic?(%module{}), do: module in [Node, Tensor, Distribution, Nx.Tensor]
  defp symbolic?(_other), do: false
end
