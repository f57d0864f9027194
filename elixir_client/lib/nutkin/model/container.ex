defmodule Nutkin.Model.Container do
  @moduledoc false
  # Several values as one term: tuples and maps, in each other too. What is neither is a value.

  @type form :: :value | {:tuple, [form()]} | {:map, [{term(), form()}]}

  @doc "The values in their order (maps by their keys), and the form that they have together."
  @spec flatten(term()) :: {[term()], form()}
  def flatten(tuple) when is_tuple(tuple) do
    {values, forms} = tuple |> Tuple.to_list() |> flatten_all()
    {values, {:tuple, forms}}
  end

  def flatten(map) when is_map(map) and not is_struct(map) do
    {keys, items} = map |> Enum.sort() |> Enum.unzip()
    {values, forms} = flatten_all(items)
    {values, {:map, Enum.zip(keys, forms)}}
  end

  def flatten(value), do: {[value], :value}

  @doc "The term of this form."
  @spec restore([term()], form()) :: term()
  def restore(values, form) do
    {term, []} = take(values, form)
    term
  end

  @doc "The number of values."
  @spec size(form()) :: non_neg_integer()
  def size(:value), do: 1
  def size({:tuple, forms}), do: forms |> Enum.map(&size/1) |> Enum.sum()
  def size({:map, forms}), do: forms |> Enum.map(fn {_key, form} -> size(form) end) |> Enum.sum()

  @doc "How a form is written."
  @spec describe(form()) :: String.t()
  def describe(:value), do: "value"
  def describe({:tuple, forms}), do: "{#{Enum.map_join(forms, ", ", &describe/1)}}"

  def describe({:map, forms}),
    do: "%{#{Enum.map_join(forms, ", ", fn {key, form} -> "#{inspect(key)} => #{describe(form)}" end)}}"

  defp flatten_all(items) do
    {values, forms} = items |> Enum.map(&flatten/1) |> Enum.unzip()
    {Enum.concat(values), forms}
  end

  defp take([value | rest], :value), do: {value, rest}

  defp take(values, {:tuple, forms}) do
    {items, rest} = Enum.map_reduce(forms, values, &take(&2, &1))
    {List.to_tuple(items), rest}
  end

  defp take(values, {:map, forms}) do
    Enum.reduce(forms, {%{}, values}, fn {key, form}, {map, values} ->
      {item, rest} = take(values, form)
      {Map.put(map, key, item), rest}
    end)
  end
end
