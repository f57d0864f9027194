defmodule Nutkin.Tensor do
  @moduledoc """
  A multi-dimensional array of numbers: what models, data and draws are made of where there is no Nx.

  A tensor is its type, its shape, and its elements as one binary, row-major and little-endian, so it goes over
  the wire and to Nx without a copy. It is a container, not a numerical library: `to_nx/1` when Nx is there.

      iex> Nutkin.Tensor.new([[1.5, 2], [3, 4]])
      #Nutkin.Tensor<
        f64[2][2]
        [[1.5, 2.0], [3.0, 4.0]]
      >

  Functions have the names and the meaning that they have in Nx.
  """

  alias Nutkin.Error.InvalidData
  alias Nutkin.Tensor.{NestedList, Type}

  @compile {:no_warn_undefined, Nx}

  @enforce_keys [:type, :shape, :data]
  defstruct [:type, :shape, :data]

  @type shape :: tuple()
  @type t :: %__MODULE__{type: Type.t(), shape: shape(), data: binary()}

  @typedoc """
  What `new/2` takes: a number, `:nan`, `:infinity`, `:neg_infinity`, a range, nested lists of these,
  a tensor, or an `Nx.Tensor` of any backend.
  """
  @type source :: number() | :nan | :infinity | :neg_infinity | Range.t() | [source()] | t() | struct()

  @doc """
  Makes a tensor.

  Integers alone give `s64`, with a float among them `f64`, unless the option `:type` says otherwise.
  The vectorized axes of an `Nx.Tensor` become its first axes. Raises `Nutkin.Error.InvalidData`, with the place
  of the fault, for lists that are ragged or empty, for what is no number, and for numbers that the type cannot hold.

  ## Examples

      iex> Nutkin.Tensor.new([1, 2, 3]).type
      {:s, 64}

      iex> Nutkin.Tensor.new([[1, 2], [3]])
      ** (Nutkin.Error.InvalidData) lists of unequal lengths (at [1]); expected 2 elements, as in [0]; found 1

      iex> Nutkin.Tensor.new([1, :two])
      ** (Nutkin.Error.InvalidData) not a number (at [1]); expected a number, a list, a range, a Nutkin.Tensor or an Nx.Tensor; found :two

  """
  @spec new(source(), type: Type.t() | atom() | String.t()) :: t()
  def new(value, opts \\ []) do
    case cast(value, opts) do
      {:ok, tensor} -> tensor
      {:error, error} -> raise error
    end
  end

  @doc """
  As `new/2`, but returns the error.

  ## Examples

      iex> {:error, error} = Nutkin.Tensor.cast([1, 300], type: :u8)
      iex> Exception.message(error)
      "a number that u8 cannot hold (at [1]); expected an integer from 0 to 255; found 300"

  """
  @spec cast(term(), type: Type.t() | atom() | String.t()) :: {:ok, t()} | {:error, InvalidData.t()}
  def cast(value, opts \\ []) do
    {:ok, build(value, wanted_type(Keyword.validate!(opts, [:type])[:type]))}
  catch
    {:invalid, fields} -> {:error, InvalidData.exception(fields)}
  end

  defp wanted_type(nil), do: nil

  defp wanted_type(type) do
    case Type.fetch(type) do
      {:ok, type} ->
        type

      :error ->
        throw(
          {:invalid,
           message: "an unknown type",
           expected: "one of #{Enum.join(Type.names(), ", ")}",
           found: inspect(type)}
        )
    end
  end

  defp build(%__MODULE__{type: type} = tensor, wanted) when wanted in [nil, type], do: tensor

  defp build(%__MODULE__{} = tensor, wanted) do
    encode(to_flat_list(tensor), tensor.shape, wanted)
  end

  defp build(%{__struct__: Nx.Tensor} = tensor, wanted) do
    tensor = Nx.devectorize(tensor)
    build(from_bits(Nx.to_binary(tensor), tensor.type, tensor.shape), wanted)
  end

  defp build(value, wanted) do
    {shape, elements} = NestedList.flatten(value)
    encode(elements, List.to_tuple(shape), wanted || inferred(elements))
  end

  defp inferred(elements), do: if(Enum.all?(elements, &is_integer/1), do: {:s, 64}, else: {:f, 64})

  defp encode(elements, shape, type) do
    case Type.encode(elements, type) do
      {:ok, data} ->
        %__MODULE__{type: type, shape: shape, data: data}

      {:error, {:element, index}} ->
        throw(
          {:invalid,
           message: "a number that #{Type.name(type)} cannot hold",
           path: place(index, shape),
           expected: expected_by(type),
           found: inspect(Enum.at(elements, index))}
        )

      {:error, :read_only} ->
        throw(
          {:invalid, message: "numbers cannot be written as #{Type.name(type)}", hint: "use from_binary/3"}
        )
    end
  end

  defp expected_by({:u, bits}), do: "an integer from 0 to #{2 ** bits - 1}"
  defp expected_by({:s, bits}), do: "an integer from #{-(2 ** (bits - 1))} to #{2 ** (bits - 1) - 1}"
  defp expected_by({:f, _bits}), do: "a number in its range, :nan, :infinity or :neg_infinity"

  defp place(index, shape) do
    shape
    |> Tuple.to_list()
    |> Enum.reverse()
    |> Enum.map_reduce(index, fn size, rest -> {rem(rest, size), div(rest, size)} end)
    |> elem(0)
    |> NestedList.path()
  end

  @doc """
  A tensor over bytes that are there already: row-major, little-endian, without padding.

  Raises `Nutkin.Error.InvalidData` when the number of bytes is not what type and shape need.

  ## Examples

      iex> Nutkin.Tensor.from_binary(<<1, 2, 3, 4, 5, 6>>, {:u, 8}, {2, 3})
      #Nutkin.Tensor<
        u8[2][3]
        [[1, 2, 3], [4, 5, 6]]
      >

      iex> Nutkin.Tensor.from_binary(<<1, 2, 3>>, :f32, {2})
      ** (Nutkin.Error.InvalidData) the bytes do not fit f32 {2}; expected 8 bytes; found 3

  """
  @spec from_binary(binary(), Type.t() | atom() | String.t(), shape()) :: t()
  def from_binary(data, type, shape) when is_binary(data) and is_tuple(shape) do
    tensor = %__MODULE__{type: wanted_type(type), shape: shape, data: data}
    expected = Type.byte_size(tensor.type, size(tensor))

    if byte_size(data) != expected do
      label = "the bytes do not fit #{label(tensor)}"
      throw({:invalid, message: label, expected: "#{expected} bytes", found: "#{byte_size(data)}"})
    end

    tensor
  catch
    {:invalid, fields} -> raise InvalidData, fields
  end

  @doc false
  # As Nx has them: types of less than 8 bits without the rest of the last byte.
  @spec from_bits(bitstring(), Type.t(), shape()) :: t()
  def from_bits(data, type, shape) when is_binary(data), do: from_binary(data, type, shape)

  def from_bits(data, type, shape) do
    missing = 8 - rem(bit_size(data), 8)
    from_binary(<<data::bitstring, 0::size(missing)>>, type, shape)
  end

  @doc false
  @spec bits(t()) :: bitstring()
  def bits(%__MODULE__{type: {_kind, bits}, data: data}) when bits >= 8, do: data

  def bits(%__MODULE__{type: {_kind, bits}, data: data} = tensor) do
    used = size(tensor) * bits
    <<elements::bitstring-size(used), _rest::bitstring>> = data
    elements
  end

  @doc """
  The shape, a tuple of sizes.

  ## Examples

      iex> Nutkin.Tensor.shape(Nutkin.Tensor.new([[1, 2, 3]]))
      {1, 3}

  """
  @spec shape(t()) :: shape()
  def shape(%__MODULE__{shape: shape}), do: shape

  @doc """
  The type.

  ## Examples

      iex> Nutkin.Tensor.type(Nutkin.Tensor.new(1.5))
      {:f, 64}

  """
  @spec type(t()) :: Type.t()
  def type(%__MODULE__{type: type}), do: type

  @doc """
  The number of elements.

  ## Examples

      iex> Nutkin.Tensor.size(Nutkin.Tensor.new([[1, 2, 3], [4, 5, 6]]))
      6

  """
  @spec size(t()) :: non_neg_integer()
  def size(%__MODULE__{shape: shape}), do: Tuple.product(shape)

  @doc """
  The elements as nested lists. A scalar has `to_number/1`.

  What is no finite number comes as `:nan`, `:infinity` or `:neg_infinity`, a complex number as a pair.

  ## Examples

      iex> Nutkin.Tensor.to_list(Nutkin.Tensor.new([[1, 2.5], [:nan, 4]]))
      [[1.0, 2.5], [:nan, 4.0]]

  """
  @spec to_list(t()) :: list()
  def to_list(%__MODULE__{shape: {}}) do
    raise ArgumentError, "a scalar tensor has no list; use Nutkin.Tensor.to_number/1"
  end

  def to_list(%__MODULE__{shape: shape} = tensor) do
    shape
    |> Tuple.to_list()
    |> Enum.drop(1)
    |> Enum.reverse()
    |> Enum.reduce(to_flat_list(tensor), &Enum.chunk_every(&2, &1))
  end

  @doc """
  The elements in one list, row-major.

  ## Examples

      iex> Nutkin.Tensor.to_flat_list(Nutkin.Tensor.new([[1, 2], [3, 4]]))
      [1, 2, 3, 4]

  """
  @spec to_flat_list(t()) :: [Type.element()]
  def to_flat_list(%__MODULE__{type: type, data: data} = tensor), do: Type.decode(data, type, size(tensor))

  @doc """
  The one element of a tensor of size 1.

  ## Examples

      iex> Nutkin.Tensor.to_number(Nutkin.Tensor.new(2.5))
      2.5

  """
  @spec to_number(t()) :: Type.element()
  def to_number(%__MODULE__{} = tensor) do
    case size(tensor) do
      1 -> hd(to_flat_list(tensor))
      _other -> raise ArgumentError, "#{label(tensor)} is not one number; use Nutkin.Tensor.to_list/1"
    end
  end

  @doc """
  The tensor as an `Nx.Tensor`. Raises where Nx is not loaded.
  """
  @spec to_nx(t()) :: struct()
  def to_nx(%__MODULE__{type: type, shape: shape} = tensor) do
    if Code.ensure_loaded?(Nx) do
      Nx.reshape(Nx.from_binary(bits(tensor), type), shape)
    else
      raise "Nx is not loaded: add {:nx, \"~> 0.9\"} to the deps of your mix.exs, or stay with Nutkin.Tensor.to_list/1"
    end
  end

  @doc """
  `length` entries along the first axis, from `start` on. The bytes are shared, not copied.

  ## Examples

      iex> Nutkin.Tensor.slice(Nutkin.Tensor.new([[1, 2], [3, 4], [5, 6]]), 1, 2)
      #Nutkin.Tensor<
        s64[2][2]
        [[3, 4], [5, 6]]
      >

  """
  @spec slice(t(), non_neg_integer(), non_neg_integer()) :: t()
  def slice(%__MODULE__{type: {_kind, bits}, shape: shape} = tensor, start, length)
      when tuple_size(shape) > 0 and bits >= 8 and start >= 0 and length >= 0 and
             start + length <= elem(shape, 0) do
    row = Type.byte_size(tensor.type, Tuple.product(Tuple.delete_at(shape, 0)))
    %{tensor | shape: put_elem(shape, 0, length), data: binary_part(tensor.data, start * row, length * row)}
  end

  @doc """
  Joins tensors along their first axis.

  ## Examples

      iex> Nutkin.Tensor.concatenate([Nutkin.Tensor.new([1, 2]), Nutkin.Tensor.new([3])])
      #Nutkin.Tensor<
        s64[3]
        [1, 2, 3]
      >

  """
  @spec concatenate([t(), ...]) :: t()
  def concatenate([%__MODULE__{} = tensor]), do: tensor

  def concatenate([%__MODULE__{type: {_kind, bits}, shape: shape} = first | _] = tensors)
      when tuple_size(shape) > 0 and bits >= 8 do
    same!(tensors, &{&1.type, Tuple.delete_at(&1.shape, 0)})
    length = tensors |> Enum.map(&elem(&1.shape, 0)) |> Enum.sum()
    %{first | shape: put_elem(shape, 0, length), data: join(tensors)}
  end

  @doc """
  Joins tensors of one type and shape along a new first axis.

  ## Examples

      iex> Nutkin.Tensor.stack([Nutkin.Tensor.new([1, 2]), Nutkin.Tensor.new([3, 4])])
      #Nutkin.Tensor<
        s64[2][2]
        [[1, 2], [3, 4]]
      >

  """
  @spec stack([t(), ...]) :: t()
  def stack([%__MODULE__{type: {_kind, bits}, shape: shape} = first | _] = tensors) when bits >= 8 do
    same!(tensors, &{&1.type, &1.shape})
    %{first | shape: Tuple.insert_at(shape, 0, length(tensors)), data: join(tensors)}
  end

  defp same!([first | rest], what) do
    case Enum.find(rest, &(what.(&1) != what.(first))) do
      nil -> :ok
      other -> raise ArgumentError, "#{label(first)} and #{label(other)} cannot be joined"
    end
  end

  defp join(tensors), do: IO.iodata_to_binary(Enum.map(tensors, & &1.data))

  @doc false
  # What errors call a tensor: its type and shape, as those of the engine do.
  @spec label(t()) :: String.t()
  def label(%__MODULE__{type: type, shape: shape}), do: "#{Type.name(type)} #{inspect(shape)}"

  defimpl Inspect do
    import Inspect.Algebra

    alias Nutkin.Tensor

    # Of a large tensor only the elements that are shown are read.
    def inspect(tensor, opts) do
      %{limit: limit} = opts
      shown = if limit == :infinity, do: Tensor.size(tensor), else: min(Tensor.size(tensor), limit)
      elements = Tensor.Type.decode(tensor.data, tensor.type, shown)
      {text, _rest} = nest_lists(Tuple.to_list(tensor.shape), elements)
      lines = ["#Nutkin.Tensor<", nest(concat([line(), header(tensor), line(), text]), 2), line(), ">"]
      force_unfit(concat(lines))
    end

    # As Nx prints it.
    defp header(%{type: type, shape: shape}) do
      Tensor.Type.name(type) <> Enum.map_join(Tuple.to_list(shape), &"[#{&1}]")
    end

    defp nest_lists([], [element | rest]), do: {element(element), rest}

    defp nest_lists([size | shape], elements) do
      {parts, rest} = entries(size, shape, elements, [])
      {"[" <> Enum.join(parts, ", ") <> "]", rest}
    end

    defp entries(0, _shape, rest, parts), do: {Enum.reverse(parts), rest}
    defp entries(_left, _shape, [], parts), do: {Enum.reverse(["..." | parts]), []}

    defp entries(left, shape, elements, parts) do
      {part, rest} = nest_lists(shape, elements)
      entries(left - 1, shape, rest, [part | parts])
    end

    defp element(:nan), do: "NaN"
    defp element(:infinity), do: "Inf"
    defp element(:neg_infinity), do: "-Inf"
    defp element({real, imaginary}), do: "#{element(real)}+#{element(imaginary)}i"
    defp element(number), do: to_string(number)
  end
end
