defmodule Nutkin.Run do
  @moduledoc """
  A run: sampling that goes on in a worker while the process that started it, its consumer, receives the draws.

  `Nutkin.sample/2` waits for a run, `Nutkin.stream/2` makes it an enumerable. With `Nutkin.start_run/2` the consumer
  receives messages instead, `{run.ref, event}`:

    * `{:compiling, %{}}` - the model is compiled now, which takes seconds; not for one that is at hand
    * `{:compiled, info}` - see `t:Nutkin.Protocol.compiled/0`
    * `{:progress, %Nutkin.Progress{}}`
    * `{:draws, %Nutkin.Draws{}}`
    * `{:resumed, exception}` - the program has ended or was replaced, and the run went on with the next one: no draw is
      missing, and none comes twice
    * `{:done, summary}` - the last one, see `t:Nutkin.Protocol.done/0`
    * `{:error, exception}` - the last one

  and `{:DOWN, run.ref, :process, _, _}`, the last one too, if the worker process dies. The worker sends as many `:draws`
  messages as the option `:credit` says, and one more for each `ack/2`. Without acks it stops sampling, and neither
  `:done` nor an error comes: so a slow consumer has neither a full mailbox nor a lost draw. After the last event call
  `close/1`. When the consumer dies, the run is cancelled.

  While it goes on, `pause/1`, `resume/1`, `info/1`, `checkpoint/1` and `cancel/2` may be called from any process. They take effect
  when the chains have ended what they are at, a twentieth of a second or one draw, whichever is longer.

  So a LiveView or a GenServer can show the posterior while it grows:

      defmodule MyApp.Posterior do
        use GenServer

        def start_link({model, data}), do: GenServer.start_link(__MODULE__, {model, data})

        @impl true
        def init({model, data}) do
          case Nutkin.start_run(model, data: data) do
            {:ok, run} -> {:ok, %{run: run, ref: run.ref, mu: [], progress: %{}, status: :running}}
            {:error, error} -> {:stop, error}
          end
        end

        @impl true
        def handle_info({ref, {:draws, draws}}, %{ref: ref} = state) do
          # Only now may the worker send one more: it never is further ahead than this process can follow.
          Nutkin.Run.ack(state.run)
          {:noreply, %{state | mu: [Nutkin.Draws.fetch!(draws, :mu) | state.mu]}}
        end

        def handle_info({ref, {:progress, progress}}, %{ref: ref} = state) do
          {:noreply, put_in(state.progress[progress.chain], progress)}
        end

        def handle_info({ref, {name, _}}, %{ref: ref} = state) when name in [:compiling, :compiled, :resumed] do
          {:noreply, state}
        end

        def handle_info({ref, {:done, done}}, %{ref: ref} = state), do: {:noreply, ended(state, done.status)}
        def handle_info({ref, {:error, error}}, %{ref: ref} = state), do: {:noreply, ended(state, error)}

        def handle_info({:DOWN, ref, :process, _worker, reason}, %{ref: ref} = state) do
          {:noreply, ended(state, reason)}
        end

        defp ended(state, status) do
          Nutkin.Run.close(state.run)
          %{state | status: status}
        end
      end
  """

  alias Nutkin.Error.Timeout
  alias Nutkin.Fit
  alias Nutkin.Progress.Display
  alias Nutkin.Worker.{Client, Request}

  @enforce_keys [:ref, :worker, :owner, :options]
  @derive {Inspect, only: [:ref, :worker, :owner]}
  defstruct @enforce_keys

  @type t :: %__MODULE__{
          ref: reference(),
          worker: Nutkin.Worker.t(),
          owner: pid(),
          options: Nutkin.Options.valid()
        }

  # How long a run that was cancelled because its time is up may take to hand over what it has, in milliseconds.
  @grace 1_000

  @doc false
  @spec start(Request.t(), Nutkin.Options.valid()) :: {:ok, t()} | {:error, Nutkin.Error.t()}
  def start(request, options) do
    with {:ok, worker, ref} <- Client.submit(options.worker, request) do
      {:ok, %__MODULE__{ref: ref, worker: worker, owner: self(), options: options}}
    end
  end

  @doc """
  Grants `chunks` more `:draws` messages.
  """
  @spec ack(t(), pos_integer()) :: :ok
  def ack(%__MODULE__{} = run, chunks \\ 1) when is_integer(chunks) and chunks > 0 do
    Client.ack(run.worker, run.ref, chunks)
  end

  @doc """
  Asks the worker to end the run. With `:keep`, what it has drawn so far comes, as far as there is credit, then
  `{:done, %{status: :cancelled}}`; with `:drop` only `{:error, %Nutkin.Error.Cancelled{}}`, at once.
  """
  @spec cancel(t(), :keep | :drop) :: :ok
  def cancel(run, draws \\ :keep)
  def cancel(%__MODULE__{} = run, :keep), do: Client.cancel(run.worker, run.ref)
  def cancel(%__MODULE__{} = run, :drop), do: Client.drop(run.worker, run.ref)

  @doc """
  Stops the chains where they are, until `resume/1`. A run that is paused holds no thread. It changes no draw.
  """
  @spec pause(t()) :: :ok
  def pause(%__MODULE__{} = run), do: Client.pause(run.worker, run.ref, true)

  @doc """
  Lets the chains of a paused run go on.
  """
  @spec resume(t()) :: :ok
  def resume(%__MODULE__{} = run), do: Client.pause(run.worker, run.ref, false)

  @doc """
  How far the run is, see `t:Nutkin.Protocol.info/0`; `{:ok, :ended}` where it has ended.
  """
  @spec info(t(), timeout()) :: {:ok, Nutkin.Protocol.info() | :ended} | {:error, Nutkin.Error.t()}
  def info(%__MODULE__{} = run, timeout \\ 5_000) do
    with :ended <- Client.ask(run.worker, run.ref, :info, timeout), do: {:ok, :ended}
  end

  @doc """
  The run as it is now, for `Nutkin.resume/2`: also while it is paused, or its consumer is slow. The run goes on.

  What goes on from it sends the draws behind those that the consumer has received, or has in its mailbox, when this
  returns: neither a gap nor a repeat, where the consumer itself asks. A run that has ended has it in `{:done, %{checkpoint: checkpoint}}`; here it is
  an `ArgumentError`.
  """
  @spec checkpoint(t(), timeout()) :: {:ok, Nutkin.Checkpoint.t()} | {:error, Nutkin.Error.t()}
  def checkpoint(%__MODULE__{} = run, timeout \\ 5_000) do
    with :ended <- Client.ask(run.worker, run.ref, :checkpoint, timeout) do
      raise ArgumentError, "this run has ended: its checkpoint came with `{:done, _}`, and is in the fit"
    end
  end

  @doc """
  Stops listening to the run: cancels it if it still goes on, and takes its messages out of the mailbox.
  """
  @spec close(t()) :: :ok
  def close(%__MODULE__{} = run) do
    check_owner!(run)
    Client.close(run.worker, run.ref)
  end

  @doc false
  # `fit`: what there is already.
  @spec await(t(), Client.deadline(), timeout(), Fit.t() | nil) :: {:ok, Fit.t()} | {:error, Nutkin.Error.t()}
  def await(run, deadline, timeout, fit \\ nil) do
    check_owner!(run)
    fit = fit || Fit.new(run.options)
    # One ack, for a run without credit and for chunks that were received before and not acknowledged.
    ack(run)
    Client.expect(run.worker, run.ref)

    try do
      case collect(run, fit, Display.new(run.options), deadline) do
        {:ended, result} -> result
        {:time_is_up, fit, display} -> finish_late(run, fit, display, timeout)
      end
    after
      Client.close(run.worker, run.ref)
    end
  end

  defp finish_late(run, fit, display, timeout) do
    cancel(run)
    error = Timeout.exception(timeout: timeout, hint: Client.hint(fit.status))

    case collect(run, fit, display, Client.deadline(@grace)) do
      {:ended, {:ok, %Fit{status: :cancelled} = fit}} -> late(fit, error)
      {:ended, result} -> result
      {:time_is_up, fit, _display} -> late(fit, error)
    end
  end

  defp late(fit, error), do: if(Fit.empty?(fit), do: {:error, error}, else: {:ok, %{fit | status: :timeout}})

  defp collect(run, fit, display, deadline) do
    event = Client.next(run.worker, run.ref, deadline)
    display = Display.put(display, event)

    case event do
      {:draws, _} ->
        ack(run)
        collect(run, Fit.put(fit, event), display, deadline)

      {:progress, progress} ->
        if on_progress = run.options[:on_progress], do: on_progress.(progress)
        collect(run, fit, display, deadline)

      {name, _} when name in [:compiling, :compiled, :resumed] ->
        collect(run, Fit.put(fit, event), display, deadline)

      {:done, _} ->
        {:ended, {:ok, Fit.put(fit, event)}}

      {:error, _} = error ->
        {:ended, error}

      :ended ->
        raise ArgumentError,
              "this run has ended or was closed: it can be awaited once, and before its last event is received"

      :timeout ->
        {:time_is_up, fit, display}
    end
  end

  @doc false
  @spec stream((() -> {:ok, t()} | {:error, Nutkin.Error.t()}), timeout()) :: Enumerable.t()
  def stream(start, timeout) do
    Stream.resource(
      fn ->
        case start.() do
          {:ok, run} -> {run, Client.deadline(timeout)}
          {:error, error} -> raise error
        end
      end,
      fn {run, deadline} ->
        # A chunk is acknowledged when the next one is asked for: what is ahead of the consumer is the credit.
        ack(run)

        case next_draws(run, deadline) do
          {:ok, draws} ->
            {[draws], {run, deadline}}

          :done ->
            {:halt, {run, deadline}}

          {:error, error} ->
            raise error

          :timeout ->
            raise Timeout, message: "the stream was not at its end after #{timeout} ms", timeout: timeout
        end
      end,
      fn {run, _deadline} -> close(run) end
    )
  end

  defp next_draws(run, deadline) do
    case Client.next(run.worker, run.ref, deadline) do
      {:draws, draws} -> {:ok, draws}
      {:done, _} -> :done
      {:error, error} -> {:error, error}
      :timeout -> :timeout
      _news -> next_draws(run, deadline)
    end
  end

  defp check_owner!(%__MODULE__{owner: owner}) do
    if owner != self() do
      raise ArgumentError,
            "a run is awaited and closed by the process that started it, #{inspect(owner)}, not by #{inspect(self())}"
    end
  end
end
