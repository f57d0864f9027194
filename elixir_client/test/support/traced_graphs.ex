defmodule Nutkin.Test.TracedGraphs do
  @moduledoc false
  # The graphs in tests/nx_expr_golden, which Nx traced, and what it computed with them. They are read without Nx.

  alias Nutkin.Tensor
  alias Nutkin.Test.JSON

  @folder Path.expand("../../../tests/nx_expr_golden", __DIR__)

  @doc "Their names."
  def names do
    for file <- Path.wildcard(Path.join(@folder, "*.nxg.etf")), do: Path.basename(file, ".nxg.etf")
  end

  @doc "The graph of a name, as Nx would give it: each expression is one term, however often it is used."
  def graph!(name) do
    %{format: "nxg/1", nodes: nodes, out: out} =
      @folder |> Path.join("#{name}.nxg.etf") |> File.read!() |> :erlang.binary_to_term()

    built =
      for {node, place} <- Enum.with_index(Tuple.to_list(nodes)), reduce: %{} do
        built ->
          args = if node.data.op == :tensor, do: node.data.args, else: restore(node.data.args, built)
          Map.put(built, place, put_in(node.data.args, args))
      end

    restore(out, built)
  end

  defp restore({:"$n", place}, built), do: Map.fetch!(built, place)
  defp restore([head | tail], built), do: [restore(head, built) | restore(tail, built)]

  defp restore(tuple, built) when is_tuple(tuple),
    do: tuple |> Tuple.to_list() |> restore(built) |> List.to_tuple()

  defp restore(%{} = map, built), do: map |> Map.to_list() |> Map.new(fn {k, v} -> {k, restore(v, built)} end)
  defp restore(other, _built), do: other

  @doc "What was recorded of it: `points`, each an `input` and an `output`, and the tolerance."
  def recorded!(name), do: @folder |> Path.join("#{name}.json") |> File.read!() |> JSON.decode!()

  @doc "The tensors of a recorded input, in the order of the parameters."
  # The struct of the recordings derives Nx.Container with its fields in reverse.
  def parameters(container), do: tensors(container, &Enum.reverse/1)

  @doc "The tensors of a recorded output, in the order of the results."
  def results(container), do: tensors(container, & &1)

  defp tensors(%{"k" => "t"} = tensor, _fields), do: [tensor(tensor)]
  defp tensors(%{"k" => "tuple", "items" => items}, fields), do: Enum.flat_map(items, &tensors(&1, fields))

  defp tensors(%{"k" => kind, "items" => items}, fields) do
    items = if kind == "struct", do: fields.(Enum.sort(items)), else: Enum.sort(items)
    Enum.flat_map(items, fn [_key, item] -> tensors(item, fields) end)
  end

  @doc "A recorded tensor: its flat shape, and its elements by their bytes."
  def tensor(%{"hex" => hex, "type" => type, "shape" => shape}) do
    Tensor.from_binary(Base.decode16!(hex, case: :lower), type, List.to_tuple(shape))
  end
end
