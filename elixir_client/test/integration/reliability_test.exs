defmodule Nutkin.ReliabilityTest do
  @moduledoc """
  Each test is a row of docs/reliability.md, under the same name.
  """

  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Test.TemporaryFolder

  alias Nutkin.{Draws, Fit, Model, Tensor}
  alias Nutkin.Error.{LimitExceeded, Protocol, WorkerExit}
  alias Nutkin.Test.Models

  require Model

  @moduletag :port
  @moduletag :capture_log

  # More than can be drawn in the time of a test.
  @endless 1_000_000_000

  @document Path.expand("../../../docs/reliability.md", __DIR__)

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    fit = Nutkin.sample!(Models.mean(), data: [y: [1.0]], draws: 3000, seed: 5, worker: name)
    %{worker: name, whole: Fit.tensor(fit, :mu).data}
  end

  defp start!(worker, opts \\ []) do
    opts = Keyword.merge([data: [y: [1.0]], draws: 3000, seed: 5, worker: worker], opts)
    {:ok, run} = Nutkin.start_run(Models.mean(), opts)
    run
  end

  defp next_draws(%{ref: ref}) do
    assert_receive {^ref, {:draws, draws}}, 60_000
    draws
  end

  # All draws of a run of which some chunks were received before.
  defp joined!(received, run) do
    {:ok, fit} = Nutkin.await(run)
    rest = for {_chain, chunks} <- fit.draws.sample, chunk <- chunks, do: chunk

    for {_chain, chunks} <- (received ++ rest) |> Enum.group_by(& &1.chain) |> Enum.sort(), into: <<>> do
      {_upto, values} =
        chunks
        |> Enum.sort_by(& &1.start)
        |> Enum.reduce({0, []}, fn %Draws{} = draws, {upto, values} ->
          assert draws.start == upto, "a gap or a repeat at #{draws.start}, after #{upto}"
          {upto + draws.count, [values | draws.variables["mu"].data]}
        end)

      IO.iodata_to_binary(values)
    end
  end

  test "the document has a row for each test" do
    rows =
      for "| " <> row <- @document |> File.read!() |> String.split("\n"),
          do: row |> String.split(" |") |> hd()

    tests = for %{name: name, describe_line: nil} <- __MODULE__.__ex_unit__().tests, do: to_string(name)
    named = for "test " <> name <- tests, name != "the document has a row for each test", do: name
    assert named -- rows == []
  end

  # One that is asked to end says first what it has.
  for {signal, status} <- [SIGKILL: 137, SIGSEGV: 139, SIGTERM: 0] do
    test "the program gets #{signal} while it samples", %{whole: whole} do
      worker = start_worker!(port_options())
      run = start!(worker, credit: 1)
      first = next_draws(run)
      "SIG" <> signal = to_string(unquote(signal))
      {_, 0} = System.cmd("kill", ["-#{signal}", to_string(os_pid(worker))])
      ref = run.ref

      assert_receive {^ref, {:resumed, %WorkerExit{status: unquote(status)}}}, 5_000
      assert joined!([first], run) == whole
    end
  end

  test "the program is stopped by SIGSTOP", %{whole: whole} do
    worker = start_worker!(port_options(heartbeat: 500))
    {:ok, _} = Nutkin.ping(worker)
    run = start!(worker, credit: 1)
    first = next_draws(run)
    stopped = os_pid(worker)
    {_, 0} = System.cmd("kill", ["-STOP", to_string(stopped)])
    ref = run.ref
    assert_receive {^ref, {:resumed, error}}, 5_000
    assert Exception.message(error) =~ "the worker has not answered for 500 ms and was killed"
    eventually(fn -> not alive?(stopped) end)
    assert joined!([first], run) == whole
  end

  test "there is no memory for a tensor" do
    %{folder: folder} = temporary_folder()
    python = script(folder, "ulimit -v 12000000", System.fetch_env!("NUTKIN_PYTHON"))
    worker = start_worker!(port_options(python: python))
    {:ok, before} = Nutkin.sample(Models.mean(), data: [y: [1.0]], draws: 10, worker: worker)
    first = os_pid(worker)

    large =
      Model.model do
        mu <~ normal(0, 1)
        factor(:large, sum(exp(mu * iota({2_000_000_000}, type: :f64))))
      end

    assert {:error, error} = Nutkin.log_density(large, [0.0], worker: worker, timeout: 60_000)
    assert %LimitExceeded{} = error
    assert Exception.message(error) =~ "there is not enough memory"
    assert {:ok, again} = Nutkin.sample(Models.mean(), data: [y: [1.0]], draws: 10, worker: worker)
    assert Fit.tensor(again, :mu) == Fit.tensor(before, :mu)
    assert os_pid(worker) == first
  end

  # A Python in other surroundings.
  defp script(folder, command, python) do
    path = Path.join(folder, "python")
    File.write!(path, "#!/bin/sh\n#{command}\nexec #{python} \"$@\"\n")
    File.chmod!(path, 0o755)
    path
  end

  for {name, fault} <- [
        {"the program ends in mid-frame, again and again", "dies_in_mid_frame"},
        {"the program writes garbage, again and again", "talks_nonsense"},
        {"the program announces a frame of 2 GB, again and again", "sends_huge_header"}
      ] do
    test name do
      worker = start_worker!(fault_options(unquote(fault), heartbeat: 200, start_timeout: 300))

      assert {:error, %error{}} =
               Nutkin.sample(Models.mean(), data: [y: [1.0]], worker: worker, timeout: 20_000)

      assert error in [WorkerExit, Protocol]
      eventually(fn -> match?({:ok, [%{phase: :ready, requests: 0}]}, Nutkin.info(worker)) end)
    end
  end

  test "the worker process crashes" do
    worker = start_worker!(port_options())
    run = start!(worker, draws: @endless)
    next_draws(run)
    program = os_pid(worker)
    Process.exit(run.worker, :kill)
    assert {:error, %WorkerExit{} = error} = Nutkin.await(run)
    assert Exception.message(error) =~ "ended: killed"
    eventually(fn -> not alive?(program) end)
    assert {:ok, %Fit{}} = Nutkin.sample(Models.mean(), data: [y: [1.0]], draws: 10, worker: worker)
  end

  test "the consumer is killed", %{worker: worker} do
    test = self()

    consumer =
      spawn(fn ->
        run = start!(worker, draws: @endless)
        send(test, {:started, run})
        Process.sleep(:infinity)
      end)

    assert_receive {:started, _run}, 10_000
    Process.exit(consumer, :kill)
    eventually(fn -> match?({:ok, %{requests: 0}}, Nutkin.ping(worker)) end)
  end

  for {how, halt} <- [{"killed", "kill"}, {"shut down", "System.stop()"}] do
    test "the node is #{how} while its worker samples" do
      script = """
      {:ok, _} = Nutkin.start_link(#{inspect(port_options())})
      {:ok, run} = Nutkin.start_run(Nutkin.Test.Models.mean(), data: [y: [1.0]], draws: #{@endless}, credit: 1_000_000)
      ref = run.ref
      receive do: ({^ref, {:draws, _}} -> :ok)
      {:ok, [%{os_pid: os_pid}]} = Nutkin.info()
      IO.puts("busy \#{os_pid}")
      #{if unquote(halt) == "kill", do: "", else: unquote(halt)}
      Process.sleep(:infinity)
      """

      options = [:binary, :exit_status, line: 1000, args: ["-pa", ebin(), "-e", script]]
      beam = Port.open({:spawn_executable, System.find_executable("elixir")}, options)
      {:os_pid, beam_pid} = Port.info(beam, :os_pid)
      assert_receive {^beam, {:data, {:eol, "busy " <> os_pid}}}, 60_000
      if unquote(halt) == "kill", do: kill!(beam_pid)
      eventually(fn -> not alive?(os_pid) end)
    end
  end

  defp ebin, do: Path.join(Mix.Project.app_path(), "ebin")

  defp cached_worker!(cache, opts \\ []) do
    start_worker!(port_options([env: %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => cache}] ++ opts))
  end

  defp sample!(worker) do
    fit = Nutkin.sample!(Models.mean(), data: [y: [1.0]], draws: 3000, seed: 5, worker: worker)
    {Fit.tensor(fit, :mu).data, fit.compiled.cached}
  end

  test "the folder of compiled programs cannot be written, is full, or is damaged", %{whole: whole} do
    %{folder: folder} = temporary_folder()
    # Nothing can be below a file.
    file = Path.join(folder, "file")
    File.write!(file, "")
    assert {^whole, false} = sample!(cached_worker!(Path.join(file, "cache")))

    # What is written ends as on a full disk: after a few bytes.
    full = script(folder, "ulimit -f 1", System.fetch_env!("NUTKIN_PYTHON"))
    assert {^whole, false} = sample!(cached_worker!(Path.join(folder, "full"), python: full))

    cache = Path.join(folder, "cache")
    assert {^whole, false} = sample!(cached_worker!(cache))
    programs = fn -> Path.wildcard(Path.join(cache, "**/*.program")) end
    eventually(fn -> programs.() != [] end)

    for path <- programs.() do
      <<head::binary-size(100), _::8, rest::binary>> = File.read!(path)
      File.write!(path, head <> <<0>> <> rest)
    end

    assert {^whole, false} = sample!(cached_worker!(cache))
  end

  test "the clock jumps by hours", %{whole: whole} do
    %{folder: folder} = temporary_folder()

    File.write!(Path.join(folder, "sitecustomize.py"), """
    import random, time
    def jumping(clock=time.time): return clock() + random.choice([-7200, 0, 7200])
    time.time = jumping
    """)

    opts = port_options()
    worker = start_worker!(Keyword.put(opts, :python_path, [folder | opts[:python_path]]))
    run = start!(worker, max_time: 60_000, checkpoint_every: 20)
    assert joined!([], run) == whole
  end

  test "the program writes a gigabyte to its standard output", %{whole: whole} do
    %{folder: folder} = temporary_folder()

    File.write!(Path.join(folder, "sitecustomize.py"), """
    import os, threading, time
    def flood():
        time.sleep(2)
        lines = b"again and again\\n" * 60000
        for _ in range(1000):
            rest = memoryview(lines)
            while rest: rest = rest[os.write(1, rest):]
    threading.Thread(target=flood, daemon=True).start()
    """)

    opts = port_options()
    worker = start_worker!(Keyword.put(opts, :python_path, [folder | opts[:python_path]]))
    {:ok, _} = Nutkin.ping(worker)
    pid = worker_pid(worker)
    deadline = System.monotonic_time(:millisecond) + 4_000

    Stream.repeatedly(fn ->
      assert joined!([], start!(worker)) == whole
      {:message_queue_len, waiting} = Process.info(pid, :message_queue_len)
      assert waiting < 1_200
    end)
    |> Enum.find(fn _ -> System.monotonic_time(:millisecond) > deadline end)
  end

  test "two thousand small runs, one after the other", %{worker: worker} do
    run = fn seed ->
      opts = [data: [y: [seed / 1]], draws: 4, warmup: 20, chains: 1, seed: seed, worker: worker]
      %Fit{status: :complete} = Nutkin.sample!(Models.mean(), opts)
    end

    Enum.each(1..200, run)
    before = measured(worker)
    Enum.each(201..2000, run)
    later = measured(worker)
    assert later.processes == before.processes and later.ports == before.ports
    assert later.atoms - before.atoms < 100
    assert later.descriptors == before.descriptors
    assert later.memory - before.memory < 5_000_000
    assert later.resident - before.resident < 20_000_000
  end

  defp measured(worker) do
    {:ok, pong} = Nutkin.ping(worker)
    memory = collected()
    {:ok, descriptors} = File.ls("/proc/#{os_pid(worker)}/fd")

    %{
      processes: length(Process.list()),
      ports: length(Port.list()),
      atoms: :erlang.system_info(:atom_count),
      memory: memory,
      descriptors: length(descriptors),
      resident: pong.resident
    }
  end

  test "a hundred runs at once on two cores", %{worker: worker, whole: whole} do
    start = fn _ -> Task.async(fn -> joined!([], start!(worker)) end) end
    assert 1..100 |> Enum.map(start) |> Task.await_many(60_000) |> Enum.uniq() == [whole]
  end

  # Bytes of the BEAM after what is not needed is gone.
  defp collected do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)
    :erlang.memory(:total)
  end

  # 100 kB a draw.
  defp wide do
    Model.model do
      mu <~ normal(0, 1)
      deterministic(:x, mu + iota({12_500}, type: :f64))
    end
  end

  test "a trace of a gigabyte is streamed to a consumer that folds it", %{worker: worker} do
    base = collected()

    {sum, most} =
      wide()
      |> Nutkin.stream(draws: 2_500, worker: worker)
      |> Enum.reduce({0, 0}, fn draws, {count, most} ->
        {count + byte_size(draws.variables["x"].data), max(most, :erlang.memory(:total))}
      end)

    assert sum == 4 * 2_500 * 100_000
    assert most - base < 30_000_000
  end

  test "a consumer that is a hundred times slower than the sampler", %{worker: worker} do
    run = fn -> Nutkin.stream(wide(), draws: @endless, credit: 4, worker: worker) end
    run.() |> Enum.take(5)
    {:ok, %{resident: resident}} = Nutkin.ping(worker)
    base = collected()

    run.()
    |> Stream.each(fn _ ->
      Process.sleep(50)
      {:message_queue_len, waiting} = Process.info(self(), :message_queue_len)
      assert waiting <= 4 + 30
      assert :erlang.memory(:total) - base < 30_000_000
      {:message_queue_len, waiting} = Process.info(worker_pid(worker), :message_queue_len)
      assert waiting < 20
    end)
    |> Stream.take(40)
    |> Stream.run()

    {:ok, %{resident: later}} = Nutkin.ping(worker)
    assert later - resident < 30_000_000
  end

  test "a draw is as it was, whatever became of the run in the meantime", %{whole: whole} do
    # Chunks, credit, pauses, workers and kills at random.
    worker = start_worker!(port_options(workers: 2))
    seed = :rand.uniform(1_000_000)
    :rand.seed(:exsss, {seed, 0, 0})

    for i <- 1..20 do
      run = start!(worker, credit: Enum.random([0, 1, 3, 1000]), checkpoint_every: Enum.random([5, 50, nil]))
      disturbances = Enum.map(1..Enum.random(1..8), fn _ -> Enum.random([:take, :pause, :checkpoint]) end)
      kills = List.duplicate(:kill, Enum.random(0..2))
      received = (disturbances ++ kills) |> Enum.shuffle() |> Enum.reduce([], &disturb(run, &1, &2))
      assert joined!(received, run) == whole, "case #{i} of seed #{seed}"
    end
  end

  defp disturb(%{ref: ref} = run, what, received) do
    Nutkin.Run.ack(run, Enum.random(1..3))

    case what do
      :take -> :ok
      :pause -> Nutkin.Run.pause(run)
      :checkpoint -> {:ok, _} = Nutkin.Run.info(run)
      :kill -> kill(GenServer.call(run.worker, :info).os_pid)
    end

    Nutkin.Run.resume(run)

    receive do
      {^ref, {:draws, draws}} -> [draws | received]
    after
      Enum.random([0, 5, 300]) -> received
    end
  end

  # It may have ended a moment ago.
  defp kill(os_pid), do: System.cmd("kill", ["-KILL", to_string(os_pid)], stderr_to_stdout: true)

  test "eighty megabytes are on their way when the program is killed" do
    worker = start_worker!(port_options())
    numbers = Tensor.from_binary(:binary.copy(<<1.0::float-little-64>>, 10_000_000), :f64, {10_000_000})
    asked = Task.async(fn -> Nutkin.log_density(Models.mean(), [0.0], data: [y: numbers], worker: worker) end)
    eventually(fn -> match?({:ok, [%{requests: 1, phase: :ready}]}, Nutkin.info(worker)) end)
    kill!(os_pid(worker))
    assert {:ok, %{value: value}} = Task.await(asked, 60_000)
    assert_in_delta value / 1.0e7, -0.5 - 0.5 * :math.log(2 * :math.pi()), 1.0e-6
  end
end
