defmodule Nutkin.Nx.Tracing do
  @moduledoc false
  # The graph that Nx traces of a function, and what is said where it cannot.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.Node

  @compile {:no_warn_undefined, [Nx, Nx.Defn]}

  @doc "The result of a function of stand-ins for these arguments. `what` is what the function belongs to."
  @spec graph(function(), [term()], String.t()) :: term()
  def graph(fun, arguments, what) do
    loaded!()

    unless is_function(fun, length(arguments)) do
      raise InvalidModel,
        message: "the function of #{what} has another number of parameters than it is given arguments",
        node: what,
        expected: "#{length(arguments)}",
        found: "#{:erlang.fun_info(fun)[:arity]}"
    end

    guarded(fun, what, fn -> Nx.Defn.debug_expr_apply(fun, arguments) end)
  end

  @doc "What the tracing of a function gives, which raises `Nutkin.Error.InvalidModel` for tensors that are elsewhere."
  @spec guarded(function(), String.t(), (() -> graph)) :: graph when graph: term()
  def guarded(fun, what, trace) do
    trace.()
  rescue
    error in Protocol.UndefinedError ->
      if error.protocol in [Nx.Container, Nx.LazyContainer],
        do: reraise(no_container(error, what), __STACKTRACE__),
        else: reraise(error, __STACKTRACE__)

    error ->
      case elsewhere(Exception.message(error)) do
        nil -> reraise error, __STACKTRACE__
        backend -> reraise captured(fun, backend, what), __STACKTRACE__
      end
  end

  @doc "Raises where Nx is not loaded."
  @spec loaded!() :: :ok
  def loaded! do
    unless Code.ensure_loaded?(Nx.Defn) do
      raise InvalidModel,
        message: "a function over Nx needs Nx, which is not loaded",
        hint:
          "add {:nx, \"~> 0.9\"} to the deps of your mix.exs, or use the operations of Nutkin.Model.Language"
    end

    :ok
  end

  defp no_container(%Protocol.UndefinedError{value: %Node{}} = error, _what), do: Node.explained(error)

  defp no_container(%Protocol.UndefinedError{value: value}, what) do
    InvalidModel.exception(
      message: "the function of #{what} takes or gives what is no tensor",
      node: what,
      expected: "tensors and numbers, alone or in tuples and maps",
      found: inspect(value, limit: 3, printable_limit: 50)
    )
  end

  # The backend that Nx names where a tensor meets a stand-in, or is to become one, and is not on the host.
  defp elsewhere(message) do
    if message =~ "incompatible tensor implementations" or message =~ "cannot convert tensor allocated on" do
      ~r/[A-Z]\w*(?:\.[A-Z]\w*)+/
      |> Regex.scan(message)
      |> List.flatten()
      |> Enum.find("another backend", &(&1 not in ["Nx.Defn.Expr", "Nx.BinaryBackend", "Nx.Tensor"]))
    end
  end

  defp captured(fun, backend, what) do
    found =
      case foreign(:erlang.fun_info(fun)[:env]) do
        [] -> "a tensor on #{backend}"
        tensors -> Enum.map_join(tensors, ", ", &describe/1)
      end

    InvalidModel.exception(
      message: "the function of #{what} holds a tensor that is not on the host, so that Nx cannot trace it",
      node: what,
      expected: "tensors on Nx.BinaryBackend",
      found: found,
      hint:
        "copy it before the function captures it: t = Nx.backend_copy(t, Nx.BinaryBackend); or give it as an argument, " <>
          "fun.(params, data), where any backend will do"
    )
  end

  # The tensors that a function has captured, and that are elsewhere.
  defp foreign(%{__struct__: Nx.Tensor, data: %{__struct__: backend}} = tensor)
       when backend not in [Nx.BinaryBackend, Nx.Defn.Expr],
       do: [tensor]

  defp foreign(%{__struct__: Nx.Tensor}), do: []
  defp foreign(list) when is_list(list), do: Enum.flat_map(list, &foreign/1)
  defp foreign(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> foreign()
  defp foreign(%{} = map), do: map |> Map.values() |> foreign()
  defp foreign(fun) when is_function(fun), do: fun |> :erlang.fun_info() |> Keyword.get(:env, []) |> foreign()
  defp foreign(_other), do: []

  defp describe(%{type: {kind, bits}, shape: shape, data: %{__struct__: backend}}) do
    "#{kind}#{bits} #{inspect(shape)} on #{inspect(backend)}"
  end
end
