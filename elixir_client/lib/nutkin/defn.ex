defmodule Nutkin.Defn do
  @moduledoc """
  A compiler for `Nx.Defn`: numerical functions, computed by XLA in a worker, where EXLA does not build or is not wanted in
  the VM.

      Nx.Defn.jit(&MyModel.step/2, compiler: Nutkin.Defn).(x, y)

      step = Nx.Defn.compile(&MyModel.step/2, [Nx.template({100}, :f64), Nx.template({100}, :f64)], compiler: Nutkin.Defn)

  or for all: `Nx.Defn.default_options(compiler: Nutkin.Defn)`. Options, besides those of Nx: `:worker`, the name of one,
  `Nutkin` by default, and `:timeout` in milliseconds, `:infinity` by default.

  A function is compiled once for the shapes and types of its arguments, by the worker, which keeps what it compiled;
  `Nx.Defn.compile/3` also traces it only once. Arguments may be on any backend; results are on `Nx.BinaryBackend`. Each call
  sends its arguments to the worker and gets its results back, which takes about a millisecond and some for each
  megabyte: it pays for what computes longer than that. An error of the worker is raised, see `Nutkin.Error`.

  Types and results are those of `Nx.BinaryBackend`, but where that raises (a division by zero, a matrix that is not positive
  definite) there is an infinity or NaN. Hooks are not run. `Nx.runtime_call` and streams are refused.
  """

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Nx.{Containers, Function, Tracing}

  @compile {:no_warn_undefined, Nx}

  @doc false
  def __jit__(key, vars, fun, args_list, opts), do: __compile__(key, vars, fun, opts).(args_list)

  @doc false
  def __compile__(key, vars, fun, opts) do
    graph = Tracing.guarded(key, "Nx.Defn", fn -> fun.(vars) end)
    function = Function.new(graph, Containers.forms(vars))
    worker = Keyword.get(opts, :worker, Nutkin)
    timeout = Keyword.get(opts, :timeout, :infinity)

    fn args_list ->
      for args <- args_list do
        tensors = for arg <- args, do: if(is_function(arg, 0), do: arg.(), else: arg)

        case Function.call(function, tensors, worker, timeout) do
          {:ok, results} -> Containers.restore(function.container, results)
          {:error, error} -> raise error
        end
      end
    end
  end

  @doc false
  def __partitions_options__(opts), do: List.duplicate(opts, Keyword.get(opts, :max_concurrency, 1))

  @doc false
  def __to_backend__(_opts), do: {Nx.BinaryBackend, []}

  @doc false
  def __stream__(_key, _input, _acc, _vars, _fun, _args_list, _opts) do
    raise InvalidModel,
      message: "Nutkin.Defn has no streams",
      hint: "call the function for each item of the stream"
  end

  @doc false
  def __shard_jit__(_key, _mesh, _vars, _fun, _args_list, _opts) do
    raise InvalidModel, message: "Nutkin.Defn does not spread a function over devices"
  end
end
