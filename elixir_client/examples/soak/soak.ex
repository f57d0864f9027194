defmodule Soak do
  @moduledoc """
  Many consumers at once, on a pool of two workers whose programs are killed, for as long as one likes; and what is measured
  meanwhile.

      make soak                      # half an hour, and docs/soak.md
      make soak MINUTES=1 SEED=3     # a look; writes nothing

  In the first fifth of the time the programs of both workers are killed and have to be replaced; from then on only the second's, so that
  there is one that grows old.
  """

  alias Soak.{Chunks, Consumers, Kills, Measures, Models, Slot}

  defstruct [
    :minutes,
    :seed,
    :versions,
    :infos,
    counts: %{},
    kills: %{},
    faults: [],
    samples: [],
    queues: %{pool: 0, workers: 0},
    first_programs: MapSet.new(),
    conditions: []
  ]

  @type t :: %__MODULE__{}

  @pool Soak.Pool
  @slots 8

  # Milliseconds between looks at the queues, and between samples of all else.
  @look 100
  @sample 2_000

  # The longest that a consumer may take, in milliseconds.
  @longest 180_000

  # Chunks up to the credit of all runs; their other events, checkpoints and lines of logs.
  @worker_bound @slots * 64 + 200
  @pool_bound @slots + 10

  @doc "How many consumers there are at once."
  @spec slots() :: pos_integer()
  def slots, do: @slots

  @doc """
  Soaks for some minutes, printing a line for each, and returns what was counted and measured. `options`: of the pool, besides
  its name, its workers and its heartbeat.
  """
  @spec run(number(), non_neg_integer(), keyword()) :: t()
  def run(minutes, seed, options) do
    {:ok, supervisor} = Nutkin.start_link([name: @pool, workers: 2, heartbeat: 2_000] ++ options)
    workers = workers()
    place = place()
    :rand.seed(:exsss, seed)
    # What is loaded or opened once is there before the first sample.
    for app <- [:nutkin, :elixir, :stdlib], do: :code.ensure_modules_loaded(Application.spec(app, :modules))
    for kind <- Consumers.kinds(), do: Consumers.run(kind, place)
    {:ok, infos} = Nutkin.info(@pool)
    before = Measures.take(infos)

    begun = now()
    spared = begun + round(minutes * 60_000 / 5)
    ends = begun + round(minutes * 60_000)
    kills = start_kills(spared)
    slots = for slot <- 1..@slots, do: start_slot(slot, seed, spared, place)
    versions = Map.get(hd(infos), :versions, %{})
    soak = %__MODULE__{minutes: minutes, seed: seed, versions: versions, infos: infos}
    soak = loop(soak, %{begun: begun, sample: begun, minute: 1, spared: spared, ends: ends})

    stop(kills)
    for slot <- slots, do: send(slot, :stop)
    soak = drain(soak, length(slots), now() + @longest + 10_000)
    quiet? = eventually(fn -> open_requests() == 0 end)
    {:ok, infos} = Nutkin.info(@pool)
    later = Measures.take(infos)
    same_workers? = workers() == workers
    Supervisor.stop(supervisor)
    gone? = eventually(fn -> Measures.take([]).children <= before.children - length(workers) end)

    conditions = [
      {"each kind of consumer has run",
       Consumers.kinds() -- Enum.map(Map.keys(soak.counts), &elem(&1, 0)) == []},
      {"programs were killed", soak.kills != %{}},
      {"at most one use in a hundred is given up", given_up(soak) <= max(1, total(soak) / 100)},
      {"no process of a worker has ended", same_workers?},
      {"the first worker has had one program since it was spared", MapSet.size(soak.first_programs) == 1},
      {"at most #{@worker_bound} messages wait for a worker", soak.queues.workers <= @worker_bound},
      {"at most #{@pool_bound} messages wait for the pool", soak.queues.pool <= @pool_bound},
      {"no request is open at the end", quiet?},
      {"no process of the BEAM is left over", later.processes <= before.processes},
      {"no port is left over", later.ports <= before.ports},
      {"no zombie is left over", later.zombies == 0},
      {"no program is left over", gone?}
    ]

    %{soak | samples: Enum.reverse(soak.samples), faults: Enum.reverse(soak.faults), conditions: conditions}
  end

  @doc "How many uses there were, and how many of them were given up."
  @spec total(t()) :: non_neg_integer()
  def total(soak), do: soak.counts |> Map.values() |> Enum.sum()

  @spec given_up(t()) :: non_neg_integer()
  def given_up(soak), do: Enum.sum(for {{_kind, :given_up}, count} <- soak.counts, do: count)

  defp place do
    {model, opts} = Models.fixed()
    {:ok, fit} = Nutkin.sample(model, [worker: @pool] ++ opts)
    %{pool: @pool, rough: @pool, fixed: Chunks.joined(Chunks.of_fit(fit))}
  end

  defp start_slot(slot, seed, spared, place) do
    owner = self()
    [_first, second] = workers()

    spawn_link(fn ->
      Slot.loop(owner, slot, {seed, 1}, @longest, fn ->
        if now() < spared, do: place, else: %{place | rough: second}
      end)
    end)
  end

  defp start_kills(spared) do
    owner = self()

    spawn_link(fn ->
      Kills.loop(owner, fn ->
        {:ok, infos} = Nutkin.info(@pool)
        infos = if now() < spared, do: infos, else: tl(infos)
        for %{phase: :ready, os_pid: os_pid} <- infos, do: os_pid
      end)
    end)
  end

  defp stop(process) do
    Process.unlink(process)
    Process.exit(process, :kill)
  end

  defp loop(soak, times) do
    cond do
      now() >= times.ends -> soak
      now() >= times.sample -> sample(soak, times)
      true -> soak |> look() |> receive_for(@look) |> loop(times)
    end
  end

  defp sample(soak, times) do
    {:ok, infos} = Nutkin.info(@pool)
    soak = %{soak | infos: infos, samples: [Measures.take(infos) | soak.samples]}
    soak = if now() < times.spared + 2_000, do: soak, else: remember_first(soak)
    times = %{times | sample: times.sample + @sample}

    if now() >= times.begun + times.minute * 60_000 do
      IO.puts(Soak.Report.line(soak, times.minute))
      loop(soak, %{times | minute: times.minute + 1})
    else
      loop(soak, times)
    end
  end

  defp remember_first(%{infos: [%{os_pid: os_pid} | _]} = soak) do
    %{soak | first_programs: MapSet.put(soak.first_programs, os_pid)}
  end

  defp look(soak) do
    workers = for %{pid: pid} <- soak.infos, do: Measures.queue(pid)
    pool = Measures.queue(Process.whereis(@pool))
    %{soak | queues: %{pool: max(soak.queues.pool, pool), workers: Enum.max([soak.queues.workers | workers])}}
  end

  defp receive_for(soak, milliseconds) do
    receive do
      {:used, kind, outcome} -> receive_for(count(soak, :counts, {kind, outcome}), milliseconds)
      {:killed, signal} -> receive_for(count(soak, :kills, signal), milliseconds)
      {:fault, text} -> receive_for(fault(soak, text), milliseconds)
    after
      milliseconds -> soak
    end
  end

  defp count(soak, field, key), do: Map.update!(soak, field, &Map.update(&1, key, 1, fn n -> n + 1 end))

  defp fault(soak, text) do
    IO.puts("  FAULT: #{text}")
    %{soak | faults: [text | soak.faults]}
  end

  defp drain(soak, 0, _deadline), do: receive_for(soak, 0)

  defp drain(soak, slots, deadline) do
    receive do
      :slot_ended -> drain(soak, slots - 1, deadline)
    after
      max(deadline - now(), 0) -> fault(receive_for(soak, 0), "#{slots} consumers do not end")
    end
  end

  defp workers do
    {:ok, infos} = Nutkin.info(@pool)
    for %{pid: pid} <- infos, do: pid
  end

  # As the workers count them, and as the programs do.
  defp open_requests do
    {:ok, infos} = Nutkin.info(@pool)

    programs =
      for %{pid: pid} <- infos do
        {:ok, pong} = Nutkin.ping(pid)
        pong.requests
      end

    Enum.sum(programs) + Enum.sum(Enum.map(infos, & &1.requests))
  end

  defp eventually(fun, tries \\ 100) do
    cond do
      fun.() -> true
      tries == 0 -> false
      true -> Process.sleep(100) && eventually(fun, tries - 1)
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
