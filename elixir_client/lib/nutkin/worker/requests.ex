defmodule Nutkin.Worker.Requests do
  @moduledoc false
  # The open requests of a worker, from the moment they are handed over to their last answer, and what is to be written
  # to the program for them. It survives programs: what can be taken up again is sent to the next one.
  #
  # worker: its name in logs and telemetry
  # limits: those of the program, nil while there is none that is ready. Nothing is written here: the worker takes frames
  # out of the outbox when the port has room.

  require Logger

  alias Nutkin.Error
  alias Nutkin.Error.LimitExceeded
  alias Nutkin.{Protocol, Telemetry}
  alias Nutkin.Worker.{Entry, Outbox, Request}

  @enforce_keys [:worker]
  defstruct worker: nil, next_id: 1, entries: %{}, ids: %{}, outbox: Outbox.new(), limits: nil

  @type t :: %__MODULE__{
          worker: Telemetry.label(),
          next_id: pos_integer(),
          entries: %{pos_integer() => Entry.t()},
          ids: %{reference() => pos_integer()},
          outbox: Outbox.t(),
          limits: map() | nil
        }

  @typedoc "An id of the wire, the reference of a consumer, or the monitor on it."
  @type key :: pos_integer() | reference()

  @spec new(Telemetry.label()) :: t()
  def new(worker), do: %__MODULE__{worker: worker}

  @doc "How many are open."
  @spec count(t()) :: non_neg_integer()
  def count(requests), do: map_size(requests.entries)

  @doc "All entries, oldest first."
  @spec all(t()) :: [Entry.t()]
  def all(requests), do: requests.entries |> Map.values() |> Enum.sort_by(& &1.id)

  @doc "The entry of a key; `:error` where it has ended."
  @spec fetch(t(), key()) :: {:ok, Entry.t()} | :error
  def fetch(requests, ref) when is_reference(ref) do
    with {:ok, id} <- Map.fetch(requests.ids, ref), do: fetch(requests, id)
  end

  def fetch(requests, id), do: Map.fetch(requests.entries, id)

  @doc "Adds a request of `consumer`, which is monitored from now on, and sends it if there is a program."
  @spec add(t(), reference(), pid(), Request.t()) :: t()
  def add(%{next_id: id} = requests, ref, consumer, request) do
    entry = Entry.new(id, ref, consumer, request, requests.worker)
    Telemetry.began(entry)
    ids = Map.merge(requests.ids, %{entry.ref => id, entry.monitor => id})
    requests = update(%{requests | next_id: id + 1, ids: ids}, entry)
    if requests.limits, do: dispatch(requests, entry), else: requests
  end

  @doc "Puts a ping in front of the program, whose answer is nobody's but the worker's."
  @spec ping(t()) :: t()
  def ping(%{next_id: id} = requests) do
    push(%{requests | next_id: id + 1}, Protocol.frame("ping", id, Protocol.body(%{})))
  end

  # Programs come and go

  @doc "A program with these limits is ready: it is sent everything."
  @spec ready(t(), map()) :: t()
  def ready(requests, limits) do
    requests = %{requests | limits: limits}
    requests |> all() |> Enum.reduce(requests, &dispatch(&2, &1))
  end

  @doc """
  The program has ended. Whoever cannot be helped by another one is answered with `error`, everyone else told of it.
  """
  @spec take_up(t(), Error.t()) :: t()
  def take_up(requests, error) do
    requests = %{requests | outbox: Outbox.new(), limits: nil}
    requests |> all() |> Enum.reduce(requests, &take_up(&2, &1, error))
  end

  defp take_up(requests, %{monitor: monitor, cancelled?: cancelled?} = entry, _error)
       when monitor == nil or cancelled?,
       do: finish(requests, entry, Entry.cancelled(entry))

  defp take_up(requests, entry, error) do
    case Entry.take_up(entry) do
      {:ok, again} ->
        if entry.sent?, do: resumed(entry, error)
        update(requests, again)

      :lost ->
        give_up(requests, entry, error)
    end
  end

  defp resumed(entry, error) do
    Telemetry.resumed(entry, error)

    if Request.run?(entry.request) do
      Entry.tell(entry, {:resumed, error})
      log(:info, entry, "a run goes on with the next program")
    end
  end

  defp give_up(requests, entry, error) do
    # Of one that no program has had, its caller knows as much as the log.
    if entry.monitor && Request.run?(entry.request) && (entry.sent? or entry.losses > 0) do
      log(:warning, entry, "a run is given up: #{Exception.message(error)}")
    end

    finish(requests, entry, {:error, error})
  end

  defp log(level, entry, text) do
    metadata = [nutkin_worker: entry.worker, nutkin_source: "nutkin", nutkin_run: entry.ref]
    Logger.log(level, "#{inspect(entry.worker)}: #{text}", metadata)
  end

  @doc "There is no program, and none to be had for a while: all are answered with `error`."
  @spec fail(t(), Error.t()) :: t()
  def fail(requests, error) do
    requests = %{requests | outbox: Outbox.new(), limits: nil}
    requests |> all() |> Enum.reduce(requests, &give_up(&2, &1, error))
  end

  @doc "The worker ends. Consumers have monitors on it, which tell them more than an answer could."
  @spec close(t()) :: :ok
  def close(requests) do
    error = Error.WorkerExit.exception("the worker process ended")
    for entry <- all(requests), do: Telemetry.ended(entry, {:error, error})
    :ok
  end

  # What the consumer wants

  @doc "Grants `chunks` more `:draws` messages."
  @spec grant(t(), key(), pos_integer()) :: t()
  def grant(requests, key, chunks) do
    with_entry(requests, key, fn entry ->
      requests |> update(%{entry | credit: entry.credit + chunks}) |> control(entry, "ack", %{chunks: chunks})
    end)
  end

  @doc "Stops the chains of a run, or lets them go on."
  @spec pause(t(), key(), boolean()) :: t()
  def pause(requests, key, paused?) do
    with_entry(requests, key, fn entry ->
      requests
      |> update(%{entry | paused?: paused?})
      |> control(entry, if(paused?, do: "pause", else: "resume"), %{})
    end)
  end

  @doc "Ends a request: its last answer still comes."
  @spec cancel(t(), key()) :: t()
  def cancel(requests, key) do
    with_entry(requests, key, fn
      %{sent?: true} = entry ->
        requests |> update(%{entry | cancelled?: true}) |> control(entry, "cancel", %{})

      entry ->
        finish(requests, entry, Entry.cancelled(entry))
    end)
  end

  @doc "Ends a request at once, with an error."
  @spec drop(t(), key()) :: t()
  def drop(requests, key) do
    with_entry(requests, key, fn entry ->
      Entry.tell(entry, {:error, Error.Cancelled.exception("the run was cancelled, and its draws dropped")})
      abandon(requests, key)
    end)
  end

  @doc "Nobody waits for a request any more."
  @spec abandon(t(), key()) :: t()
  def abandon(requests, key) do
    with_entry(requests, key, fn entry ->
      requests = unsubscribe(requests, entry)
      nobodys = %{entry | monitor: nil}

      # It stays until the program has answered the cancel: only then is its id free again.
      if entry.sent?,
        do: requests |> update(nobodys) |> control(entry, "cancel", %{}),
        else: finish(requests, nobodys, Entry.cancelled(entry))
    end)
  end

  @doc "Asks the program about a request, for a caller who gets the answer."
  @spec ask(t(), key(), :info | :checkpoint, GenServer.from()) :: t()
  def ask(requests, key, name, from) do
    case fetch(requests, key) do
      {:ok, entry} ->
        requests
        |> update(%{entry | asked: entry.asked ++ [{name, from}]})
        |> control(entry, Atom.to_string(name), %{})

      :error ->
        GenServer.reply(from, :ended)
        requests
    end
  end

  @doc "Asks for a checkpoint of every run, so that less is done twice by the next program."
  @spec ask_for_checkpoints(t()) :: t()
  def ask_for_checkpoints(requests) do
    for %{request: %{type: :sample}} = entry <- all(requests), reduce: requests do
      requests -> control(requests, entry, "checkpoint", %{})
    end
  end

  # What arrives from the program

  @doc "Routes an event to whom it concerns. One of a request that has ended is none of anybody's business."
  @spec arrive(t(), pos_integer(), Protocol.event()) :: t()
  def arrive(requests, id, event), do: with_entry(requests, id, &arrived(requests, &1, event))

  defp arrived(requests, entry, {:need, addresses}) do
    blobs = for address <- addresses, do: {address, Entry.fetch_blob(entry, address)}

    case for({address, :error} <- blobs, do: address) do
      [] ->
        chunk = requests.limits["chunk"]
        upload = fn {_address, {:ok, blob}}, outbox -> Outbox.upload(outbox, entry.id, blob, chunk) end
        %{requests | outbox: Enum.reduce(blobs, requests.outbox, upload)}

      [unknown | _] ->
        error =
          Error.Protocol.exception(
            message: "the worker asks for data that the request does not have",
            found: Base.encode16(unknown, case: :lower)
          )

        requests |> control(entry, "cancel", %{}) |> finish(entry, {:error, error})
    end
  end

  # Nobody has cancelled it but the program itself, which somebody wants to end: the next one takes it up.
  defp arrived(requests, %{cancelled?: false, monitor: monitor}, {:done, %{status: :cancelled}})
       when is_reference(monitor),
       do: requests

  defp arrived(requests, %{cancelled?: false, monitor: monitor}, {:error, %Error.Cancelled{}})
       when is_reference(monitor),
       do: requests

  defp arrived(requests, entry, {:info, info}), do: update(requests, Entry.answer(entry, :info, {:ok, info}))

  defp arrived(requests, entry, event) do
    if Request.last?(entry.request.type, event) do
      finish(requests, entry, Entry.last(entry, event))
    else
      Telemetry.arrived(entry, event)
      {whether, entry} = Entry.note(entry, event)
      if whether == :tell, do: Entry.tell(entry, event)
      update(requests, answer_checkpoint(entry, event))
    end
  end

  # Whole, and not while its pieces arrive.
  defp answer_checkpoint(%{pieces: []} = entry, {:checkpoint, _}) do
    Entry.answer(entry, :checkpoint, {:ok, Entry.checkpoint(entry)})
  end

  defp answer_checkpoint(entry, _event), do: entry

  # The changes

  defp with_entry(requests, key, fun) do
    case fetch(requests, key) do
      {:ok, entry} -> fun.(entry)
      :error -> requests
    end
  end

  defp dispatch(requests, entry) do
    [frame | controls] = Entry.frames(entry)
    size = IO.iodata_length(frame)
    limit = requests.limits["frame"]

    if size > limit do
      error =
        LimitExceeded.exception(
          message: "the request does not fit into one frame",
          expected: "at most #{limit} bytes",
          found: "#{size}",
          hint: "give large arrays as data or as tensors, which travel apart from the request"
        )

      finish(requests, entry, {:error, error})
    else
      Enum.reduce([frame | controls], update(requests, %{entry | sent?: true}), &push(&2, &1))
    end
  end

  # What is not sent yet, `dispatch/2` sends with the request.
  defp control(requests, %{sent?: false}, _type, _body), do: requests
  defp control(requests, entry, type, body), do: push(requests, Entry.control(entry, type, body))

  defp push(requests, frame), do: %{requests | outbox: Outbox.push(requests.outbox, frame)}

  defp update(requests, entry), do: %{requests | entries: Map.put(requests.entries, entry.id, entry)}

  defp finish(requests, entry, event) do
    Telemetry.ended(entry, event)
    Entry.tell(entry, event)
    remove(%{requests | outbox: Outbox.drop_uploads(requests.outbox, entry.id)}, entry)
  end

  defp remove(requests, entry) do
    entry = entry |> Entry.answer(:checkpoint, {:ok, Entry.checkpoint(entry)}) |> Entry.answer(:info, :ended)
    unsubscribe(%{requests | entries: Map.delete(requests.entries, entry.id)}, entry)
  end

  defp unsubscribe(requests, entry) do
    if entry.monitor, do: Process.demonitor(entry.monitor, [:flush])
    %{requests | ids: Map.drop(requests.ids, [entry.ref, entry.monitor])}
  end
end
