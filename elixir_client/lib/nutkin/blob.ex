defmodule Nutkin.Blob do
  @moduledoc """
  A tensor as it is stored by its content: its bytes, and the SHA-256 of them as its address.

  Models and requests hold addresses; the worker asks for those that it does not have. An `Nx.Tensor` is encoded by
  `Nx.serialize/2`, everything else as the tensor payload of the protocol. Large binaries are neither flattened nor
  copied, on the way from the tensor to the port.
  """

  alias Nutkin.Tensor

  @compile {:no_warn_undefined, Nx}

  @enforce_keys [:sha, :encoding, :iodata, :size]
  @derive {Inspect, only: [:encoding, :size]}
  defstruct [:sha, :encoding, :iodata, :size]

  @type t :: %__MODULE__{
          sha: <<_::256>>,
          encoding: :tensor | :nx,
          iodata: iodata(),
          size: non_neg_integer()
        }

  @doc """
  Makes a blob of anything that `Nutkin.Tensor.new/2` takes, or returns its error. A blob is returned as it is.

  ## Examples

      iex> {:ok, blob} = Nutkin.Blob.cast([1.0, 2.0])
      iex> {blob.encoding, blob.size, byte_size(blob.sha)}
      {:tensor, 29, 32}
      iex> {:error, %Nutkin.Error.InvalidData{path: "[1]"}} = Nutkin.Blob.cast([1.0, :b])

  """
  @spec cast(Tensor.source() | t()) :: {:ok, t()} | {:error, Nutkin.Error.InvalidData.t()}
  def cast(%__MODULE__{} = blob), do: {:ok, blob}

  def cast(%{__struct__: Nx.Tensor, type: {_kind, bits}} = tensor) when bits >= 8 do
    {:ok, new(:nx, Nx.serialize(tensor))}
  end

  # Nx.serialize/2 gives bits, not bytes, for types of less than 8 bits: these go as payloads.
  def cast(value) do
    with {:ok, tensor} <- Tensor.cast(value), do: {:ok, new(:tensor, Tensor.Payload.encode(tensor))}
  end

  @doc """
  Makes a blob of bytes that `Nx.serialize/2` wrote, of one tensor; from a file, say, where there is no Nx.

  ## Examples

      iex> Nutkin.Blob.from_serialized("nx and so on").encoding
      :nx

  """
  @spec from_serialized(iodata()) :: t()
  def from_serialized(iodata), do: new(:nx, iodata)

  @doc false
  # Bytes of a known encoding, which the worker checks.
  @spec from_bytes(:tensor | :nx, iodata()) :: t()
  def from_bytes(encoding, iodata), do: new(encoding, iodata)

  defp new(encoding, iodata) do
    parts = :erlang.iolist_to_iovec(iodata)

    sha =
      parts |> Enum.reduce(:crypto.hash_init(:sha256), &:crypto.hash_update(&2, &1)) |> :crypto.hash_final()

    %__MODULE__{sha: sha, encoding: encoding, iodata: parts, size: IO.iodata_length(parts)}
  end

  @doc """
  The bytes in pieces of at most `max` bytes, each with its offset.

  ## Examples

      iex> blob = Nutkin.Blob.from_serialized(["abc", "defg"])
      iex> for {offset, bytes} <- Nutkin.Blob.chunks(blob, 4), do: {offset, IO.iodata_to_binary(bytes)}
      [{0, "abcd"}, {4, "efg"}]

  """
  @spec chunks(t(), pos_integer()) :: [{non_neg_integer(), iodata()}]
  def chunks(%__MODULE__{iodata: parts}, max) when max > 0, do: chunks(parts, max, 0)

  defp chunks([], _max, _offset), do: []

  defp chunks(parts, max, offset) do
    {chunk, rest} = take(parts, max, [])
    [{offset, chunk} | chunks(rest, max, offset + IO.iodata_length(chunk))]
  end

  defp take([part | rest], room, taken) when byte_size(part) <= room do
    take(rest, room - byte_size(part), [part | taken])
  end

  defp take([part | rest], room, taken) when room > 0 do
    <<head::binary-size(room), tail::binary>> = part
    {Enum.reverse([head | taken]), [tail | rest]}
  end

  defp take(parts, _room, taken), do: {Enum.reverse(taken), parts}
end
