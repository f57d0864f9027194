defmodule Nutkin.Model.References do
  @moduledoc false
  # The references of nodes as they travel: indices of earlier nodes. Those in a body are its own.

  @lists ~w(init xs captures inputs args)
  @maps ~w(args)
  @single ~w(of value weight mask predicate start times)

  @doc "The references of a node, each as often as it has it."
  @spec of(map()) :: [non_neg_integer()]
  def of(%{"kind" => kind}) when kind in ["constant", "argument"], do: []

  def of(node) do
    lists = for field <- @lists, is_list(node[field]), reference <- node[field], do: reference
    maps = for field <- @maps, is_map(node[field]), {_name, reference} <- node[field], do: reference
    lists ++ maps ++ for(field <- @single, node[field] != nil, do: node[field])
  end

  @doc "The node with other references."
  @spec map(map(), (non_neg_integer() -> non_neg_integer())) :: map()
  def map(%{"kind" => kind} = node, _fun) when kind in ["constant", "argument"], do: node

  def map(node, fun) do
    Map.new(node, fn
      {field, list} when field in @lists and is_list(list) ->
        {field, Enum.map(list, fun)}

      {field, %{} = map} when field in @maps ->
        {field, Map.new(map, fn {name, value} -> {name, fun.(value)} end)}

      {field, reference} when field in @single and is_integer(reference) ->
        {field, fun.(reference)}

      other ->
        other
    end)
  end

  @doc "The nodes that some nodes need, and these, by themselves; and the new index of each."
  @spec closure([map()], [non_neg_integer()]) :: {[map()], %{non_neg_integer() => non_neg_integer()}}
  def closure(nodes, wanted) do
    table = List.to_tuple(nodes)
    places = wanted |> needed(table, MapSet.new()) |> Enum.sort() |> Enum.with_index() |> Map.new()
    kept = for {index, _place} <- Enum.sort(places), do: table |> elem(index) |> map(&Map.fetch!(places, &1))
    {kept, places}
  end

  defp needed(indices, table, seen) do
    Enum.reduce(indices, seen, fn index, seen ->
      if MapSet.member?(seen, index),
        do: seen,
        else: table |> elem(index) |> of() |> needed(table, MapSet.put(seen, index))
    end)
  end
end
