defmodule Nutkin.Pool do
  @moduledoc false
  # What is registered under the name of a pool: it knows the workers, and says which of them takes the next request.
  #
  # Requests and draws do not pass through here. A worker writes how many requests it has into its counter; one without a
  # program counts as the last resort. What is chosen is counted at once, since the request arrives there later.

  use GenServer

  # Above any number of open requests.
  @without_program 1_000_000

  defstruct loads: nil, workers: %{}, last: 0, waiting: []

  @typedoc "The counters of all workers, and the place of one of them."
  @type load :: {:counters.counters_ref(), pos_integer()}

  @spec start_link({GenServer.name(), :counters.counters_ref()}) :: GenServer.on_start()
  def start_link({name, loads}), do: GenServer.start_link(__MODULE__, loads, name: name)

  @doc "A worker says that it is there. It says so again when it has been started again."
  @spec join(GenServer.name(), pos_integer()) :: :ok
  def join(name, place), do: GenServer.cast(name, {:join, place, self()})

  @doc "A worker says how many requests it has, and whether it has a program."
  @spec put_load(load(), non_neg_integer(), boolean()) :: :ok
  def put_load({loads, place}, requests, program?) do
    :counters.put(loads, place, if(program?, do: requests, else: requests + @without_program))
  end

  @impl true
  def init(loads), do: {:ok, %__MODULE__{loads: loads}}

  @impl true
  def handle_call(:choose, from, %{workers: workers} = state) when workers == %{} do
    {:noreply, %{state | waiting: [from | state.waiting]}}
  end

  def handle_call(:choose, _from, state) do
    {worker, state} = choose(state)
    {:reply, {:ok, worker}, state}
  end

  def handle_call(:workers, _from, state) do
    {:reply, {:ok, for({_place, pid} <- Enum.sort(state.workers), do: pid)}, state}
  end

  @impl true
  def handle_cast({:join, place, pid}, state) do
    Process.monitor(pid)
    state = %{state | workers: Map.put(state.workers, place, pid)}

    state =
      for from <- Enum.reverse(state.waiting), reduce: state do
        state ->
          {worker, state} = choose(state)
          GenServer.reply(from, {:ok, worker})
          state
      end

    {:noreply, %{state | waiting: []}}
  end

  @impl true
  def handle_info({:DOWN, _monitor, :process, pid, _reason}, state) do
    {:noreply,
     %{state | workers: for({place, other} <- state.workers, other != pid, into: %{}, do: {place, other})}}
  end

  def handle_info(_stray, state), do: {:noreply, state}

  # The least loaded, and among equals the one after the last that was chosen.
  defp choose(state) do
    {before, behind} = state.workers |> Map.keys() |> Enum.sort() |> Enum.split_with(&(&1 <= state.last))
    place = Enum.min_by(behind ++ before, &:counters.get(state.loads, &1))
    :counters.add(state.loads, place, 1)
    {Map.fetch!(state.workers, place), %{state | last: place}}
  end
end
