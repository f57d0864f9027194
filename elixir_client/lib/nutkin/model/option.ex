defmodule Nutkin.Model.Option do
  @moduledoc false
  # The options of statements, distributions and operations: checked where the model is written, given as the wire has
  # them.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Tensor.Type

  @type kind ::
          :boolean | :axis | :axes | :sizes | :positions | :shape | :open_shape | :type | {:one_of, [atom()]}

  @doc "The options given, as a map with string keys. `owner` is what they belong to, in words."
  @spec to_wire!(term(), keyword(kind()), String.t()) :: %{String.t() => term()}
  def to_wire!(opts, kinds, owner) do
    unless Keyword.keyword?(opts) do
      raise InvalidModel,
        message: "the options of #{owner} are no keyword list",
        expected: allowed(kinds),
        found: inspect(opts, limit: 5)
    end

    for {name, value} <- opts, into: %{} do
      {Atom.to_string(name), check!(fetch!(kinds, name, owner), value, name, owner)}
    end
  end

  defp fetch!(kinds, name, owner) do
    with nil <- kinds[name] do
      raise InvalidModel, message: "#{owner} has no option #{inspect(name)}", expected: allowed(kinds)
    end
  end

  defp allowed([]), do: "no options"
  defp allowed(kinds), do: Enum.map_join(kinds, ", ", fn {name, _kind} -> inspect(name) end)

  defp check!(kind, value, name, owner) do
    case cast(kind, value) do
      {:ok, value} ->
        value

      :error ->
        raise InvalidModel,
          message: "invalid #{inspect(name)} of #{owner}",
          expected: describe(kind),
          found: inspect(value, limit: 5)
    end
  end

  defp cast(:boolean, value) when is_boolean(value), do: {:ok, value}
  defp cast(:axis, value) when is_integer(value), do: {:ok, value}
  defp cast(:axes, value) when is_integer(value), do: {:ok, [value]}
  defp cast(:axes, value), do: list_of(value, &is_integer/1)
  defp cast(:sizes, value), do: list_of(value, &(is_integer(&1) and &1 > 0))
  defp cast(:positions, value), do: list_of(value, &(is_integer(&1) and &1 >= 0))
  defp cast(:shape, value) when is_tuple(value), do: cast(:sizes, Tuple.to_list(value))

  defp cast(:open_shape, value) when is_tuple(value),
    do: list_of(Tuple.to_list(value), &(&1 == nil or (is_integer(&1) and &1 > 0)))

  defp cast(:type, value) do
    with {:ok, type} <- Type.fetch(value), do: {:ok, Type.name(type)}
  end

  defp cast({:one_of, allowed}, value) when is_atom(value) do
    if value in allowed, do: {:ok, Atom.to_string(value)}, else: :error
  end

  defp cast(_kind, _value), do: :error

  defp list_of(list, good?) do
    if is_list(list) and Enum.all?(list, good?), do: {:ok, list}, else: :error
  end

  defp describe(:boolean), do: "true or false"
  defp describe(:axis), do: "an axis, such as 0 or -1"
  defp describe(:axes), do: "an axis, or a list of axes"
  defp describe(:sizes), do: "a list of positive integers, one for each axis"
  defp describe(:positions), do: "a list of non-negative integers, one for each axis"
  defp describe(:shape), do: "a tuple of positive integers, such as {8} or {3, 2}"
  defp describe(:open_shape), do: "a tuple of positive integers, nil where a size is free, such as {nil, 2}"
  defp describe(:type), do: "a type, such as {:f, 64} or :f64"
  defp describe({:one_of, allowed}), do: "one of #{Enum.map_join(allowed, ", ", &inspect/1)}"
end
