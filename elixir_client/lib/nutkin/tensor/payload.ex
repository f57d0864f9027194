defmodule Nutkin.Tensor.Payload do
  @moduledoc false
  # A tensor as bytes on the wire: the name of its type, its rank, its dimensions, its elements (PROTOCOL.md, Tensors).

  alias Nutkin.Tensor
  alias Nutkin.Tensor.Type

  # So that the size of a hostile shape never becomes a bignum of megabytes.
  @max_rank 64

  @spec encode(Tensor.t()) :: iolist()
  def encode(%Tensor{type: type, shape: shape, data: data}) do
    name = Type.name(type)
    dimensions = for size <- Tuple.to_list(shape), into: <<>>, do: <<size::little-64>>
    [<<byte_size(name), name::binary, tuple_size(shape)>>, dimensions, data]
  end

  @spec decode(binary()) :: {:ok, Tensor.t()} | {:error, String.t()}
  def decode(<<length, name::binary-size(length), rank, rest::binary>>) do
    with {:ok, type} <- type(name),
         {:ok, shape, data} <- shape(rank, rest),
         :ok <- fits(type, shape, data) do
      {:ok, %Tensor{type: type, shape: shape, data: data}}
    end
  end

  def decode(_payload), do: {:error, "a tensor whose header is cut off"}

  defp type(name) do
    with :error <- Type.fetch(name), do: {:error, "a tensor of the unknown type #{inspect(name)}"}
  end

  defp shape(rank, _rest) when rank > @max_rank, do: {:error, "a tensor of rank #{rank}, above #{@max_rank}"}

  defp shape(rank, rest) do
    case rest do
      <<dimensions::binary-size(rank * 8), data::binary>> ->
        {:ok, List.to_tuple(for(<<size::little-64 <- dimensions>>, do: size)), data}

      _cut ->
        {:error, "a tensor whose dimensions are cut off"}
    end
  end

  defp fits(type, shape, data) do
    expected = Type.byte_size(type, Tuple.product(shape))

    if byte_size(data) == expected do
      :ok
    else
      {:error, "a tensor of #{expected} bytes by its shape and type, with #{byte_size(data)}"}
    end
  end
end
