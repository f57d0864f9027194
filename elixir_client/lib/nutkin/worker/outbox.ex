defmodule Nutkin.Worker.Outbox do
  @moduledoc false
  # What waits to be written to the port: control messages first, then the chunks of uploads, so that a cancel or an
  # ack never waits behind data. Pure: the worker asks for the next frame when the port takes one.

  alias Nutkin.{Blob, Protocol}

  defstruct control: :queue.new(), uploads: :queue.new()

  @opaque t :: %__MODULE__{control: :queue.queue(iodata()), uploads: :queue.queue(upload())}
  @typep upload :: {id :: non_neg_integer(), Blob.t(), [{non_neg_integer(), iodata()}]}

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @spec push(t(), iodata()) :: t()
  def push(%__MODULE__{} = outbox, frame), do: %{outbox | control: :queue.in(frame, outbox.control)}

  @doc "Queues the chunks, of at most `chunk` bytes, of a blob that request `id` needs."
  @spec upload(t(), non_neg_integer(), Blob.t(), pos_integer()) :: t()
  def upload(%__MODULE__{} = outbox, id, %Blob{} = blob, chunk) do
    %{outbox | uploads: :queue.in({id, blob, Blob.chunks(blob, chunk)}, outbox.uploads)}
  end

  @doc "Leaves out what is not sent yet of the uploads of request `id`."
  @spec drop_uploads(t(), non_neg_integer()) :: t()
  def drop_uploads(%__MODULE__{} = outbox, id) do
    %{outbox | uploads: :queue.filter(fn {of, _blob, _chunks} -> of != id end, outbox.uploads)}
  end

  @doc "The next frame, what kind it is, and the outbox without it."
  @spec next(t()) :: {:control | :chunk, iodata(), t()} | :empty
  def next(%__MODULE__{} = outbox) do
    case :queue.out(outbox.control) do
      {{:value, frame}, control} -> {:control, frame, %{outbox | control: control}}
      {:empty, _} -> next_chunk(outbox)
    end
  end

  defp next_chunk(outbox) do
    case :queue.out(outbox.uploads) do
      {{:value, {id, blob, [{offset, bytes} | rest]}}, uploads} ->
        uploads = if rest == [], do: uploads, else: :queue.in_r({id, blob, rest}, uploads)
        {:chunk, Protocol.put(id, blob, offset, bytes), %{outbox | uploads: uploads}}

      {:empty, _} ->
        :empty
    end
  end
end
