defmodule Nutkin.TelemetryTest do
  # A module of the VM comes and goes.
  use Nutkin.Test.WorkerCase, async: false

  import ExUnit.CaptureLog
  import Nutkin.Test.Handlers

  alias Nutkin.Error.{Cancelled, CompileFailed, WorkerExit}
  alias Nutkin.Test.Models
  alias Nutkin.Worker.{Client, Lines, Request, Requests}

  @moduletag :capture_log

  setup :attach

  @limits %{"frame" => 1_000_000, "chunk" => 1_000}
  @gone WorkerExit.exception("the worker ended")

  # The requests of a worker with a program, which get one of this type.
  defp requests(type, options \\ %{}) do
    ref = :erlang.alias()
    request = %Request{type: type, fields: %{}, blobs: %{}, options: options}
    {Requests.new(Mine) |> Requests.ready(@limits) |> Requests.add(ref, self(), request), ref}
  end

  defp progress(fields \\ []) do
    defaults = [
      chain: 1,
      phase: :warmup,
      iteration: 20,
      total: 290,
      divergences: 2,
      step_size: 0.5,
      tree_depth: 3.0
    ]

    more = [gradients: 140, draws: 0, gradients_per_second: 900.0, seconds_left: nil]
    struct!(Nutkin.Progress, defaults ++ more ++ fields)
  end

  defp chunk do
    %Nutkin.Draws{chain: 1, phase: :sample, start: 10, count: 5, variables: %{}, stats: %{}}
  end

  defp chain(draws, divergences, gradients),
    do: %{draws: draws, divergences: divergences, gradients: gradients}

  # All events that came, in their order.
  defp events do
    receive do
      {:event, [:nutkin | name], measurements, metadata} -> [{name, measurements, metadata} | events()]
    after
      0 -> []
    end
  end

  defp names(events), do: for({name, _, _} <- events, do: name)

  test "the table of the documentation has every event, and each has a form of its own" do
    assert length(documented()) == 15
    assert documented() == Enum.uniq(documented())
  end

  test "the guide speaks of events and measurements that there are" do
    guide = File.read!(Path.expand("../../../docs/observing.md", __DIR__))
    events = for event <- documented(), do: inspect(event)
    listed = for [event] <- Regex.scan(~r/\[:nutkin, [^\]]*\]/, guide), do: event
    assert listed != [] and listed -- events == []

    {:docs_v1, _, _, _, %{"en" => table}, _, _} = Code.fetch_docs(Nutkin.Telemetry)

    for [_, name, measurement] <- Regex.scan(~r/"(nutkin\.[a-z_.]+)\.([a-z_]+)"/, guide) do
      event = "[" <> (name |> String.split(".") |> Enum.map_join(", ", &":#{&1}")) <> "]"
      assert Enum.find(String.split(table, "\n"), &(&1 =~ event)) =~ "`:#{measurement}`"
    end
  end

  test "a run, from its start to its end" do
    {requests, ref} = requests(:sample)

    requests =
      for event <- [
            {:compiling, %{}},
            {:checkpoint, %{size: 0, offset: 0, bytes: ""}},
            {:compiled, %{cached: true}},
            {:progress, progress()},
            {:draws, chunk()},
            {:checkpoint, %{size: 6, offset: 0, bytes: "abc"}},
            {:checkpoint, %{size: 6, offset: 3, bytes: "def"}}
          ],
          reduce: requests,
          do: (requests -> Requests.arrive(requests, 1, event))

    done = %{status: :converged, chains: [chain(10, 1, 100), chain(20, 2, 200)]}
    assert Requests.count(Requests.arrive(requests, 1, {:done, done})) == 0

    own = %{worker: Mine, ref: ref, type: :sample}
    chain = Map.merge(own, %{chain: 1, phase: :sample})

    assert [
             {[:run, :start], %{system_time: _, monotonic_time: began}, ^own},
             {[:compile, :start], %{system_time: _, monotonic_time: compiling}, ^own},
             {[:compile, :stop], %{duration: compiled, monotonic_time: _}, ^own},
             {[:progress], progress, %{chain: 1, phase: :warmup, worker: Mine}},
             {[:draws], %{count: 5}, ^chain},
             {[:checkpoint], %{bytes: 6}, ^own},
             {[:run, :stop], ended, %{status: :converged, ref: ^ref}}
           ] = events()

    assert compiled > 0 and compiling > began
    assert %{draws: 30, divergences: 3, gradients: 300, duration: duration, monotonic_time: now} = ended
    assert duration == now - began and duration > compiled

    assert progress == %{
             iteration: 20,
             total: 290,
             divergences: 2,
             step_size: 0.5,
             tree_depth: 3.0,
             gradients: 140,
             draws: 0,
             gradients_per_second: 900.0
           }

    refute_received {:event, _, _, _}
  end

  test "a run that is taken up again, and one that is given up" do
    log =
      capture_log(
        [level: :info, format: "$metadata|$message\n", metadata: [:nutkin_run, :nutkin_worker]],
        fn ->
          {requests, ref} = requests(:sample)
          requests = Requests.arrive(requests, 1, {:compiling, %{}})
          requests = requests |> Requests.take_up(@gone) |> Requests.ready(@limits)
          assert [{[:run, :start], _, _}, {[:compile, :start], _, _}, failed, resumed] = events()

          assert {[:compile, :exception], %{duration: _}, %{kind: :error, reason: @gone, stacktrace: []}} =
                   failed

          assert {[:run, :resumed], %{system_time: _}, %{reason: @gone, ref: ^ref}} = resumed
          assert Requests.count(Requests.fail(requests, @gone)) == 0
          assert [{[:run, :exception], %{duration: _}, %{reason: @gone, ref: ^ref, type: :sample}}] = events()
        end
      )

    assert log =~ ~r/nutkin_run=<.*> nutkin_worker=Mine \|Mine: a run goes on with the next program/
    assert log =~ ~r/nutkin_run=<.*> .*a run is given up: the worker ended/
  end

  test "a run that its program never had is no news for the log" do
    log =
      capture_log(fn ->
        {requests, _ref} = requests(:sample)
        {unsent, _ref} = {%{requests | limits: nil}, nil}

        unsent =
          Requests.add(unsent, :erlang.alias(), self(), %Request{type: :sample, fields: %{}, blobs: %{}})

        assert Requests.count(unsent) == 2
        Requests.fail(unsent, @gone)
      end)

    assert length(Regex.scan(~r/a run is given up/, log)) == 1
    assert Enum.frequencies(names(events())) == %{[:run, :start] => 2, [:run, :exception] => 2}
  end

  test "runs that nobody waits for end as cancelled, sent or not" do
    {requests, ref} = requests(:sample)
    requests = Requests.abandon(requests, ref)
    assert names(events()) == [[:run, :start]]
    Requests.arrive(requests, 1, {:done, %{status: :cancelled, chains: []}})
    assert [{[:run, :stop], %{draws: 0}, %{status: :cancelled}}] = events()

    ref = :erlang.alias()

    requests =
      Requests.add(Requests.new(Mine), ref, self(), %Request{type: :predict, fields: %{}, blobs: %{}})

    assert Requests.count(Requests.abandon(requests, ref)) == 0
    assert [{[:run, :start], _, _}, {[:run, :stop], _, %{status: :cancelled, type: :predict}}] = events()
    refute_received {^ref, _}
  end

  test "compilations of other requests" do
    {requests, ref} = requests(:compile)
    requests |> Requests.arrive(1, {:compiling, %{}}) |> Requests.arrive(1, {:compiled, %{cached: false}})
    assert [{[:compile, :start], _, %{type: :compile, ref: ^ref}}, {[:compile, :stop], _, stop}] = events()
    assert stop == %{worker: Mine, ref: ref, type: :compile}

    {requests, _ref} = requests(:log_density)
    requests |> Requests.arrive(1, {:compiling, %{}}) |> Requests.arrive(1, {:value, %{value: 1.0}})
    assert [{[:compile, :start], _, _}, {[:compile, :stop], _, %{type: :log_density}}] = events()

    {requests, _ref} = requests(:compile)
    error = CompileFailed.exception("no")
    requests |> Requests.arrive(1, {:compiling, %{}}) |> Requests.arrive(1, {:error, error})
    assert [_start, {[:compile, :exception], _, %{reason: ^error}}] = events()

    {requests, ref} = requests(:sample)
    done = {:done, %{status: :cancelled, chains: []}}
    requests |> Requests.arrive(1, {:compiling, %{}}) |> Requests.cancel(ref) |> Requests.arrive(1, done)

    assert [_run, _start, {[:compile, :exception], _, %{reason: %Cancelled{}}}, {[:run, :stop], _, _}] =
             events()

    # It had all it needs.
    {requests, _ref} = requests(:compile)
    Requests.arrive(requests, 1, {:compiled, %{cached: true}})
    assert events() == []
  end

  test "nothing is emitted, and nothing breaks, without the library", %{stand_in?: stand_in?} do
    if stand_in? do
      unload()
      {requests, ref} = requests(:sample)
      requests = Requests.arrive(requests, 1, {:progress, progress()})
      Requests.arrive(requests, 1, {:done, %{status: :complete, chains: []}})
      assert_received {^ref, {:done, _}}
      refute Code.ensure_loaded?(:telemetry)
      assert events() == []
    end
  end

  describe "a worker" do
    test "that ends, ends its runs" do
      worker = start_worker!(fault_options("never_ready", start_timeout: 30_000))
      {:ok, _pid, ref} = Client.submit(worker, %Request{type: :sample, fields: %{}, blobs: %{}})
      :ok = stop_supervised(worker)
      assert_received {:DOWN, ^ref, :process, _, :shutdown}
      assert_received {:event, [:nutkin, :run, :exception], _, %{reason: %WorkerExit{}, ref: ^ref}}
    end

    @describetag :python

    test "is up, logs, and is down" do
      worker = start_worker!(fault_options("dies_in_mid_frame"))
      assert {:error, error} = Nutkin.ping(worker)
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
      pid = worker_pid(worker)
      assert [first, line, down, second] = Enum.filter(events(), fn {_, _, %{worker: of}} -> of == worker end)
      assert {[:worker, :up], %{duration: _}, %{pid: ^pid, os_pid: os_pid, versions: %{}}} = first
      assert is_integer(os_pid)
      assert {[:worker, :log], %{bytes: 11}, %{level: _, source: _, text: "out of luck", pid: ^pid}} = line
      assert {[:worker, :down], %{uptime: uptime, pause: 0}, %{reason: ^error, pid: ^pid}} = down
      assert uptime > 0
      assert {[:worker, :up], _, %{os_pid: another}} = second
      assert another != os_pid
    end

    test "is down again and again, after pauses" do
      worker = start_worker!(python: "/nowhere/python3")
      eventually(fn -> :sys.get_state(worker_pid(worker)).failures > 1 end)
      assert [{[:worker, :down], %{uptime: 0, pause: 100}, _}, {_, %{pause: 200}, _} | _] = events()
      assert {:error, %WorkerExit{}} = Nutkin.sample(Models.mean(), data: [y: [1.0]], worker: worker)

      assert [{[:run, :start], _, _}, {[:run, :exception], _, %{reason: %WorkerExit{}}}] =
               Enum.filter(events(), &match?({[:run, _], _, _}, &1))
    end

    test "passes on so many lines a second, counts the others, and quotes the last ones" do
      worker = start_worker!(fault_options("talks_too_much"))

      log =
        capture_log(fn ->
          assert {:error, %WorkerExit{log: lines}} = Nutkin.ping(worker)
          assert List.last(lines) == "line 9999"

          assert_receive {:event, [:nutkin, :worker, :lines_left_out], %{count: count}, %{worker: ^worker}},
                         3_000

          assert count == 10_000 - Lines.a_second()
        end)

      assert log =~ "line 0"
      refute log =~ "line #{Lines.a_second()}"
      assert log =~ "#{10_000 - Lines.a_second()} were left out"
      assert Enum.count(events(), &match?({[:worker, :log], _, _}, &1)) == Lines.a_second()
    end
  end

  @tag :port
  test "a run of the engine: every draw is counted, and no tensor is among the metadata" do
    worker = start_worker!(port_options())
    options = [data: [y: [1.0]], worker: worker, draws: 200, chains: 2, keep_warmup: true]
    {:ok, fit} = Nutkin.sample(Models.mean(), options)
    {:ok, _} = Nutkin.compile(Models.mean(), data: [y: [1.0]], worker: worker)
    events = for {_, _, %{worker: ^worker}} = event <- events(), do: event

    counts = Enum.frequencies(names(events))
    assert %{[:worker, :up] => 1, [:run, :start] => 1, [:run, :stop] => 1} = counts
    assert %{[:compile, :start] => 1, [:compile, :stop] => 1, [:checkpoint] => _} = counts

    for phase <- [:warmup, :sample], chain <- 0..1 do
      drawn = for {[:draws], %{count: count}, %{phase: ^phase, chain: ^chain}} <- events, do: count
      expected = if phase == :sample, do: 200, else: Enum.at(fit.chains, chain).warmup
      assert Enum.sum(drawn) == expected
    end

    assert [%{draws: 400, gradients: gradients}] = for({[:run, :stop], measured, _} <- events, do: measured)
    assert gradients == fit.chains |> Enum.map(& &1.gradients) |> Enum.sum()
    refute inspect(events, limit: :infinity, structs: false) =~ "Nutkin.Tensor"
  end
end
