defmodule Nutkin.Nx.Containers do
  @moduledoc false
  # Containers of tensors as Nx has them: those that a function takes, and those that it gives.

  import Nutkin.Nx.Expression, only: [is_expression: 1]

  alias Nutkin.Nx.Expression
  alias Nutkin.Tensor

  @compile {:no_warn_undefined, [Nx, Nx.Defn.Composite]}

  @doc "The tensors and numbers of arguments, in the order of the parameters of a function that is traced with them."
  @spec tensors([term()]) :: [Tensor.source()]
  def tensors(arguments), do: Nx.Defn.Composite.flatten_list(arguments)

  @doc "The types and the flat shapes of arguments."
  @spec forms([term()]) :: [{type :: String.t(), shape :: [pos_integer()]}]
  def forms(arguments) do
    for tensor <- tensors(arguments) do
      tensor = Nx.to_tensor(tensor)
      {Expression.type(tensor), Expression.flat_shape(tensor)}
    end
  end

  @doc "The container of a graph, with the form of each tensor in its place, which holds nothing of the graph."
  @spec results(term()) :: term()
  def results(graph) do
    {results, nil} = traverse(graph, nil, fn t, nil -> {form(t), nil} end)
    results
  end

  @doc "The container of these forms, of tensors in their order."
  @spec restore(term(), [Tensor.t()]) :: term()
  def restore(results, tensors) do
    {container, []} = traverse(results, tensors, fn form, [tensor | rest] -> {tensor(form, tensor), rest} end)
    container
  end

  defp form(t), do: {__MODULE__, Map.take(t, [:shape, :names, :vectorized_axes])}

  defp tensor({__MODULE__, %{shape: shape, names: names, vectorized_axes: axes}}, tensor) do
    sizes = Enum.map(axes, &elem(&1, 1)) ++ Tuple.to_list(shape)
    all = Enum.map(axes, fn _ -> nil end) ++ names
    elements = Nx.from_binary(Tensor.bits(tensor), tensor.type, backend: Nx.BinaryBackend)
    tensor = Nx.reshape(elements, List.to_tuple(sizes), names: all)
    if axes == [], do: tensor, else: Nx.vectorize(tensor, axes)
  end

  # In the order of `Nutkin.Nx.Expression.leaves/1`.
  defp traverse(leaf, acc, fun) when is_expression(leaf), do: fun.(leaf, acc)
  defp traverse({__MODULE__, _form} = leaf, acc, fun), do: fun.(leaf, acc)

  defp traverse(tuple, acc, fun) when is_tuple(tuple) do
    {items, acc} = tuple |> Tuple.to_list() |> Enum.map_reduce(acc, &traverse(&1, &2, fun))
    {List.to_tuple(items), acc}
  end

  defp traverse(%{} = map, acc, fun) do
    map
    |> Map.delete(:__struct__)
    |> Enum.sort()
    |> Enum.reduce({map, acc}, fn {key, value}, {map, acc} ->
      {value, acc} = traverse(value, acc, fun)
      {Map.put(map, key, value), acc}
    end)
  end

  defp traverse(other, acc, _fun), do: {other, acc}
end
