defmodule Nutkin.Worker.Request do
  @moduledoc false
  # A request as the caller hands it to a worker: its message without the id, and the blobs that it may need.

  alias Nutkin.{Blob, Protocol}

  @enforce_keys [:type, :body, :blobs]
  defstruct @enforce_keys

  @type type :: :compile | :sample | :log_density | :debug | :predict | :shapes | :evaluate | :ping

  @type t :: %__MODULE__{type: type(), body: iodata(), blobs: %{binary() => Blob.t()}}

  @doc "Encodes the body here, in the caller: the time it takes and the errors it may raise are the caller's."
  @spec new(type(), map(), %{binary() => Blob.t()}) :: t()
  def new(type, body, blobs \\ %{}), do: %__MODULE__{type: type, body: Protocol.body(body), blobs: blobs}

  @doc "Whether `event` is the last answer to a request of this type."
  @spec last?(type(), Protocol.event()) :: boolean()
  def last?(:compile, {:compiled, _}), do: true
  def last?(_type, {name, _}), do: name in [:done, :value, :diagnosis, :shapes, :evaluated, :pong, :error]
end
