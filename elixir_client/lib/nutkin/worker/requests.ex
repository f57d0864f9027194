defmodule Nutkin.Worker.Requests do
  @moduledoc false
  # The open requests of a worker: found by their id, by the reference of the consumer, or by the monitor on it.

  alias Nutkin.Worker.Request

  defmodule Entry do
    @moduledoc false
    # monitor: on the consumer, nil once nobody waits for answers
    # sent?: whether the port has the message
    # granted: credit that was given before the message was sent

    @enforce_keys [:id, :ref, :monitor, :request]
    defstruct [:id, :ref, :monitor, :request, sent?: false, granted: 0]

    @type t :: %__MODULE__{
            id: pos_integer(),
            ref: reference(),
            monitor: reference() | nil,
            request: Request.t(),
            sent?: boolean(),
            granted: non_neg_integer()
          }
  end

  defstruct next_id: 1, entries: %{}, ids: %{}

  @type t :: %__MODULE__{
          next_id: pos_integer(),
          entries: %{pos_integer() => Entry.t()},
          ids: %{reference() => pos_integer()}
        }

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "Adds a request of `consumer`, which is monitored from now on."
  @spec add(t(), reference(), pid(), Request.t()) :: {Entry.t(), t()}
  def add(requests, ref, consumer, request) do
    {id, requests} = take_id(requests)
    entry = %Entry{id: id, ref: ref, monitor: Process.monitor(consumer), request: request}
    ids = Map.merge(requests.ids, %{entry.ref => id, entry.monitor => id})
    {entry, %{requests | entries: Map.put(requests.entries, id, entry), ids: ids}}
  end

  @doc "An id that no request has, for a message whose answer nobody waits for."
  @spec take_id(t()) :: {pos_integer(), t()}
  def take_id(%__MODULE__{next_id: id} = requests), do: {id, %{requests | next_id: id + 1}}

  @doc "All entries, oldest first."
  @spec all(t()) :: [Entry.t()]
  def all(requests), do: requests.entries |> Map.values() |> Enum.sort_by(& &1.id)

  @doc "The entry of an id, of a consumer's reference or of a monitor; `:error` where it has ended."
  @spec fetch(t(), pos_integer() | reference()) :: {:ok, Entry.t()} | :error
  def fetch(requests, ref) when is_reference(ref) do
    with {:ok, id} <- Map.fetch(requests.ids, ref), do: fetch(requests, id)
  end

  def fetch(requests, id), do: Map.fetch(requests.entries, id)

  @doc "Puts a changed entry in the place of the old one."
  @spec update(t(), Entry.t()) :: t()
  def update(requests, entry), do: %{requests | entries: Map.replace!(requests.entries, entry.id, entry)}

  @doc "Nobody waits for the answers any more. The id stays taken until the last of them."
  @spec orphan(t(), Entry.t()) :: t()
  def orphan(requests, entry), do: requests |> unsubscribe(entry) |> update(%{entry | monitor: nil})

  @spec remove(t(), Entry.t()) :: t()
  def remove(requests, entry) do
    unsubscribe(%{requests | entries: Map.delete(requests.entries, entry.id)}, entry)
  end

  defp unsubscribe(requests, entry) do
    if entry.monitor, do: Process.demonitor(entry.monitor, [:flush])
    %{requests | ids: Map.drop(requests.ids, [entry.ref, entry.monitor])}
  end

  @doc "Sends an event to the consumer, if there is one."
  @spec tell(Entry.t(), Nutkin.Protocol.event()) :: :ok
  def tell(%Entry{monitor: nil}, _event), do: :ok

  def tell(%Entry{ref: ref}, event) do
    send(ref, {ref, event})
    :ok
  end
end
