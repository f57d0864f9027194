defmodule Nutkin.Worker do
  @moduledoc """
  The process that owns one port program: it starts it, passes requests on, routes answers to whoever asked, and starts
  it again when it ends.

  Use it through `Nutkin`; its messages are those of `Nutkin.Worker.Client`. What is promised here:

    * requests that come before the program is ready wait for it; it is ready before its engine is loaded, so that
      they and their data are on their way meanwhile;
    * a consumer that dies has its request cancelled;
    * when the program ends, every open request is answered with a `Nutkin.Error.WorkerExit` at once, and the program
      is started again, so that the next request works. One that ends before it was ever ready, or whose engine cannot
      be loaded, is started again after a pause that doubles up to half a minute; requests are answered with that error
      in the meantime;
    * the program is asked for a sign of life at every heartbeat; one that has not said anything since the heartbeat
      before counts as ended: it is killed;
    * a cancel or an ack never waits behind an upload, and the worker is never blocked by a program that does not read.

  What the program logs or prints goes to `Logger`, with the metadata `:nutkin_worker` (the name) and
  `:nutkin_source` (`"stdout"`, `"stderr"` or `"nutkin"`).
  """

  use GenServer

  require Logger

  alias Nutkin.Error
  alias Nutkin.Error.{Cancelled, LimitExceeded, WorkerExit}
  alias Nutkin.Protocol
  alias Nutkin.Worker.{Hello, Options, Outbox, Program, Request, Requests}

  # A program that was ready is started again at once, but not forever if it never answers anything in between.
  @failures_at_once 3

  # The pauses otherwise, in milliseconds.
  @first_pause 100
  @longest_pause 30_000

  # How soon a port that was busy is tried again: the runtime does not tell when it has room.
  @busy_pause 1

  @kept_lines 20

  # The exit status of a program that said hello and could not load its engine.
  @engine_cannot_start 70

  # phase: :starting (a port that has not said hello), :ready, :down (no port; `error` says why)
  # timer: of the start, of the heartbeat, or of the pause while down
  # heard?: whether anything arrived since the last heartbeat
  # reported: the last reason for being down that was logged as an error, nil once the program has answered anything
  defstruct [
    :program,
    :label,
    :start_timeout,
    :heartbeat,
    :shutdown_timeout,
    :port,
    :os_pid,
    :hello,
    :error,
    :timer,
    :reported,
    phase: :down,
    failures: 0,
    requests: Requests.new(),
    outbox: Outbox.new(),
    flushing?: false,
    heard?: false,
    log: []
  ]

  @typedoc "A worker: its pid, or the name it was started under."
  @type t :: GenServer.server()

  @doc """
  Starts a worker. The options are those of `Nutkin.start_link/1`; a wrong one raises `ArgumentError`.
  """
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(opts) do
    options = Options.validate!(opts)
    GenServer.start_link(__MODULE__, options, name: options.name)
  end

  @doc """
  The child specification: its id is the name, so that several workers go under one supervisor.

      iex> Nutkin.Worker.child_spec(name: MyApp.Nutkin).id
      MyApp.Nutkin
  """
  @spec child_spec(keyword()) :: Supervisor.child_spec()
  def child_spec(opts) do
    options = Options.validate!(opts)

    %{
      id: options.name,
      start: {__MODULE__, :start_link, [opts]},
      shutdown: options.shutdown_timeout + 3_000
    }
  end

  @impl true
  def init(options) do
    Process.flag(:trap_exit, true)

    state = %__MODULE__{
      program: Program.new(options),
      label: options.name,
      start_timeout: options.start_timeout,
      heartbeat: options.heartbeat,
      shutdown_timeout: options.shutdown_timeout
    }

    {:ok, state, {:continue, :open}}
  end

  @impl true
  def handle_continue(:open, state), do: {:noreply, open(state)}

  @impl true
  def handle_call(:info, _from, state) do
    hello = Map.take(state.hello || %{}, [:protocol, :versions, :limits])
    {:reply, Map.merge(hello, Map.take(state, [:phase, :os_pid, :error])), state}
  end

  @impl true
  def handle_cast({:submit, ref, _consumer, _request}, %{phase: :down} = state) do
    send(ref, {ref, {:error, state.error}})
    {:noreply, state}
  end

  def handle_cast({:submit, ref, consumer, request}, state) do
    {entry, requests} = Requests.add(state.requests, ref, consumer, request)
    state = %{state | requests: requests}
    {:noreply, if(state.phase == :ready, do: state |> dispatch(entry) |> flush(), else: state)}
  end

  def handle_cast({:ack, ref, chunks}, state), do: {:noreply, with_entry(state, ref, &grant(&1, &2, chunks))}
  def handle_cast({:cancel, ref}, state), do: {:noreply, with_entry(state, ref, &cancel_open/2)}
  def handle_cast({:forget, ref}, state), do: {:noreply, with_entry(state, ref, &abandon/2)}

  # Behind the last event of a request that has ended, so that a consumer that has seen it does not wait for ever.
  def handle_cast({:expect, ref}, state) do
    if Requests.fetch(state.requests, ref) == :error, do: send(ref, {ref, :ended})
    {:noreply, state}
  end

  @impl true
  def handle_info({port, {:data, frame}}, %{port: port} = state) do
    case Protocol.read(frame) do
      {:ok, id, event} -> {:noreply, receive_event(event, id, %{state | heard?: true})}
      {:error, error} -> {:noreply, give_up(state, error)}
    end
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = state) do
    {:noreply, lost(state, ended(state, status))}
  end

  # Without an exit status: a write failed because the program is gone, or because it closed its input and lives on.
  def handle_info({:EXIT, port, _reason}, %{port: port} = state) do
    {:noreply, give_up(state, ended(state, nil))}
  end

  # Of ports that were given up before, and of tasks that have ended.
  def handle_info({port, _message}, state) when is_port(port), do: {:noreply, state}
  def handle_info({:EXIT, _other, _reason}, state), do: {:noreply, state}

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    {:noreply, with_entry(state, monitor, &abandon/2)}
  end

  def handle_info(:flush, state), do: {:noreply, flush(%{state | flushing?: false})}

  def handle_info({:timeout, timer, :open}, %{timer: timer} = state), do: {:noreply, open(state)}

  def handle_info({:timeout, timer, :start}, %{timer: timer} = state) do
    error =
      WorkerExit.exception(
        message: "the worker was not ready within #{state.start_timeout} ms",
        log: Enum.reverse(state.log),
        hint: "raise start_timeout: if the machine is slow"
      )

    {:noreply, give_up(state, error)}
  end

  def handle_info({:timeout, timer, :heartbeat}, %{timer: timer, heard?: true} = state) do
    {id, requests} = Requests.take_id(state.requests)
    ping = Protocol.frame("ping", id, Protocol.body(%{}))
    state = %{state | requests: requests, outbox: Outbox.push(state.outbox, ping), heard?: false}
    {:noreply, state |> flush() |> start_heartbeat()}
  end

  def handle_info({:timeout, timer, :heartbeat}, %{timer: timer} = state) do
    error =
      WorkerExit.exception(message: "the worker has not answered for #{state.heartbeat} ms and was killed")

    {:noreply, give_up(state, %{error | log: Enum.reverse(state.log)})}
  end

  def handle_info({:timeout, _old, _what}, state), do: {:noreply, state}

  def handle_info(message, state) do
    Logger.warning("an unexpected message: #{inspect(message, limit: 10)}", metadata(state, "nutkin"))
    {:noreply, state}
  end

  @impl true
  def terminate(_reason, %{port: nil}), do: :ok

  # The program ends by itself at the end of its input; asked first, it also says what is still to be said.
  def terminate(_reason, %{port: port} = state) do
    case Program.write(port, Protocol.frame("shutdown", 0, Protocol.body(%{}))) do
      :ok -> await_end(state, System.monotonic_time(:millisecond) + state.shutdown_timeout)
      _busy_or_closed -> Program.kill(port, state.os_pid)
    end
  end

  defp await_end(%{port: port} = state, deadline) do
    receive do
      {^port, {:exit_status, _}} -> :ok
      {^port, {:data, _}} -> await_end(state, deadline)
    after
      max(deadline - System.monotonic_time(:millisecond), 0) -> Program.kill(port, state.os_pid)
    end
  end

  # The life of the program

  defp open(state) do
    case Program.open(state.program) do
      {:ok, port, os_pid} ->
        timer = :erlang.start_timer(state.start_timeout, self(), :start)
        %{state | phase: :starting, port: port, os_pid: os_pid, timer: timer, error: nil}

      {:error, error} ->
        lost(%{state | phase: :starting}, error)
    end
  end

  defp start_heartbeat(state), do: %{state | timer: :erlang.start_timer(state.heartbeat, self(), :heartbeat)}

  defp ended(%{phase: phase} = state, status) when phase == :starting or status == @engine_cannot_start do
    Program.never_ready(state.program, status, Enum.reverse(state.log))
  end

  defp ended(state, status) do
    WorkerExit.exception(message: "the worker ended", status: status, log: Enum.reverse(state.log))
  end

  # What the program says cannot be trusted any more, or it says nothing.
  defp give_up(state, error) do
    Program.kill(state.port, state.os_pid)
    lost(state, error)
  end

  # The port is gone: everyone is told, then it is started again.
  defp lost(state, error) do
    state = report(state, "#{inspect(state.label)}: #{Exception.message(error)}")
    state = state.requests |> Requests.all() |> Enum.reduce(state, &answer(&2, &1, {:error, error}))
    if state.timer, do: :erlang.cancel_timer(state.timer)
    at_once? = state.phase == :ready and state.failures < @failures_at_once and not hopeless?(error)
    pause = min(@first_pause * 2 ** min(state.failures, 10), @longest_pause)
    failures = state.failures + 1

    state = %{
      state
      | port: nil,
        os_pid: nil,
        hello: nil,
        timer: nil,
        failures: failures,
        outbox: Outbox.new(),
        log: []
    }

    if at_once?,
      do: open(state),
      else: %{state | phase: :down, error: error, timer: :erlang.start_timer(pause, self(), :open)}
  end

  defp hopeless?(error), do: match?(%WorkerExit{status: @engine_cannot_start}, error)

  # A program that cannot be started fails in the same way again and again: that is said once.
  defp report(state, text) do
    level = if text == state.reported, do: :debug, else: :error
    Logger.log(level, text, metadata(state, "nutkin"))
    %{state | reported: text}
  end

  # What arrives

  defp receive_event({:hello, hello}, _id, %{phase: :starting} = state) do
    case Hello.check(hello) do
      :ok ->
        :erlang.cancel_timer(state.timer)
        state = start_heartbeat(%{state | phase: :ready, hello: hello})
        state.requests |> Requests.all() |> Enum.reduce(state, &dispatch(&2, &1)) |> flush()

      {:error, error} ->
        give_up(state, error)
    end
  end

  defp receive_event({:log, line}, _id, state), do: log(state, line)

  defp receive_event({:error, error}, 0, state) do
    log(state, %{level: :error, source: "nutkin", text: Exception.message(error)})
  end

  defp receive_event(event, id, state), do: with_entry(%{state | reported: nil}, id, &route(&1, &2, event))

  defp route(state, entry, {:need, addresses}) do
    case Enum.reject(addresses, &is_map_key(entry.request.blobs, &1)) do
      [] ->
        chunk = state.hello.limits["chunk"]
        blobs = Enum.map(addresses, &Map.fetch!(entry.request.blobs, &1))
        flush(%{state | outbox: Enum.reduce(blobs, state.outbox, &Outbox.upload(&2, entry.id, &1, chunk))})

      [unknown | _] ->
        error =
          Error.Protocol.exception(
            message: "the worker asks for data that the request does not have",
            found: Base.encode16(unknown, case: :lower)
          )

        state |> post("cancel", entry, %{}) |> answer(entry, {:error, error})
    end
  end

  defp route(state, entry, event) do
    if Request.last?(entry.request.type, event) do
      answer(%{state | failures: 0}, entry, event)
    else
      Requests.tell(entry, event)
      state
    end
  end

  defp log(state, %{level: level, source: source, text: text}) do
    # A copy, since a line would keep its whole frame in memory.
    text = :binary.copy(text)
    Logger.log(level, text, metadata(state, source))
    %{state | log: Enum.take([text | state.log], @kept_lines)}
  end

  defp metadata(state, source), do: [nutkin_worker: state.label, nutkin_source: source]

  # Requests. One that has ended in the meantime is none of anybody's business.

  defp with_entry(state, id_or_reference, fun) do
    case Requests.fetch(state.requests, id_or_reference) do
      {:ok, entry} -> fun.(state, entry)
      :error -> state
    end
  end

  defp dispatch(state, %{request: request} = entry) do
    frame = request.type |> Atom.to_string() |> Protocol.frame(entry.id, request.body)
    size = IO.iodata_length(frame)
    limit = state.hello.limits["frame"]

    if size > limit do
      error =
        LimitExceeded.exception(
          message: "the request does not fit into one frame",
          expected: "at most #{limit} bytes",
          found: "#{size}",
          hint: "give large arrays as data or as tensors, which travel apart from the request"
        )

      answer(state, entry, {:error, error})
    else
      entry = %{entry | sent?: true}

      state = %{
        state
        | requests: Requests.update(state.requests, entry),
          outbox: Outbox.push(state.outbox, frame)
      }

      if entry.granted > 0, do: post(state, "ack", entry, %{chunks: entry.granted}), else: state
    end
  end

  defp grant(state, %{sent?: true} = entry, chunks), do: post(state, "ack", entry, %{chunks: chunks})

  defp grant(state, entry, chunks) do
    %{state | requests: Requests.update(state.requests, %{entry | granted: entry.granted + chunks})}
  end

  defp cancel_open(state, %{sent?: true} = entry), do: post(state, "cancel", entry, %{})

  defp cancel_open(state, %{request: %{type: type}} = entry) when type in [:sample, :predict] do
    answer(
      state,
      entry,
      {:done,
       %{status: :cancelled, chains: [], pilot: nil, seconds: %{compile: 0.0, warmup: 0.0, sample: 0.0}}}
    )
  end

  defp cancel_open(state, entry) do
    answer(state, entry, {:error, Cancelled.exception("the request was cancelled")})
  end

  # A request that was sent stays open until the program has answered the cancel: only then is its id free again.
  defp abandon(state, %{sent?: true} = entry) do
    post(%{state | requests: Requests.orphan(state.requests, entry)}, "cancel", entry, %{})
  end

  defp abandon(state, entry), do: %{state | requests: Requests.remove(state.requests, entry)}

  defp answer(state, entry, event) do
    Requests.tell(entry, event)
    outbox = Outbox.drop_uploads(state.outbox, entry.id)
    %{state | requests: Requests.remove(state.requests, entry), outbox: outbox}
  end

  # Writing

  defp post(state, type, entry, body) do
    frame = Protocol.frame(type, entry.id, Protocol.body(body))
    flush(%{state | outbox: Outbox.push(state.outbox, frame)})
  end

  # Control messages are written one after another; after a chunk of an upload the mailbox has its turn.
  defp flush(%{port: nil} = state), do: state

  defp flush(state) do
    with {kind, frame, rest} <- Outbox.next(state.outbox),
         :ok <- Program.write(state.port, frame) do
      state = %{state | outbox: rest}
      if kind == :control, do: flush(state), else: flush_later(state, 0)
    else
      :busy -> flush_later(state, @busy_pause)
      # Empty; or closed, and then the port's exit message is on its way.
      _nothing_to_do -> state
    end
  end

  defp flush_later(%{flushing?: true} = state, _pause), do: state

  defp flush_later(state, pause) do
    if pause == 0, do: send(self(), :flush), else: Process.send_after(self(), :flush, pause)
    %{state | flushing?: true}
  end
end
