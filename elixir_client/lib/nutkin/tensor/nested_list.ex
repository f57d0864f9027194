defmodule Nutkin.Tensor.NestedList do
  @moduledoc false
  # Numbers, lists of lists of them, and ranges, as the elements of a tensor.

  alias Nutkin.Tensor

  @non_finite [:nan, :infinity, :neg_infinity]

  @doc """
  The shape and the elements in order. The shape is that of the first elements, every other place is held against it.
  Throws `{:invalid, fields}` with the fields of an error where they do not fit.
  """
  @spec flatten(term()) :: {[non_neg_integer()], [number() | :nan | :infinity | :neg_infinity]}
  def flatten(value) do
    shape = first_shape(value, [])
    {shape, Enum.reverse(collect(value, shape, [], []))}
  end

  defp first_shape([first | _] = list, path), do: [count(list, path) | first_shape(first, [0 | path])]
  defp first_shape(%Range{} = range, path), do: first_shape(Enum.to_list(range), path)

  defp first_shape([], path) do
    throw({:invalid, message: "an empty list", path: path(path), hint: "a tensor has at least one element"})
  end

  defp first_shape(_other, _path), do: []

  defp count(list, path) do
    if List.improper?(list) do
      throw({:invalid, message: "an improper list", path: path(path), expected: "a list that ends in []"})
    end

    length(list)
  end

  defp collect(%Range{} = range, shape, path, done), do: collect(Enum.to_list(range), shape, path, done)

  defp collect(list, [size | shape], path, done) when is_list(list) do
    count = count(list, path)

    if count != size do
      first = path(List.duplicate(0, length(path)))
      expected = "#{size} elements, as in #{first}"

      throw(
        {:invalid,
         message: "lists of unequal lengths", path: path(path), expected: expected, found: "#{count}"}
      )
    end

    list
    |> Enum.with_index()
    |> Enum.reduce(done, fn {value, index}, done -> collect(value, shape, [index | path], done) end)
  end

  defp collect(number, [], _path, done) when is_number(number) or number in @non_finite, do: [number | done]

  defp collect(list, [], path, _done) when is_list(list) do
    throw(
      {:invalid, message: "lists of unequal depth", path: path(path), expected: "a number", found: "a list"}
    )
  end

  defp collect(number, [size | _], path, _done) when is_number(number) or number in @non_finite do
    expected = "a list of #{size} elements"

    throw(
      {:invalid,
       message: "lists of unequal depth", path: path(path), expected: expected, found: inspect(number)}
    )
  end

  defp collect(%module{}, _shape, path, _done) when module in [Tensor, Nx.Tensor] and path != [] do
    throw(
      {:invalid,
       message: "a tensor inside a list", path: path(path), hint: "join tensors with stack/1 or concatenate/1"}
    )
  end

  defp collect(other, _shape, path, _done) do
    expected = "a number, a list, a range, a Nutkin.Tensor or an Nx.Tensor"

    throw(
      {:invalid,
       message: "not a number",
       path: path(path),
       expected: expected,
       found: inspect(other, limit: 5),
       hint: hint(other)}
    )
  end

  defp hint(nil), do: "a missing value can be any number that a mask leaves out"
  defp hint(boolean) when is_boolean(boolean), do: "write 1 for true and 0 for false"
  defp hint(_other), do: nil

  @doc "The place that these indices name, the innermost of which is first; nil for the whole."
  @spec path([non_neg_integer()]) :: String.t() | nil
  def path([]), do: nil
  def path(indices), do: indices |> Enum.reverse() |> Enum.map_join(&"[#{&1}]")
end
