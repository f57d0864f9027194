defmodule Nutkin.WorkerTest do
  use Nutkin.Test.WorkerCase, async: true

  import ExUnit.CaptureLog

  alias Nutkin.Error.{InvalidData, LimitExceeded, Protocol, Timeout, WorkerExit}
  alias Nutkin.Worker.{Client, Request}

  doctest Nutkin.Worker

  @moduletag :python
  @moduletag :capture_log

  describe "a program that does not become ready" do
    test "because there is no such Python" do
      worker = start_worker!(python: "/nowhere/python3")
      assert {:error, %WorkerExit{status: nil} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "/nowhere/python3 does not exist or cannot be executed"
      assert Exception.message(error) =~ "NUTKIN_PYTHON"
      assert {:ok, [%{phase: :down, os_pid: nil, error: ^error}]} = Nutkin.info(worker)
    end

    test "because the file is not executable" do
      worker = start_worker!(python: __ENV__.file)
      assert {:error, %WorkerExit{} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "cannot be executed"
    end

    test "because it cannot be imported: the error has Python's own words" do
      worker = start_worker!(fault_options("fails_to_import"))
      assert {:error, %WorkerExit{status: 1} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "ended before it was ready"
      assert Exception.message(error) =~ "ImportError: libxla is for another machine"
      assert Exception.message(error) =~ "-m nutkin_port` to see why"
    end

    test "because a package that it needs is missing: the hint is to install it" do
      worker = start_worker!(fault_options("lacks_a_package"))
      assert {:error, %WorkerExit{status: 1} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "No module named 'msgpack_of_nobody'"
      assert error.hint =~ "install the package nutkin into that Python"
    end

    test "because its Python is too old to know -P" do
      %{folder: folder} = Nutkin.Test.TemporaryFolder.temporary_folder()
      python = Path.join(folder, "python3.9")
      File.write!(python, "#!/bin/sh\n[ $2 = -c ] && echo \"Unknown option: $1\"\nexit 2\n")
      File.chmod!(python, 0o755)
      worker = start_worker!(python: python)
      assert {:error, %WorkerExit{status: 2, log: ["Unknown option: -P"]} = error} = Nutkin.ping(worker)
      assert error.hint =~ "needs Python 3.11 or later"
    end

    test "because its engine cannot be loaded: its last lines, the hint, and a pause before the next start" do
      worker = start_worker!(fault_options("cannot_load_its_engine"))
      assert {:error, %WorkerExit{status: 70} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "ended before it was ready"
      assert [_traceback, last] = error.log
      assert last =~ "the engine cannot start: ModuleNotFoundError: No module named 'jax'"
      assert error.hint =~ "install the package nutkin into that Python"
      assert {:ok, [%{phase: :down, error: ^error}]} = Nutkin.info(worker)
    end

    test "because its engine cannot be loaded, again: that is an error in the log only once" do
      log =
        capture_log([level: :error, format: "$level $message\n"], fn ->
          worker = start_worker!(fault_options("cannot_load_its_engine"))
          pid = worker_pid(worker)

          for failures <- 1..3 do
            eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
            assert {:error, %WorkerExit{status: 70}} = Nutkin.ping(worker)
            assert :sys.get_state(pid).failures >= failures
          end
        end)

      assert [_once] = log |> String.split("\n") |> Enum.filter(&(&1 =~ "ended before it was ready"))
    end

    test "in the same way again: that is an error in the log only once" do
      levels = fn level ->
        capture_log([level: level, format: "$level $message\n"], fn ->
          worker = start_worker!(python: "/nowhere/python3")
          pid = worker_pid(worker)
          # It has failed three times at least.
          eventually(fn -> :sys.get_state(pid).failures > 2 end)
          stop_supervised!(worker)
        end)
        |> String.split("\n")
        |> Enum.count(&(&1 =~ "/nowhere/python3 does not exist"))
      end

      assert levels.(:error) == 1
      assert levels.(:debug) > 2
    end

    test "is tried again, with pauses that grow" do
      worker = start_worker!(fault_options("fails_to_import"))

      starts =
        for _ <- 1..3 do
          assert {:error, %WorkerExit{}} = Nutkin.ping(worker)
          down = System.monotonic_time(:millisecond)
          eventually(fn -> match?({:ok, [%{phase: :starting}]}, Nutkin.info(worker)) end)
          System.monotonic_time(:millisecond) - down
        end

      assert [_first, second, third] = starts
      assert second >= 150 and third >= 300
    end

    test "because it says nothing in time" do
      worker = start_worker!(fault_options("never_ready", start_timeout: 500))
      assert {:error, %WorkerExit{log: ["still loading"]} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "not ready within 500 ms"
    end

    test "because it speaks another version of the protocol" do
      worker = start_worker!(fault_options("other_protocol"))
      assert {:error, %Protocol{expected: "version 1", found: "version 2"}} = Nutkin.ping(worker)
    end

    test "because it reports no limits" do
      worker = start_worker!(fault_options("forgets_limits"))
      assert {:error, %Protocol{path: "$.limits"}} = Nutkin.ping(worker)
    end
  end

  describe "a program that fails later" do
    test "in the middle of a frame: status and last lines are told, and it is started again" do
      worker = start_worker!(fault_options("dies_in_mid_frame"))
      assert {:error, %WorkerExit{status: 3, log: ["out of luck"]}} = Nutkin.ping(worker)
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
    end

    test "with bytes that are not msgpack: it is killed and started again" do
      worker = start_worker!(fault_options("talks_nonsense"))
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
      {:ok, [%{os_pid: first}]} = Nutkin.info(worker)
      assert {:error, %Protocol{} = error} = Nutkin.ping(worker)
      assert Exception.message(error) =~ "not msgpack"
      eventually(fn -> not alive?(first) end)
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
    end

    test "by a kill: the signal is named" do
      worker = start_worker!(fault_options("never_ready", start_timeout: 30_000))
      {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
      {:ok, _worker, ref} = Client.submit(worker, Request.new(:ping, %{}))
      kill!(os_pid)
      assert_receive {^ref, {:error, %WorkerExit{status: 137} = error}}, 5_000
      assert Exception.message(error) =~ "SIGKILL"
    end

    test "by closing its input: there is no exit status, but an error at once" do
      worker = start_worker!(fault_options("closes_its_input"))
      {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
      assert {:error, %WorkerExit{status: nil}} = Nutkin.ping(worker, 5_000)
      eventually(fn -> not alive?(os_pid) end)
    end

    test "by a frame that wedges the port: the heartbeat finds out" do
      worker = start_worker!(fault_options("sends_huge_header", heartbeat: 300, start_timeout: 500))
      assert {:error, %WorkerExit{} = error} = Nutkin.ping(worker, 5_000)
      assert Exception.message(error) =~ "has not answered for 300 ms"
    end

    test "again and again without an answer: it is not started at once for ever" do
      worker = start_worker!(fault_options("dies_when_asked"))

      phases =
        for _ <- 1..5 do
          assert {:error, %WorkerExit{}} = Nutkin.ping(worker)
          {:ok, [%{phase: phase}]} = Nutkin.info(worker)
          phase
        end

      assert Enum.take(phases, 3) == [:starting, :starting, :starting]
      assert :down in phases
    end

    test "by asking for data that the request does not have" do
      worker = start_worker!(fault_options("asks_for_unknown"))
      request = Request.new(:compile, %{})
      assert {:error, %Protocol{found: "000102" <> _}} = Client.call(worker, request, 5_000)
      assert {:ok, %{seconds: 0.5}} = Nutkin.ping(worker)
    end
  end

  describe "a program that does not read" do
    setup do
      worker = start_worker!(fault_options("never_reads"))
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
      %{worker: worker}
    end

    test "does not block the worker", %{worker: worker} do
      large = Request.new(:compile, %{text: String.duplicate("x", 1_000_000)})
      for _ <- 1..4, do: {:ok, _, _} = Client.submit(worker, large)
      assert {:error, %Timeout{timeout: 100}} = Nutkin.ping(worker, 100)
      assert {:ok, [%{phase: :ready}]} = Nutkin.info(worker)
    end

    test "refuses a request that is larger than a frame before it is written", %{worker: worker} do
      request = Request.new(:compile, %{text: String.duplicate("x", 17_000_000)})

      assert {:error, %LimitExceeded{expected: "at most 16777216 bytes"}} =
               Client.call(worker, request, 5_000)
    end
  end

  describe "the end of a worker" do
    test "kills a program that ignores everything" do
      worker = start_worker!(fault_options("ignores_the_end"))
      eventually(fn -> match?({:ok, [%{phase: :ready}]}, Nutkin.info(worker)) end)
      {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
      assert alive?(os_pid)
      :ok = stop_supervised(worker)
      eventually(fn -> not alive?(os_pid) end)
    end

    test "is an error for whoever waits" do
      worker = start_worker!(fault_options("never_ready"))
      {:ok, pid, ref} = Client.submit(worker, Request.new(:ping, %{}))
      :ok = stop_supervised(worker)
      assert {:error, %WorkerExit{} = error} = Client.next(pid, ref, Client.deadline(1_000))
      assert Exception.message(error) =~ "ended: shutdown"
    end
  end

  describe "requests that wait for the program" do
    setup do
      %{worker: start_worker!(fault_options("never_ready", start_timeout: 30_000))}
    end

    test "can be cancelled", %{worker: worker} do
      {:ok, worker, ref} = Client.submit(worker, Request.new(:sample, %{}))
      Client.cancel(worker, ref)
      assert_receive {^ref, {:done, %{status: :cancelled, chains: []}}}
      {:ok, worker, ref} = Client.submit(worker, Request.new(:compile, %{}))
      Client.cancel(worker, ref)
      assert_receive {^ref, {:error, %Nutkin.Error.Cancelled{}}}
    end

    test "leave nothing in the mailbox after a timeout", %{worker: worker} do
      assert {:error, %Timeout{timeout: 10}} = Nutkin.ping(worker, 10)
      # Everything before this call has been handled by then.
      {:ok, _} = Nutkin.info(worker)
      refute_received _
      assert {:monitors, []} = Process.info(self(), :monitors)
    end

    test "go with their consumer", %{worker: worker} do
      consumer = spawn(fn -> Client.call(worker, Request.new(:ping, %{}), :infinity) end)
      pid = worker_pid(worker)
      eventually(fn -> consumer in monitored(pid) end)
      Process.exit(consumer, :kill)
      eventually(fn -> consumer not in monitored(pid) end)
      assert :sys.get_state(pid).requests.entries == %{}
    end
  end

  test "a worker that is too busy to answer is not taken for dead" do
    worker = start_worker!(fault_options("asks_for_unknown"))
    pid = worker_pid(worker)
    :sys.suspend(pid)
    assert {:error, %Timeout{timeout: 50} = error} = Client.info(worker, 50)
    assert Exception.message(error) =~ "did not answer within 50 ms; it is alive but busy"
    :sys.resume(pid)
    assert {:ok, [%{phase: _}]} = Client.info(worker)
  end

  test "the default worker has the default name in its logs" do
    options = Nutkin.Worker.Options.validate!([])
    {:ok, state, _} = Nutkin.Worker.init({options, {:counters.new(1, []), 1}})
    assert state.label == Nutkin
    {:ok, state, _} = Nutkin.Worker.init({%{options | workers: 2}, {:counters.new(2, []), 2}})
    assert state.label == {Nutkin, 2}
  end

  test "no worker of that name" do
    assert {:error, %WorkerExit{} = error} = Nutkin.ping(:nobody)
    assert Exception.message(error) =~ "no worker runs as :nobody"
    assert {:error, %WorkerExit{}} = Nutkin.info(:nobody)
    assert {:error, %WorkerExit{}} = Nutkin.sample(Nutkin.Model.build(fn -> :ok end), worker: :nobody)
  end

  test "a process that is no worker, or no longer" do
    {:ok, agent} = Agent.start_link(fn -> 0 end)
    assert {:error, %WorkerExit{} = error} = Nutkin.ping(agent)
    assert Exception.message(error) =~ "#{inspect(agent)} is no worker; give the name"
    Agent.stop(agent)
    assert {:error, %WorkerExit{} = error} = Nutkin.ping(agent)
    assert Exception.message(error) =~ "has ended; use the name"
  end

  test "an option that does not exist" do
    assert_raise ArgumentError, ~r/unknown option :pyton/, fn -> Nutkin.start_link(pyton: "x") end
  end

  test "a stray message does no harm" do
    worker = start_worker!(fault_options("asks_for_unknown"))

    log =
      capture_log(fn ->
        send(worker_pid(worker), :hello?)
        send(worker, :hello?)
        assert {:ok, _} = Nutkin.ping(worker)
      end)

    assert log =~ "an unexpected message: :hello?"
  end

  test "what the program logs goes to Logger, with its source" do
    log =
      capture_log([metadata: [:nutkin_source], format: "$level $metadata$message\n"], fn ->
        worker = start_worker!(fault_options("never_ready", start_timeout: 300))
        {:error, %WorkerExit{}} = Nutkin.ping(worker)
      end)

    assert log =~ "nutkin_source=stderr still loading"
  end

  test "wrong data is found before anything is sent" do
    model = Nutkin.Model.build(fn -> Nutkin.Model.Language.data(:y) end)
    assert {:error, %InvalidData{node: "y"}} = Nutkin.sample(model, worker: :nobody)
  end

  defp monitored(pid) do
    {:monitors, monitors} = Process.info(pid, :monitors)
    for {:process, monitored} <- monitors, do: monitored
  end
end
