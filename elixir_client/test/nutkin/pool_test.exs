defmodule Nutkin.PoolTest do
  use Nutkin.Test.WorkerCase, async: true

  alias Nutkin.Error.WorkerExit
  alias Nutkin.Pool
  alias Nutkin.Worker.{Client, Request}

  @moduletag :capture_log

  # Workers of which only their load matters.
  defp pool(count) do
    loads = :counters.new(count, [:atomics])
    name = :"#{__MODULE__}#{System.unique_integer([:positive])}"
    start_supervised!({Pool, {name, loads}} |> Supervisor.child_spec(id: name))

    workers =
      for place <- 1..count//1 do
        pid =
          start_supervised!(
            Supervisor.child_spec({Agent, fn -> Pool.join(name, place) end}, id: {name, place})
          )

        {place, pid}
      end

    %{name: name, loads: loads, workers: Map.new(workers)}
  end

  defp choose(%{name: name}) do
    {:ok, pid} = GenServer.call(name, :choose)
    pid
  end

  test "the least loaded worker is next, those alike take turns" do
    %{loads: loads, workers: workers} = pool = pool(3)
    assert Enum.sort(for _ <- 1..3, do: choose(pool)) == Enum.sort(Map.values(workers))
    Pool.put_load({loads, 1}, 5, true)
    Pool.put_load({loads, 2}, 0, true)
    Pool.put_load({loads, 3}, 2, true)
    assert for(_ <- 1..4, do: choose(pool)) |> Enum.frequencies() == %{workers[2] => 3, workers[3] => 1}
  end

  test "one without a program comes last" do
    %{loads: loads, workers: workers} = pool = pool(2)
    Pool.put_load({loads, 1}, 0, false)
    Pool.put_load({loads, 2}, 100, true)
    assert choose(pool) == workers[2]
    Pool.put_load({loads, 2}, 100, false)
    assert choose(pool) == workers[1]
  end

  test "one that ended is not chosen, and whoever asks waits for a worker" do
    %{name: name, workers: workers} = pool = pool(1)
    :ok = stop_supervised({name, 1})
    refute Process.alive?(workers[1])
    eventually(fn -> GenServer.call(name, :workers) == {:ok, []} end)
    asking = Task.async(fn -> choose(pool) end)
    eventually(fn -> :sys.get_state(name).waiting != [] end)
    Pool.join(name, 1)
    assert Task.await(asking) == self()
  end

  describe "a pool of programs" do
    @describetag :python

    test "has as many as it says, each by itself" do
      worker = start_worker!(fault_options("asks_for_unknown", workers: 3))

      eventually(fn ->
        match?({:ok, [%{phase: :ready}, %{phase: :ready}, %{phase: :ready}]}, Nutkin.info(worker))
      end)

      {:ok, infos} = Nutkin.info(worker)
      assert infos |> Enum.map(& &1.os_pid) |> Enum.uniq() |> length() == 3
      kill!(hd(infos).os_pid)
      killed = hd(infos).os_pid

      eventually(fn ->
        match?({:ok, [%{phase: :ready, os_pid: pid}, _, _]} when pid != killed, Nutkin.info(worker))
      end)

      {:ok, [_again | others]} = Nutkin.info(worker)
      assert Enum.map(others, & &1.os_pid) == infos |> tl() |> Enum.map(& &1.os_pid)
    end

    test "starts a worker again that crashes, and its consumers are told" do
      worker = start_worker!(fault_options("never_ready", workers: 2))
      {:ok, pid, ref} = Client.submit(worker, Request.new(:ping, %{}))
      os_pid = Enum.find_value(elem(Nutkin.info(worker), 1), &(&1.pid == pid && &1.os_pid))
      Process.exit(pid, :kill)
      assert {:error, %WorkerExit{}} = Client.next(pid, ref, Client.deadline(1_000))
      eventually(fn -> match?({:ok, [%{}, %{}]}, Nutkin.info(worker)) end)
      eventually(fn -> not alive?(os_pid) end)
    end

    test "is found under one name once" do
      worker = start_worker!(fault_options("never_ready"))
      pool = Process.whereis(worker)
      Process.flag(:trap_exit, true)

      assert {:error, {:already_started, ^pool}} =
               Nutkin.start_link(fault_options("never_ready", name: worker))
    end
  end
end
