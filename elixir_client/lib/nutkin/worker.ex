defmodule Nutkin.Worker do
  @moduledoc """
  The process that owns one port program: it starts it, passes requests on, routes answers to whoever asked, and starts
  it again when it ends.

  Use it through `Nutkin`, which starts a pool of them. What is promised here:

    * requests that come before the program is ready wait for it; it is ready before its engine is loaded, so that
      they and their data are on their way meanwhile;
    * a consumer that dies has its request cancelled;
    * when the program ends, it is started again, and open requests are sent to it again: a run goes on from its last
      checkpoint, and its consumer is told `{:resumed, error}`, but misses no draw and gets none twice. A request whose
      programs end three times without any progress, which may be the reason, is answered with that
      `Nutkin.Error.WorkerExit`, and so is at once a run with `resume: false`;
    * a program that ends before it was ever ready, or whose engine cannot be loaded, is started again after a pause that
      doubles up to half a minute; requests are answered with that error in the meantime;
    * the program is asked for a sign of life at every heartbeat; one that has not said anything since the heartbeat
      before counts as ended: it is killed;
    * a program that has become too old or too large is replaced, and its requests go on with the next one;
    * a cancel or an ack never waits behind an upload, and the worker is never blocked by a program that does not read;
    * a program that is to end is asked to, gets SIGTERM if it has not after a while, and SIGKILL if that does not help.

  What the program logs or prints goes to `Logger`, with the metadata `:nutkin_worker` (the name) and
  `:nutkin_source` (`"stdout"`, `"stderr"` or `"nutkin"`): at most #{Nutkin.Worker.Lines.a_second()} lines a second, the others
  are counted. What the worker itself says of one run has `:nutkin_run` too, the `:ref` of the `Nutkin.Run`. For numbers
  there is `Nutkin.Telemetry`.
  """

  use GenServer

  require Logger

  alias Nutkin.Error.WorkerExit
  alias Nutkin.{Pool, Protocol, Telemetry}
  alias Nutkin.Worker.{Hello, Lines, Outbox, Program, Requests, Retired}

  # A program that was ready is started again at once, but not forever if it never answers anything in between.
  @failures_at_once 3

  # The pauses otherwise, in milliseconds.
  @first_pause 100
  @longest_pause 30_000

  # How soon a port that was busy is tried again: the runtime does not tell when it has room.
  @busy_pause 1

  # How long runs have for a checkpoint before their program is replaced, in milliseconds.
  @checkpoint_pause 500

  # The exit status of a program that could not load its engine, and of one that asks to be replaced.
  @engine_cannot_start 70
  @replace_me 75

  # phase: :starting (a port that has not said hello), :ready, :down (no port; `error` says why)
  # timer: of the start, of the heartbeat, or of the pause while down
  # heard?: whether anything arrived since the last heartbeat
  # loaded?: whether the engine has said anything, before which it has no time for a sign of life
  # resident: bytes of the program at the last heartbeat
  # recycling: why the program is about to be replaced
  # retired: the programs before this one that have not ended yet
  # reported: the last reason for being down that was logged as an error, nil once the program has answered anything
  defstruct [
    :program,
    :options,
    :label,
    :load,
    :port,
    :os_pid,
    :hello,
    :error,
    :timer,
    :started,
    :resident,
    :recycling,
    :reported,
    :requests,
    :lines,
    phase: :down,
    failures: 0,
    retired: Retired.new(),
    flushing?: false,
    heard?: false,
    loaded?: false
  ]

  @typedoc "A pool or one of its workers: the name that the pool was started under, or a pid."
  @type t :: GenServer.server()

  @doc "Starts a worker with the checked options of its pool, at its place there."
  @spec start_link(Nutkin.Worker.Options.valid(), Pool.load()) :: GenServer.on_start()
  def start_link(options, load), do: GenServer.start_link(__MODULE__, {options, load})

  @doc "Milliseconds that it takes at most to end a program that does not end when it is asked to."
  @spec kill_timeout() :: pos_integer()
  def kill_timeout, do: Retired.term_timeout() + 3_000

  @impl true
  def init({options, {_loads, place} = load}) do
    Process.flag(:trap_exit, true)
    # Before the one who starts the pool can ask for it.
    Pool.join(options.name, place)
    label = if options.workers == 1, do: options.name, else: {options.name, place}

    state = %__MODULE__{
      program: Program.new(options),
      options: options,
      label: label,
      load: load,
      requests: Requests.new(label),
      lines: Lines.new(label)
    }

    {:ok, state, {:continue, :open}}
  end

  @impl true
  def handle_continue(:open, state), do: noreply(open(state))

  @impl true
  def handle_call(:choose, _from, state), do: {:reply, {:ok, self()}, state}
  def handle_call(:workers, _from, state), do: {:reply, {:ok, [self()]}, state}

  def handle_call(:info, _from, state) do
    hello = Map.take(state.hello || %{}, [:protocol, :versions, :limits])
    own = %{pid: self(), requests: Requests.count(state.requests), seconds: seconds(state)}

    {:reply, hello |> Map.merge(own) |> Map.merge(Map.take(state, [:phase, :os_pid, :error, :resident])),
     state}
  end

  def handle_call({:ask, ref, name}, from, state),
    do: noreply(update(state, &Requests.ask(&1, ref, name, from)))

  @impl true
  def handle_cast({:submit, ref, consumer, request}, state) do
    state = update(state, &Requests.add(&1, ref, consumer, request))
    noreply(if state.phase == :down, do: update(state, &Requests.fail(&1, state.error)), else: state)
  end

  def handle_cast({:ack, ref, chunks}, state), do: noreply(update(state, &Requests.grant(&1, ref, chunks)))

  def handle_cast({:pause, ref, paused?}, state),
    do: noreply(update(state, &Requests.pause(&1, ref, paused?)))

  def handle_cast({:cancel, ref}, state), do: noreply(update(state, &Requests.cancel(&1, ref)))
  def handle_cast({:drop, ref}, state), do: noreply(update(state, &Requests.drop(&1, ref)))
  def handle_cast({:forget, ref}, state), do: noreply(update(state, &Requests.abandon(&1, ref)))

  # Behind the last event of a request that has ended, so that a consumer that has seen it does not wait for ever.
  def handle_cast({:expect, ref}, state) do
    if Requests.fetch(state.requests, ref) == :error, do: send(ref, {ref, :ended})
    noreply(state)
  end

  @impl true
  def handle_info({port, {:data, frame}}, %{port: port} = state) do
    case Protocol.read(frame) do
      {:ok, id, event} -> noreply(receive_event(event, id, %{state | heard?: true}))
      {:error, error} -> noreply(give_up(state, error))
    end
  end

  def handle_info({port, {:exit_status, @replace_me}}, %{port: port} = state) do
    noreply(replaced(%{state | port: nil}, "a compilation had to be ended"))
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = state) do
    noreply(lost(state, ended(state, status)))
  end

  # Without an exit status: a write failed because the program is gone, or because it closed its input and lives on.
  def handle_info({:EXIT, port, _reason}, %{port: port} = state),
    do: noreply(give_up(state, ended(state, nil)))

  def handle_info({port, {:exit_status, _status}}, state) when is_port(port) do
    noreply(%{state | retired: Retired.ended(state.retired, port)})
  end

  # Of ports that were given up before, and of tasks that have ended.
  def handle_info({port, _message}, state) when is_port(port), do: noreply(state)
  def handle_info({:EXIT, _other, _reason}, state), do: noreply(state)

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    noreply(update(state, &Requests.abandon(&1, monitor)))
  end

  def handle_info(:flush, state), do: noreply(%{state | flushing?: false})

  def handle_info({:timeout, timer, {:retired, port}}, state) do
    noreply(%{state | retired: Retired.escalate(state.retired, port, timer)})
  end

  def handle_info({:timeout, _timer, :second_of_lines}, state),
    do: noreply(%{state | lines: Lines.next_second(state.lines)})

  def handle_info({:timeout, timer, what}, %{timer: timer} = state), do: noreply(time_is_up(what, state))

  def handle_info({:timeout, timer, :recycle}, %{recycling: {timer, reason}} = state) do
    noreply(recycle(state, reason))
  end

  def handle_info({:timeout, _old, _what}, state), do: noreply(state)

  def handle_info(message, state) do
    Logger.warning("an unexpected message: #{inspect(message, limit: 10)}", metadata(state))
    noreply(state)
  end

  @impl true
  def terminate(_reason, state) do
    Requests.close(state.requests)
    state = if state.port, do: retire(state), else: state
    Retired.await(state.retired)
  end

  defp update(state, fun), do: %{state | requests: fun.(state.requests)}

  defp noreply(state) do
    state = flush(state)
    Pool.put_load(state.load, Requests.count(state.requests), state.phase != :down)
    {:noreply, state}
  end

  # The life of the program

  defp open(state) do
    case Program.open(state.program) do
      {:ok, port, os_pid} ->
        timer = :erlang.start_timer(state.options.start_timeout, self(), :start)
        %{state | phase: :starting, port: port, os_pid: os_pid, timer: timer, error: nil, started: now()}

      {:error, error} ->
        lost(%{state | phase: :starting}, error)
    end
  end

  defp time_is_up(:open, state), do: open(state)

  defp time_is_up(:start, state) do
    error =
      WorkerExit.exception(
        message: "the worker was not ready within #{state.options.start_timeout} ms",
        log: Lines.last(state.lines),
        hint: "raise start_timeout: if the machine is slow"
      )

    give_up(state, error)
  end

  defp time_is_up(:heartbeat, %{heard?: true} = state) do
    start_heartbeat(update(%{state | heard?: false}, &Requests.ping/1))
  end

  defp time_is_up(:heartbeat, state) do
    if not state.loaded? and now() - state.started < state.options.start_timeout,
      do: start_heartbeat(state),
      else: silent(state)
  end

  defp silent(state) do
    message = "the worker has not answered for #{state.options.heartbeat} ms and was killed"
    give_up(state, WorkerExit.exception(message: message, log: Lines.last(state.lines)))
  end

  defp start_heartbeat(state) do
    %{state | timer: :erlang.start_timer(state.options.heartbeat, self(), :heartbeat)}
  end

  defp ended(%{phase: phase} = state, status) when phase == :starting or status == @engine_cannot_start do
    Program.never_ready(state.program, status, Lines.last(state.lines))
  end

  defp ended(state, status) do
    WorkerExit.exception(message: "the worker ended", status: status, log: Lines.last(state.lines))
  end

  # What the program says cannot be trusted any more, or it says nothing.
  defp give_up(state, error) do
    Program.kill(state.port, state.os_pid)
    lost(state, error)
  end

  # The port is gone: it is started again, at once or after a pause, and until then everyone is told.
  defp lost(state, error) do
    state = report(state, "#{inspect(state.label)}: #{Exception.message(error)}")
    begun? = state.phase == :ready or killed?(error)
    at_once? = begun? and state.failures < @failures_at_once and not hopeless?(error)
    pause = min(@first_pause * 2 ** min(state.failures, 10), @longest_pause)
    Telemetry.down(state.label, uptime(state), if(at_once?, do: 0, else: pause), error)
    state = without_program(%{state | failures: state.failures + 1})

    if at_once? do
      open(update(state, &Requests.take_up(&1, error)))
    else
      state = update(state, &Requests.fail(&1, error))
      %{state | phase: :down, error: error, timer: :erlang.start_timer(pause, self(), :open)}
    end
  end

  defp without_program(state) do
    if state.timer, do: :erlang.cancel_timer(state.timer)

    %{
      state
      | port: nil,
        os_pid: nil,
        hello: nil,
        timer: nil,
        started: nil,
        loaded?: false,
        resident: nil,
        recycling: nil,
        lines: Lines.forget(state.lines)
    }
  end

  # By a signal, which says nothing about the next one, also before it was ready.
  defp killed?(error), do: match?(%WorkerExit{status: status} when is_integer(status) and status > 128, error)

  defp hopeless?(error), do: match?(%WorkerExit{status: @engine_cannot_start}, error)

  # A program that cannot be started fails in the same way again and again: that is said once.
  defp report(state, text) do
    level = if text == state.reported, do: :debug, else: :error
    Logger.log(level, text, metadata(state))
    %{state | reported: text}
  end

  # Replacing a program that works

  defp outgrown(%{recycling: nil, resident: resident, options: options} = state) do
    cond do
      options.max_resident && resident > options.max_resident ->
        recycle_soon(state, "it has grown to #{div(resident, 1_048_576)} MiB")

      options.max_age && now() - state.started > options.max_age ->
        recycle_soon(state, "it has run for #{round(seconds(state))} s")

      true ->
        state
    end
  end

  defp outgrown(state), do: state

  defp recycle_soon(state, reason) do
    pause = if Requests.count(state.requests) == 0, do: 0, else: @checkpoint_pause
    timer = :erlang.start_timer(pause, self(), :recycle)
    update(%{state | recycling: {timer, reason}}, &Requests.ask_for_checkpoints/1)
  end

  defp recycle(state, reason), do: state |> retire() |> replaced(reason)

  # It is asked to end, and may take its time: the next one need not wait.
  defp retire(state) do
    asked? = Program.write(state.port, Protocol.frame("shutdown", 0, Protocol.body(%{}))) == :ok
    timeout = if asked?, do: state.options.shutdown_timeout, else: 0
    %{state | retired: Retired.add(state.retired, state.port, state.os_pid, timeout), port: nil}
  end

  defp replaced(state, reason) do
    Logger.info("#{inspect(state.label)}: the worker is replaced: #{reason}", metadata(state))
    Telemetry.replaced(state.label, uptime(state), reason)
    error = WorkerExit.exception(message: "the worker was replaced: #{reason}")
    state |> without_program() |> update(&Requests.take_up(&1, error)) |> open()
  end

  defp now, do: System.monotonic_time(:millisecond)

  # Of the program, in milliseconds.
  defp uptime(%{started: nil}), do: 0
  defp uptime(state), do: now() - state.started

  defp seconds(state), do: uptime(state) / 1000

  # What arrives

  defp receive_event({:hello, hello}, _id, %{phase: :starting} = state) do
    case Hello.check(hello) do
      :ok ->
        :erlang.cancel_timer(state.timer)
        Telemetry.up(state.label, uptime(state), %{os_pid: state.os_pid, versions: hello.versions})
        state = start_heartbeat(%{state | phase: :ready, hello: hello})
        update(state, &Requests.ready(&1, hello.limits))

      {:error, error} ->
        give_up(state, error)
    end
  end

  defp receive_event({:log, line}, _id, state), do: log(state, line)

  defp receive_event({:error, error}, 0, state) do
    log(state, %{level: :error, source: "nutkin", text: Exception.message(error)})
  end

  defp receive_event({:pong, pong} = event, id, state) do
    state = %{state | reported: nil, failures: 0, loaded?: true, resident: pong.resident}
    state |> update(&Requests.arrive(&1, id, event)) |> outgrown()
  end

  defp receive_event(event, id, state) do
    state = update(%{state | reported: nil, loaded?: true}, &Requests.arrive(&1, id, event))
    # It has taken a request in hand, not more than that.
    if elem(event, 0) in [:need, :compiling], do: state, else: %{state | failures: 0}
  end

  defp log(state, line), do: %{state | lines: Lines.put(state.lines, line)}

  # Of the worker's own words.
  defp metadata(state), do: [nutkin_worker: state.label, nutkin_source: "nutkin"]

  # Writing. Control messages are written one after another; after a chunk of an upload the mailbox has its turn.

  defp flush(%{phase: phase, flushing?: flushing?} = state) when phase != :ready or flushing?, do: state

  defp flush(state) do
    with {kind, frame, rest} <- Outbox.next(state.requests.outbox),
         :ok <- Program.write(state.port, frame) do
      state = put_in(state.requests.outbox, rest)
      if kind == :control, do: flush(state), else: flush_later(state, 0)
    else
      :busy -> flush_later(state, @busy_pause)
      # Empty; or closed, and then the port's exit message is on its way.
      _nothing_to_do -> state
    end
  end

  defp flush_later(state, pause) do
    if pause == 0, do: send(self(), :flush), else: Process.send_after(self(), :flush, pause)
    %{state | flushing?: true}
  end
end
