defmodule Nutkin.Model.Option do
  @moduledoc false
  # The options of statements, distributions and operations: checked where the model is written, given as the wire has
  # them.

  alias Nutkin.Error.{InvalidModel, Suggestion}
  alias Nutkin.Tensor.Type

  @type kind ::
          :boolean
          | :count
          | :integer
          | :name
          | :number
          | :tolerance
          | :axis
          | :axes
          | :sizes
          | :per_axis
          | :positions
          | :shape
          | :matrix_shape
          | :open_shape
          | :padding
          | :padding_config
          | :type
          | {:one_of, [atom()]}
          | {:number_or, [atom()]}
          | {:boolean_or, [atom()]}

  # Those that travel.
  @integers -0x8000000000000000..0x7FFFFFFFFFFFFFFF

  @doc "The options given, as a map with string keys. `owner` is what they belong to, in words."
  @spec to_wire!(term(), keyword(kind()), String.t()) :: %{String.t() => term()}
  def to_wire!(opts, kinds, owner) do
    for {name, value} <- check_names!(opts, Keyword.keys(kinds), owner), into: %{} do
      {Atom.to_string(name), check!(kinds[name], value, name, owner)}
    end
  end

  @doc "The options themselves, which are a keyword list of no other names than those allowed."
  @spec check_names!(term(), [atom()], String.t()) :: keyword()
  def check_names!(opts, allowed, owner) do
    expected = if allowed == [], do: "no options", else: Enum.map_join(allowed, ", ", &inspect/1)

    unless Keyword.keyword?(opts) do
      raise InvalidModel,
        message: "the options of #{owner} are no keyword list",
        expected: expected,
        found: inspect(opts, limit: 5)
    end

    names = Keyword.keys(opts)

    if name = Enum.find(names, &(&1 not in allowed)) do
      raise InvalidModel,
        message: "#{owner} has no option #{inspect(name)}",
        expected: expected,
        hint: Suggestion.closest(name, allowed)
    end

    if name = List.first(names -- Enum.uniq(names)) do
      raise InvalidModel, message: "#{owner} has the option #{inspect(name)} twice"
    end

    opts
  end

  @doc "The options of these names, and the others, of a keyword list."
  @spec split!(term(), [atom()], String.t()) :: {keyword(), keyword()}
  def split!(opts, names, owner) do
    unless Keyword.keyword?(opts), do: check_names!(opts, names, owner)
    {mine, others} = Keyword.split(opts, names)
    {check_names!(mine, names, owner), others}
  end

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
  defp cast(:count, value) when value in @integers and value > 0, do: {:ok, value}
  defp cast(:tolerance, value) when is_number(value) and value > 0, do: {:ok, value / 1}
  defp cast(:integer, value) when value in @integers, do: {:ok, value}
  defp cast(:number, value) when is_float(value) or value in @integers, do: {:ok, value}

  defp cast(:name, value) when is_atom(value) and value not in [nil, true, false],
    do: cast(:name, Atom.to_string(value))

  defp cast(:name, value) when is_binary(value) do
    if value != "" and String.valid?(value), do: {:ok, value}, else: :error
  end

  defp cast(:axis, value) when value in @integers, do: {:ok, value}
  defp cast(:axes, value) when value in @integers, do: {:ok, [value]}
  defp cast(:axes, value), do: list_of(value, &(&1 in @integers))
  defp cast(:per_axis, value) when value in @integers and value > 0, do: {:ok, value}
  defp cast(:per_axis, value), do: cast(:sizes, value)
  defp cast(:sizes, value), do: list_of(value, &(&1 in @integers and &1 > 0))
  defp cast(:positions, value), do: list_of(value, &(&1 in @integers and &1 >= 0))
  defp cast(:shape, value) when is_tuple(value), do: cast(:sizes, Tuple.to_list(value))

  defp cast(:matrix_shape, size) when size in @integers and size > 0, do: {:ok, [size, size]}
  defp cast(:matrix_shape, {_, _} = value), do: cast(:shape, value)
  defp cast(:matrix_shape, value) when tuple_size(value) > 2, do: cast(:shape, value)

  defp cast(:padding, value) when value in [:valid, :same], do: {:ok, Atom.to_string(value)}
  defp cast(:padding, value), do: rows_of(value, 2)
  defp cast(:padding_config, value), do: rows_of(value, 3)

  defp cast(:open_shape, value) when is_tuple(value),
    do: list_of(Tuple.to_list(value), &(&1 == nil or (&1 in @integers and &1 > 0)))

  defp cast(:type, value) do
    with {:ok, type} <- Type.fetch(value), do: {:ok, Type.name(type)}
  end

  defp cast({:one_of, allowed}, value) when is_atom(value) do
    if value in allowed, do: {:ok, Atom.to_string(value)}, else: :error
  end

  defp cast({:number_or, allowed}, value) when is_atom(value), do: cast({:one_of, allowed}, value)
  defp cast({:number_or, _allowed}, value), do: cast(:number, value)

  defp cast({:boolean_or, _allowed}, value) when is_boolean(value), do: {:ok, value}
  defp cast({:boolean_or, allowed}, value), do: cast({:one_of, allowed}, value)

  defp cast(_kind, _value), do: :error

  # Tuples of so many integers, as lists.
  defp rows_of(list, size) do
    row? =
      &(is_tuple(&1) and tuple_size(&1) == size and Enum.all?(Tuple.to_list(&1), fn x -> x in @integers end))

    with {:ok, rows} <- list_of(list, row?), do: {:ok, Enum.map(rows, &Tuple.to_list/1)}
  end

  defp list_of(list, good?) do
    if is_list(list) and Enum.all?(list, good?), do: {:ok, list}, else: :error
  end

  defp describe(:boolean), do: "true or false"
  defp describe(:count), do: "a positive integer"
  defp describe(:tolerance), do: "a positive number, such as 1.0e-6"
  defp describe(:integer), do: "an integer"
  defp describe(:name), do: "an atom or a string"
  defp describe(:number), do: "a number"
  defp describe(:per_axis), do: "a positive integer, or a list of one for each axis"
  defp describe(:matrix_shape), do: "a number of rows, or a tuple of two or more sizes, such as {3, 3}"
  defp describe(:padding), do: ":valid, :same, or a {low, high} for each axis"
  defp describe(:padding_config), do: "a {low, high, interior} for each axis"
  defp describe(:axis), do: "an axis, such as 0 or -1"
  defp describe(:axes), do: "an axis, or a list of axes"
  defp describe(:sizes), do: "a list of positive integers, one for each axis"
  defp describe(:positions), do: "a list of non-negative integers, one for each axis"
  defp describe(:shape), do: "a tuple of positive integers, such as {8} or {3, 2}"
  defp describe(:open_shape), do: "a tuple of positive integers, nil where a size is free, such as {nil, 2}"
  defp describe(:type), do: "a type, such as {:f, 64} or :f64"
  defp describe({:number_or, allowed}), do: "a number, or #{describe({:one_of, allowed})}"
  defp describe({:boolean_or, allowed}), do: "true, false or #{Enum.map_join(allowed, ", ", &inspect/1)}"
  defp describe({:one_of, allowed}), do: "one of #{Enum.map_join(allowed, ", ", &inspect/1)}"
end
