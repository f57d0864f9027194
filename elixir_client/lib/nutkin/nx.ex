defmodule Nutkin.Nx do
  @moduledoc """
  Functions over Nx, computed by a worker: in models, and by themselves.

  Nx traces a function: it runs once, with stand-ins for its arguments, and what it does with them is written down as a
  graph. The graph is plain data, which goes to the worker as a model does, where XLA compiles it.

      function = Nutkin.Nx.trace(fn p, d -> Nx.sum(Nx.multiply(p.slope, d.x)) end, [
        %{slope: Nx.template({}, :f64)},
        %{x: Nx.template({1000}, :f64)}
      ])

      {:ok, sum} = Nutkin.Nx.call(function, [%{slope: 1.5}, %{x: x}])

  In a model such a function is `Nutkin.Model.Language.factor/2` or `Nutkin.Model.Language.nx/3`; `Nutkin.Defn` is a compiler
  for `Nx.Defn.jit/2`.

  ## Data are arguments

  A tensor that a function captures is part of the graph, and has to be on the host: one that is elsewhere, such as on
  `EXLA.Backend`, cannot be traced. Tensors that are given as arguments may be anywhere, and new ones compile nothing.

  ## Elixir decides while the function is traced

  `if`, `case` and `cond` see stand-ins, as in a model; inside `defn` they are those of Nx. `Nx.runtime_call` is refused,
  since the worker cannot call back; hooks and `print_value` are left out.

  ## Types

  `call/3` and `Nutkin.Defn` have Nx's types and its rules for them. In a model floats have the precision of the model:
  numbers that are written in the function are exact, where Nx would round them to f32, and integers that become floats do
  so in that precision. Indices beyond an axis are moved to its ends.
  """

  alias Nutkin.Nx.{Containers, Function, Tracing}

  @doc """
  Traces a function of containers of tensors: numbers, tensors or `Nx.template/2`, of which only types and shapes count.

  Raises `Nutkin.Error.InvalidModel` where it cannot be traced, or holds what the worker has no operation for; what the
  function raises itself passes through.
  """
  @spec trace(function(), [term()]) :: Function.t()
  def trace(fun, arguments) when is_function(fun) and is_list(arguments) do
    graph = Tracing.graph(fun, arguments, "Nutkin.Nx.trace")
    Function.new(graph, Containers.forms(arguments))
  end

  @doc """
  What a traced function makes of tensors: its result, with `Nx.Tensor` in it.

  Options: `:worker`, the name of one, `Nutkin` by default; `:timeout` in milliseconds, `:infinity` by default.
  """
  @spec call(Function.t(), [term()], keyword()) :: {:ok, term()} | {:error, Nutkin.Error.t()}
  def call(%Function{} = function, arguments, opts \\ []) when is_list(arguments) do
    opts = Keyword.validate!(opts, worker: Nutkin, timeout: :infinity)

    with {:ok, tensors} <-
           Function.call(function, Containers.tensors(arguments), opts[:worker], opts[:timeout]) do
      {:ok, Containers.restore(function.container, tensors)}
    end
  end
end
