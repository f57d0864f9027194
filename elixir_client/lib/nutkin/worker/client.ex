defmodule Nutkin.Worker.Client do
  @moduledoc false
  # The consumer's half of a request: handing it to a worker, and receiving its answers.

  alias Nutkin.Error.{Timeout, WorkerExit}
  alias Nutkin.{Pool, Protocol, Worker}
  alias Nutkin.Worker.Request

  @typedoc "A moment of `System.monotonic_time(:millisecond)`, or never."
  @type deadline :: integer() | :infinity

  # Milliseconds. A pool answers at once, unless its only worker is being started again.
  @choice_timeout 5_000

  @doc """
  Hands a request over, and says to which worker. The calling process becomes its consumer: it receives `{ref, event}` for
  each answer, and `{:DOWN, ref, :process, _, reason}` if the worker process dies, until `close/2`.
  """
  @spec submit(Worker.t(), Request.t()) :: {:ok, pid(), reference()} | {:error, WorkerExit.t() | Timeout.t()}
  def submit(worker, %Request{} = request) do
    with {:ok, chosen} <- choose(worker) do
      # The alias makes the runtime drop answers that arrive after the demonitor.
      ref = :erlang.monitor(:process, chosen, alias: :demonitor)
      GenServer.cast(chosen, {:submit, ref, self(), request})
      {:ok, chosen, ref}
    end
  end

  # The worker that a pool gives, which a worker is itself.
  defp choose(worker) do
    case GenServer.whereis(worker) do
      nil ->
        {:error, exited(worker, :noproc)}

      server ->
        if other?(server), do: {:error, no_worker(worker)}, else: ask(worker, :choose, @choice_timeout)
    end
  end

  # Whether it is surely something else than a worker or a pool, which would never answer. Of other nodes it is not known.
  defp other?(pid) when is_pid(pid) and node(pid) == node() do
    with {:dictionary, dictionary} <- Process.info(pid, :dictionary),
         {:"$initial_call", {module, _, _}} <- List.keyfind(dictionary, :"$initial_call", 0) do
      module not in [Worker, Pool]
    else
      _ -> false
    end
  end

  defp other?(_server), do: false

  defp no_worker(worker) do
    WorkerExit.exception(
      message: "#{inspect(worker)} is no worker",
      hint: "give the name under which Nutkin.start_link/1 started one"
    )
  end

  @doc """
  Before a consumer waits for a request that it may have heard the last of: if nothing more can come, `:ended` does, behind
  the events that are in the mailbox.
  """
  @spec expect(Worker.t(), reference()) :: :ok
  def expect(worker, ref) do
    if listening?(ref) do
      GenServer.cast(worker, {:expect, ref})
    else
      send(self(), {ref, :ended})
      :ok
    end
  end

  # Whether the alias still stands: it goes with the monitor, when that is closed or has fired. What a process sends
  # itself is in its mailbox at once.
  defp listening?(ref) do
    send(ref, {ref, :listening})

    receive do
      {^ref, :listening} -> true
    after
      0 -> false
    end
  end

  @doc "The next event of a request, `:timeout` at the deadline, or `:ended`, see `expect/2`."
  @spec next(Worker.t(), reference(), deadline()) :: Protocol.event() | :timeout | :ended
  def next(worker, ref, deadline) do
    case remaining(deadline) do
      # Also with events in the mailbox: a consumer that is slower than they come would never be late.
      0 ->
        :timeout

      remaining ->
        receive do
          {^ref, event} -> event
          {:DOWN, ^ref, :process, _worker, reason} -> {:error, exited(worker, reason)}
        after
          remaining -> :timeout
        end
    end
  end

  @doc "Stops listening: cancels the request if it is still open, and takes its messages out of the mailbox."
  @spec close(Worker.t(), reference()) :: :ok
  def close(worker, ref) do
    Process.demonitor(ref, [:flush])
    GenServer.cast(worker, {:forget, ref})
    drop_events(ref)
  end

  defp drop_events(ref) do
    receive do
      {^ref, _event} -> drop_events(ref)
    after
      0 -> :ok
    end
  end

  @doc "Submits a request and returns its last answer, `{:error, _}` among them."
  @spec call(Worker.t(), Request.t(), timeout()) :: Protocol.event()
  def call(worker, request, timeout) do
    {answer, _} = call(worker, request, timeout, nil, fn _event, nil -> nil end)
    answer
  end

  @doc "The same, and what a function makes of the answers before the last one."
  @spec call(Worker.t(), Request.t(), timeout(), acc, (Protocol.event(), acc -> acc)) ::
          {Protocol.event(), acc}
        when acc: term()
  def call(worker, request, timeout, acc, fun) do
    deadline = deadline(timeout)

    case submit(worker, request) do
      {:ok, worker, ref} ->
        try do
          receive_all(worker, ref, request.type, {deadline, timeout, nil}, acc, fun)
        after
          close(worker, ref)
        end

      {:error, error} ->
        {{:error, error}, acc}
    end
  end

  defp receive_all(worker, ref, type, {deadline, timeout, status} = until, acc, fun) do
    case next(worker, ref, deadline) do
      :timeout ->
        {{:error, Timeout.exception(timeout: timeout, hint: hint(status))}, acc}

      {:compiling, _} ->
        receive_all(worker, ref, type, {deadline, timeout, :compiling}, acc, fun)

      event ->
        if Request.last?(type, event),
          do: {event, acc},
          else: receive_all(worker, ref, type, until, fun.(event, acc), fun)
    end
  end

  @doc "What to do about a timeout, by what was being done."
  @spec hint(:compiling | nil) :: String.t() | nil
  def hint(nil), do: nil

  def hint(:compiling) do
    "it was still being compiled, which cannot be interrupted: give it more time, or compile it ahead with " <>
      "Nutkin.compile/2. For some seconds the worker goes on with it, then its program is replaced"
  end

  @doc "Grants `chunks` more draws messages."
  @spec ack(Worker.t(), reference(), pos_integer()) :: :ok
  def ack(worker, ref, chunks), do: GenServer.cast(worker, {:ack, ref, chunks})

  @doc "Asks for the end of a request. Its last answer still comes."
  @spec cancel(Worker.t(), reference()) :: :ok
  def cancel(worker, ref), do: GenServer.cast(worker, {:cancel, ref})

  @doc "Ends a request at once: its last answer is a `Nutkin.Error.Cancelled`."
  @spec drop(Worker.t(), reference()) :: :ok
  def drop(worker, ref), do: GenServer.cast(worker, {:drop, ref})

  @doc "Stops the chains of a run, or lets them go on."
  @spec pause(Worker.t(), reference(), boolean()) :: :ok
  def pause(worker, ref, paused?), do: GenServer.cast(worker, {:pause, ref, paused?})

  @doc "What the program says of a request; `:ended` where it has ended."
  @spec ask(Worker.t(), reference(), :info | :checkpoint, timeout()) ::
          {:ok, term()} | :ended | {:error, WorkerExit.t() | Timeout.t()}
  def ask(worker, ref, name, timeout), do: ask(worker, {:ask, ref, name}, timeout)

  @doc "The states of the workers of a pool, as `Nutkin.info/1` gives them."
  @spec info(Worker.t(), timeout()) :: {:ok, [map()]} | {:error, WorkerExit.t() | Timeout.t()}
  def info(worker, timeout \\ 5_000) do
    with {:ok, workers} <- ask(worker, :workers, timeout) do
      Enum.reduce_while(Enum.reverse(workers), {:ok, []}, fn pid, {:ok, infos} ->
        case ask(pid, :info, timeout) do
          %{} = info -> {:cont, {:ok, [info | infos]}}
          {:error, error} -> {:halt, {:error, error}}
        end
      end)
    end
  end

  defp ask(worker, question, timeout) do
    GenServer.call(worker, question, timeout)
  catch
    :exit, {:timeout, {GenServer, :call, _}} ->
      message = "the worker #{inspect(worker)} did not answer within #{timeout} ms"
      {:error, Timeout.exception(message: message, timeout: timeout, hint: "it is alive but busy: ask again")}

    :exit, {reason, {GenServer, :call, _}} ->
      {:error, exited(worker, reason)}
  end

  @doc "The moment `timeout` milliseconds from now."
  @spec deadline(timeout()) :: deadline()
  def deadline(:infinity), do: :infinity
  def deadline(timeout), do: System.monotonic_time(:millisecond) + timeout

  defp remaining(:infinity), do: :infinity
  defp remaining(deadline), do: max(deadline - System.monotonic_time(:millisecond), 0)

  defp exited(worker, :noproc) when is_pid(worker) do
    WorkerExit.exception(
      message: "the worker #{inspect(worker)} has ended",
      hint: "use the name that it was started under, which is that of its successor too"
    )
  end

  defp exited(worker, :noproc) do
    WorkerExit.exception(
      message: "no worker runs as #{inspect(worker)}",
      hint: "put `{Nutkin, name: #{inspect(worker)}}` into a supervision tree, or call Nutkin.start_link/1"
    )
  end

  defp exited(worker, reason) do
    WorkerExit.exception(
      message: "the worker process #{inspect(worker)} ended: #{Exception.format_exit(reason)}"
    )
  end
end
