defmodule Nutkin.Worker.Entry do
  @moduledoc false
  # An open request in its worker: who waits for it, what of it has been delivered, and where it can be taken up again.
  #
  # monitor: on the consumer, nil once nobody waits for answers
  # sent?: whether the program has the message
  # credit: `:draws` messages that the consumer takes, and that have not come yet
  # delivered: by the number of a chain, how many draws of the warmup and of the sampling the consumer has
  # checkpoint: the bytes of the last whole one; pieces: those that have come of the next one, the last one first
  # told: events of which a second one, of the same request sent again, is none of the consumer's business
  # worker: the name of its worker in logs and telemetry
  # began: when it was handed over; compiling: since when the program compiles for it, nil while it does not; in native units
  # losses: how many programs have ended under it since it last got on
  # asked: callers that wait for an answer beside the events, by its name

  alias Nutkin.{Blob, Checkpoint, Draws, Protocol, Telemetry}
  alias Nutkin.Worker.Request

  @enforce_keys [:id, :ref, :monitor, :request, :worker, :began]
  defstruct [
    :id,
    :ref,
    :monitor,
    :request,
    :worker,
    :began,
    :compiling,
    :checkpoint,
    sent?: false,
    credit: 0,
    paused?: false,
    cancelled?: false,
    delivered: %{},
    pieces: [],
    told: MapSet.new(),
    losses: 0,
    asked: []
  ]

  @type t :: %__MODULE__{
          id: pos_integer(),
          ref: reference(),
          monitor: reference() | nil,
          request: Request.t(),
          worker: Telemetry.label(),
          began: integer(),
          compiling: integer() | nil,
          checkpoint: binary() | nil,
          sent?: boolean(),
          credit: non_neg_integer(),
          paused?: boolean(),
          cancelled?: boolean(),
          delivered: Request.delivered(),
          pieces: [binary()],
          told: MapSet.t(atom()),
          losses: non_neg_integer(),
          asked: [{:info | :checkpoint, GenServer.from()}]
        }

  # A request under which programs end again and again may be the reason for it.
  @most_losses 3

  @spec new(pos_integer(), reference(), pid(), Request.t(), Telemetry.label()) :: t()
  def new(id, ref, consumer, request, worker) do
    %__MODULE__{
      id: id,
      ref: ref,
      monitor: Process.monitor(consumer),
      request: request,
      worker: worker,
      began: System.monotonic_time(),
      credit: request.credit,
      checkpoint: request.state,
      delivered: request.delivered
    }
  end

  @doc "The messages that begin the request, or take it up where the last checkpoint was and the consumer has got to."
  @spec frames(t()) :: [iodata()]
  def frames(entry) do
    # In this order: an `ack` may come before the run has begun, and so may the others.
    controls =
      for {true, type, body} <- [
            {entry.credit > 0, "ack", %{chunks: entry.credit}},
            {entry.paused?, "pause", %{}},
            {entry.cancelled?, "cancel", %{}}
          ],
          do: control(entry, type, body)

    asked = for {name, _from} <- entry.asked, do: control(entry, Atom.to_string(name), %{})
    [Request.frame(request(entry), entry.id) | controls ++ asked]
  end

  @doc "The frame of a message that belongs to the request."
  @spec control(t(), String.t(), map()) :: iodata()
  def control(entry, type, body \\ %{}), do: Protocol.frame(type, entry.id, Protocol.body(body))

  defp request(%{checkpoint: nil} = entry), do: with_delivered(entry.request, entry.delivered)

  defp request(%{request: request} = entry) do
    blob = Checkpoint.blob(entry.checkpoint)
    request = %{request | blobs: Map.put(request.blobs, blob.sha, blob)}
    request |> Request.put("checkpoint", {:bin, blob.sha}) |> with_delivered(entry.delivered)
  end

  defp with_delivered(request, delivered) when delivered == %{}, do: request

  defp with_delivered(request, delivered) do
    last = delivered |> Map.keys() |> Enum.max()

    counts =
      for chain <- 0..last do
        {warmup, sample} = Map.get(delivered, chain, {0, 0})
        [warmup, sample]
      end

    Request.put(request, "delivered", counts)
  end

  @doc "The blob of this address, if the request has one."
  @spec fetch_blob(t(), binary()) :: {:ok, Blob.t()} | :error
  def fetch_blob(%{checkpoint: nil} = entry, sha), do: Map.fetch(entry.request.blobs, sha)

  def fetch_blob(entry, sha) do
    with :error <- Map.fetch(entry.request.blobs, sha) do
      blob = Checkpoint.blob(entry.checkpoint)
      if blob.sha == sha, do: {:ok, blob}, else: :error
    end
  end

  @doc "The program has ended: the entry as it is sent to the next one, or `:lost`."
  @spec take_up(t()) :: {:ok, t()} | :lost
  def take_up(%{request: %{options: %{resume: false}}}), do: :lost
  def take_up(%{request: %{type: :ping}}), do: :lost
  def take_up(%{losses: losses}) when losses + 1 >= @most_losses, do: :lost

  def take_up(entry) do
    if MapSet.member?(entry.told, :part),
      do: :lost,
      else: {:ok, %{entry | sent?: false, compiling: nil, pieces: [], losses: entry.losses + 1}}
  end

  @doc "What has arrived for the request: the entry after it, and whether its consumer is told."
  @spec note(t(), Protocol.event()) :: {:tell, t()} | {:keep, t()}
  def note(entry, {:compiling, _} = event),
    do: noted(%{entry | compiling: System.monotonic_time()}, event)

  # Also one of nothing is sent meanwhile.
  def note(entry, {:checkpoint, _} = event), do: noted(entry, event)
  def note(entry, event), do: noted(%{entry | compiling: nil}, event)

  defp noted(entry, {:draws, %Draws{} = draws}) do
    {warmup, sample} = Map.get(entry.delivered, draws.chain, {0, 0})
    upto = draws.start + draws.count

    counts =
      case draws.phase do
        :warmup -> {max(warmup, upto), sample}
        :sample -> {warmup, max(sample, upto)}
      end

    delivered = Map.put(entry.delivered, draws.chain, counts)
    {:tell, %{entry | delivered: delivered, credit: max(entry.credit - 1, 0), losses: 0}}
  end

  defp noted(entry, {:checkpoint, %{size: size, offset: offset, bytes: bytes}}) do
    # The pieces of one that was cut off by the end of its program are not continued.
    pieces = if offset == 0, do: [bytes], else: [bytes | entry.pieces]

    if offset + byte_size(bytes) >= size do
      # A copy, since every piece would keep its frame in memory.
      state = pieces |> Enum.reverse() |> IO.iodata_to_binary() |> :binary.copy()
      {:keep, %{entry | checkpoint: if(size > 0, do: state, else: entry.checkpoint), pieces: [], losses: 0}}
    else
      {:keep, %{entry | pieces: pieces}}
    end
  end

  defp noted(entry, {name, _}) when name in [:compiling, :compiled, :part] do
    if name != :part and MapSet.member?(entry.told, name),
      do: {:keep, entry},
      else: {:tell, %{entry | told: MapSet.put(entry.told, name)}}
  end

  defp noted(entry, {:progress, _}), do: {:tell, entry}
  defp noted(entry, _event), do: {:keep, entry}

  @doc "The checkpoint that whoever asks gets."
  @spec checkpoint(t()) :: Checkpoint.t()
  def checkpoint(entry), do: Checkpoint.new(entry.request, entry.checkpoint, entry.delivered)

  @doc "The last event, as the consumer gets it: a run's has its last checkpoint."
  @spec last(t(), Protocol.event()) :: Protocol.event()
  def last(%{request: %{type: :sample}} = entry, {:done, done}) do
    {:done, Map.put(done, :checkpoint, checkpoint(entry))}
  end

  def last(_entry, event), do: event

  @doc "The end of a run that never began."
  @spec cancelled(t()) :: Protocol.event()
  def cancelled(entry) do
    if Request.run?(entry.request) do
      seconds = %{compile: 0.0, warmup: 0.0, sample: 0.0}
      last(entry, {:done, %{status: :cancelled, chains: [], pilot: nil, seconds: seconds}})
    else
      {:error, Nutkin.Error.Cancelled.exception("the request was cancelled")}
    end
  end

  @doc "Sends an event to the consumer, if there is one."
  @spec tell(t(), Protocol.event()) :: :ok
  def tell(%{monitor: nil}, _event), do: :ok

  def tell(%{ref: ref}, event) do
    send(ref, {ref, event})
    :ok
  end

  @doc "Answers whoever has asked for `name`."
  @spec answer(t(), atom(), term()) :: t()
  def answer(entry, name, answer) do
    {waiting, others} = Enum.split_with(entry.asked, fn {asked, _from} -> asked == name end)
    for {_name, from} <- waiting, do: GenServer.reply(from, answer)
    %{entry | asked: others}
  end
end
