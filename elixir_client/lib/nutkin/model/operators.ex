defmodule Nutkin.Model.Operators do
  @moduledoc """
  The operators and functions of `Kernel` that models have too.

  Where an operand is a node or a tensor, they make an operation of the model, as in Nx: `x < y` is a node of zeros and
  ones. Between plain numbers, in guards and in patterns they are those of `Kernel`, as everywhere outside the block.

  What decides in Elixir (`unless`, `&&`, `||`, `!`, `and`, `or`, `not`, `===`, `!==`, `in`) decides while the model
  is written, when nodes have no value yet: there a node is refused with a `Nutkin.Error.InvalidModel` that says what to
  use instead. Only `if` takes a node, a scalar: then both sides are written down, and the model runs the one that its
  value asks for.
  """

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Control, Distribution, Node}
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

  # Name, arity, how many operands (from the left) decide, what a model has instead. The right side of `and`, `or`, `&&`
  # and `||` is their value, not what they decide on: it may be a node.
  @decisions [
    {:unless, 2, 1, "select(predicate, on_true, on_false)"},
    {:&&, 2, 1, "logical_and(left, right)"},
    {:||, 2, 1, "logical_or(left, right)"},
    {:!, 1, 1, "logical_not(x)"},
    {:and, 2, 1, "logical_and(left, right)"},
    {:or, 2, 1, "logical_or(left, right)"},
    {:not, 1, 1, "logical_not(x)"},
    {:===, 2, 2, "left == right"},
    {:!==, 2, 2, "left != right"},
    {:in, 2, 2, "logical_and(x >= first, x <= last)"}
  ]

  @doc """
  `Kernel.if/2`; by a node it is a choice that the model makes: of a scalar, between values of one form.
  """
  defmacro if(condition, do: on_true), do: choice(condition, on_true, nil)
  defmacro if(condition, do: on_true, else: on_false), do: choice(condition, on_true, on_false)

  # The condition first: both sides see what is bound in it.
  defp choice(condition, on_true, on_false) do
    quote do
      decided = unquote(condition)
      Nutkin.Model.Operators.choose(decided, fn -> unquote(on_true) end, fn -> unquote(on_false) end)
    end
  end

  for {name, arity, op} <- @table do
    args = Enum.take([quote(do: left), quote(do: right)], -arity)

    @doc "The operation `#{op}` for nodes, else `Kernel.#{name}/#{arity}`."
    defmacro unquote(name)(unquote_splicing(args)) do
      expand(__CALLER__.context, unquote(name), unquote(op), unquote(args))
    end
  end

  for {name, arity, deciding, instead} <- @decisions do
    args = Enum.take([quote(do: left), quote(do: right)], -arity)

    @doc "`Kernel.#{name}/#{arity}`, which refuses nodes: in a model it is `#{instead}`."
    defmacro unquote(name)(unquote_splicing(args)) do
      decide(__CALLER__.context, unquote(name), unquote(deciding), unquote(instead), unquote(args))
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

  defp decide(nil, name, deciding, instead, args) do
    {operands, rest} = Enum.split(args, deciding)

    known =
      for arg <- operands,
          do: quote(do: Nutkin.Model.Operators.known!(unquote(arg), unquote(name), unquote(instead)))

    quote do: Kernel.unquote(name)(unquote_splicing(known ++ rest))
  end

  defp decide(_guard_or_match, name, _deciding, _instead, args) do
    quote do: Kernel.unquote(name)(unquote_splicing(args))
  end

  @doc false
  # What of Kernel this module has instead.
  @spec kernel_names() :: [{atom(), arity()}]
  def kernel_names do
    [if: 2] ++
      for({name, arity, _op} <- @table, do: {name, arity}) ++
      for {name, arity, _deciding, _instead} <- @decisions, do: {name, arity}
  end

  @doc false
  # The operand of a decision, which must be known while the model is written.
  @spec known!(term(), atom(), String.t()) :: term()
  def known!(%Node{} = node, name, instead) do
    raise InvalidModel,
      message: "`#{name}` decides while the model is written, when a node has no value yet",
      node: node.name,
      hint: "in a model it is `#{instead}`"
  end

  def known!(list, name, instead) when is_list(list) do
    # The elements that `in` and `===` compare with.
    case List.improper?(list) do
      true -> list
      false -> Enum.map(list, &known!(&1, name, instead))
    end
  end

  def known!(value, _name, _instead), do: value

  @doc false
  @spec choose(term(), (() -> term()), (() -> term())) :: term()
  def choose(%Node{} = node, on_true, on_false) do
    node |> Builder.node("what `if` decides by") |> Control.choose(on_true, on_false)
  end

  def choose(nil, _on_true, on_false), do: on_false.()
  def choose(false, _on_true, on_false), do: on_false.()
  def choose(_else, on_true, _on_false), do: on_true.()

  @doc false
  @spec apply(atom(), atom(), [term()]) :: term()
  def apply(name, op, args) do
    case Enum.any?(args, &symbolic?/1) do
      true -> Builder.call(Atom.to_string(op), operands(name, args), %{})
      false -> Kernel.apply(Kernel, name, args)
    end
  end

  # Errors call them as they are written.
  defp operands(name, args) do
    for {arg, place} <- Enum.with_index(args, 1), do: Builder.node(arg, "argument #{place} of #{name}")
  end

  # A distribution is no value, but the builder says so better than Kernel.
  defp symbolic?(%module{}), do: Enum.member?([Node, Tensor, Distribution, Nx.Tensor], module)
  defp symbolic?(_other), do: false
end
