defmodule Nutkin.Worker.Request do
  @moduledoc false
  # A request as the caller hands it to a worker: its message without the id, and the blobs that it may need.
  #
  # credit: `:draws` messages that its consumer takes before it acknowledges one. It is granted by `ack`s alone, so that
  # the message can be sent again to another program.
  # options: of a run, as they were checked, without the data. state: the bytes of the checkpoint that it goes on from.
  # delivered: by the number of a chain, how many draws of the warmup and of the sampling the consumer has already.

  alias Nutkin.{Blob, Msgpack, Protocol}

  @enforce_keys [:type, :fields, :blobs]
  defstruct [:type, :fields, :blobs, :state, credit: 0, options: %{}, delivered: %{}]

  @type type :: :compile | :sample | :log_density | :debug | :predict | :shapes | :evaluate | :ping

  @type delivered :: %{non_neg_integer() => {non_neg_integer(), non_neg_integer()}}

  @type t :: %__MODULE__{
          type: type(),
          fields: %{String.t() => {:encoded, iodata()}},
          blobs: %{binary() => Blob.t()},
          credit: non_neg_integer(),
          options: Nutkin.Options.valid(),
          state: binary() | nil,
          delivered: delivered()
        }

  @doc "Encodes the body here, in the caller: the time it takes and the errors it may raise are the caller's."
  @spec new(type(), map(), %{binary() => Blob.t()}) :: t()
  def new(type, body, blobs \\ %{}) do
    fields = Map.new(body, fn {name, value} -> {to_string(name), encoded(value)} end)
    %__MODULE__{type: type, fields: fields, blobs: blobs}
  end

  @doc "A request whose answers are draws, with its checked options; `options` of the body are those of the message."
  @spec new_run(:sample | :predict, map(), %{binary() => Blob.t()}, Nutkin.Options.valid()) :: t()
  def new_run(type, body, blobs, options) do
    request = new(type, put_in(body, [:options, "credit"], 0), blobs)
    %{request | credit: options.credit, options: Map.delete(options, :data)}
  end

  @doc "The request with one field more, or another value of it."
  @spec put(t(), String.t(), Msgpack.encodable()) :: t()
  def put(request, name, value), do: put_in(request.fields[name], encoded(value))

  defp encoded(value), do: {:encoded, Msgpack.encode!(value)}

  @doc "The frame of its message."
  @spec frame(t(), pos_integer()) :: iodata()
  def frame(request, id) do
    Protocol.frame(Atom.to_string(request.type), id, Protocol.body(request.fields))
  end

  @doc "Whether its answers are draws."
  @spec run?(t()) :: boolean()
  def run?(%__MODULE__{type: type}), do: type in [:sample, :predict]

  @doc "Whether `event` is the last answer to a request of this type."
  @spec last?(type(), Protocol.event()) :: boolean()
  def last?(:compile, {:compiled, _}), do: true
  def last?(_type, {name, _}), do: name in [:done, :value, :diagnosis, :shapes, :evaluated, :pong, :error]
end
