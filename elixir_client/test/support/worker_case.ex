defmodule Nutkin.Test.WorkerCase do
  @moduledoc """
  Starts workers for tests: of the port program of this repository, or of one of the faulty programs in test/support/faults.
  Waits for events, always with a deadline.
  """

  use ExUnit.CaseTemplate

  @faults Path.expand("faults", __DIR__)
  @root Path.expand("../../..", __DIR__)

  using do
    quote do
      import Nutkin.Test.WorkerCase
    end
  end

  @doc "The options of a worker that runs the port program of this repository."
  def port_options(opts \\ []) do
    Keyword.merge(
      [
        python: System.fetch_env!("NUTKIN_PYTHON"),
        python_path: [Path.join(@root, "python"), Path.join(@root, "bridge")],
        env: %{"JAX_PLATFORMS" => "cpu"}
      ],
      opts
    )
  end

  @doc "The options of a worker that runs a faulty program."
  def fault_options(fault, opts \\ []) do
    Keyword.merge(
      [
        python: System.fetch_env!("NUTKIN_PYTHON"),
        python_path: [Path.join(@faults, fault), @faults],
        shutdown_timeout: 100
      ],
      opts
    )
  end

  @doc "Starts a worker under the supervisor of the test, and returns its name."
  def start_worker!(opts) do
    name = Module.concat(__MODULE__, "Worker#{System.unique_integer([:positive])}")
    start_supervised!({Nutkin, [name: name] ++ opts}, id: name)
    name
  end

  @doc "The only worker of a pool."
  def worker_pid(worker) do
    {:ok, [%{pid: pid}]} = Nutkin.info(worker)
    pid
  end

  @doc "The process id of the program of the only worker of a pool."
  def os_pid(worker) do
    {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
    os_pid
  end

  @doc "Whether a process of the operating system runs. One that ended and waits to be collected by its parent does not."
  def alive?(os_pid) do
    case File.read("/proc/#{os_pid}/stat") do
      {:ok, stat} -> not (stat =~ ") Z ")
      {:error, _} -> false
    end
  end

  @doc "Kills a process of the operating system as a crash would."
  def kill!(os_pid), do: {_, 0} = System.cmd("kill", ["-KILL", to_string(os_pid)])

  @doc "Evaluates `fun` until it is true; fails after `timeout` milliseconds."
  def eventually(fun, timeout \\ 5_000), do: poll(fun, System.monotonic_time(:millisecond) + timeout)

  # For what sends no message: processes and programs outside of this one.
  defp poll(fun, deadline) do
    cond do
      fun.() ->
        :ok

      System.monotonic_time(:millisecond) > deadline ->
        ExUnit.Assertions.flunk("it did not become true in time")

      true ->
        receive(do: (:never -> :ok), after: (10 -> poll(fun, deadline)))
    end
  end
end
