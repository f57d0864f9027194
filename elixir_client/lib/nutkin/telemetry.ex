defmodule Nutkin.Telemetry do
  @moduledoc """
  The events that Nutkin emits where `:telemetry` is loaded. Nutkin does not depend on it: without handlers, and without the
  library, nothing happens.

  They come from the process of the worker, so a handler is to be quick: what takes long belongs into another process.
  Durations are in native units (`System.convert_time_unit/3`). Nothing here holds draws or data.

  ## Requests

  The metadata of these have `:worker` (the name of the pool, or `{name, place}` where it has several workers), `:ref` (that of a
  `Nutkin.Run`, unique) and `:type`: `:sample`, `:predict`, `:compile`, `:log_density`, `:debug`, `:evaluate`, …

  | event | when | measurements | further metadata |
  |---|---|---|---|
  | `[:nutkin, :run, :start]` | a run (`:sample` or `:predict`) was handed to its worker | `:system_time`, `:monotonic_time` | |
  | `[:nutkin, :run, :stop]` | it has ended, with draws or without | `:duration`, `:monotonic_time`, and of all chains `:draws`, `:divergences`, `:gradients` | `:status`: `:complete`, `:converged`, `:max_time` or `:cancelled` |
  | `[:nutkin, :run, :exception]` | it ended with an error | `:duration`, `:monotonic_time` | `:kind` (`:error`), `:reason` (a `t:Nutkin.Error.t/0`), `:stacktrace` (empty) |
  | `[:nutkin, :run, :resumed]` | its program ended, the next one goes on with it | `:system_time` | `:reason` |
  | `[:nutkin, :compile, :start]` | the program begins to compile for a request of any type, or to read from disk what was compiled before; not where it has it in memory | `:system_time`, `:monotonic_time` | |
  | `[:nutkin, :compile, :stop]` | that has ended | `:duration`, `:monotonic_time` | |
  | `[:nutkin, :compile, :exception]` | it failed, was ended, or was given up by whoever waited for it | `:duration`, `:monotonic_time` | `:kind`, `:reason`, `:stacktrace` |
  | `[:nutkin, :draws]` | a chunk of draws came | `:count` | `:chain`, `:phase` (`:warmup` or `:sample`) |
  | `[:nutkin, :progress]` | a chain is so far, see `Nutkin.Progress` | `:iteration`, `:total`, `:draws`, `:divergences`, `:step_size`, `:tree_depth`, `:gradients`, `:gradients_per_second`, `:seconds_left` (not while nothing is known) | `:chain`, `:phase` |
  | `[:nutkin, :checkpoint]` | a checkpoint of a run is whole | `:bytes` | |

  ## Workers

  The metadata have `:worker`, and `:pid`, the process.

  | event | when | measurements | further metadata |
  |---|---|---|---|
  | `[:nutkin, :worker, :up]` | a program is ready | `:duration` since it was started | `:os_pid`, `:versions` |
  | `[:nutkin, :worker, :down]` | it ended, or could not be started | `:uptime`, 0 where it was never started; `:pause`: milliseconds until the next start | `:reason` |
  | `[:nutkin, :worker, :replaced]` | it is replaced, since it is too old, too large, or compiles for too long | `:uptime` | `:reason`, a text |
  | `[:nutkin, :worker, :log]` | it logged or printed a line | `:bytes` | `:level`, `:source`, `:text` |
  | `[:nutkin, :worker, :lines_left_out]` | it wrote more lines than go to `Logger` | `:count` | |
  """

  # Looked for while the client runs.
  @compile {:no_warn_undefined, :telemetry}

  alias Nutkin.Worker.{Entry, Request}
  alias Nutkin.{Draws, Error, Progress, Protocol}

  @measured [
    :iteration,
    :total,
    :draws,
    :divergences,
    :step_size,
    :tree_depth,
    :gradients,
    :gradients_per_second,
    :seconds_left
  ]

  @typedoc "The name of a worker in metadata and logs."
  @type label :: GenServer.name() | {GenServer.name(), pos_integer()}

  @doc false
  @spec began(Entry.t()) :: :ok
  def began(entry) do
    if Request.run?(entry.request),
      do: execute([:run, :start], started(entry.began), metadata(entry)),
      else: :ok
  end

  @doc false
  # What has arrived for a request that goes on, before it is noted there.
  @spec arrived(Entry.t(), Protocol.event()) :: :ok
  def arrived(entry, {:compiling, _}) do
    execute([:compile, :start], started(System.monotonic_time()), metadata(entry))
  end

  def arrived(entry, {:checkpoint, piece}), do: checkpoint(entry, piece)

  def arrived(entry, event) do
    compiled(entry, event)
    news(entry, event)
  end

  defp news(entry, {:draws, %Draws{} = draws}) do
    execute([:draws], %{count: draws.count}, metadata(entry, Map.take(draws, [:chain, :phase])))
  end

  defp news(entry, {:progress, %Progress{} = progress}) do
    measured = for {name, value} <- Map.take(progress, @measured), value != nil, into: %{}, do: {name, value}
    execute([:progress], measured, metadata(entry, Map.take(progress, [:chain, :phase])))
  end

  defp news(_entry, _event), do: :ok

  defp checkpoint(entry, %{size: size, offset: offset, bytes: bytes})
       when size > 0 and offset + byte_size(bytes) >= size do
    execute([:checkpoint], %{bytes: size}, metadata(entry))
  end

  defp checkpoint(_entry, _piece), do: :ok

  @doc false
  # The last event of a request.
  @spec ended(Entry.t(), Protocol.event()) :: :ok
  def ended(entry, event) do
    compiled(entry, event)
    if Request.run?(entry.request), do: ended_run(entry, event), else: :ok
  end

  defp ended_run(entry, {:done, done}) do
    sums = for name <- [:draws, :divergences, :gradients], into: %{}, do: {name, sum(done.chains, name)}
    execute([:run, :stop], Map.merge(lasted(entry.began), sums), metadata(entry, %{status: done.status}))
  end

  defp ended_run(entry, {:error, error}) do
    execute([:run, :exception], lasted(entry.began), metadata(entry, failure(error)))
  end

  defp sum(chains, name), do: chains |> Enum.map(&Map.fetch!(&1, name)) |> Enum.sum()

  @doc false
  # The program of a request has ended, and another one takes it up.
  @spec resumed(Entry.t(), Error.t()) :: :ok
  def resumed(entry, error) do
    compiled(entry, {:error, error})

    if Request.run?(entry.request) do
      execute([:run, :resumed], %{system_time: System.system_time()}, metadata(entry, %{reason: error}))
    else
      :ok
    end
  end

  # Whatever else comes after `compiling` says that it is over.
  defp compiled(%{compiling: nil}, _event), do: :ok

  defp compiled(entry, {:error, error}) do
    execute([:compile, :exception], lasted(entry.compiling), metadata(entry, failure(error)))
  end

  defp compiled(entry, {:done, %{status: :cancelled}}) do
    compiled(entry, {:error, Error.Cancelled.exception("the request was cancelled")})
  end

  defp compiled(entry, _event), do: execute([:compile, :stop], lasted(entry.compiling), metadata(entry))

  @doc false
  @spec up(label(), non_neg_integer(), map()) :: :ok
  def up(label, milliseconds, metadata) do
    execute([:worker, :up], %{duration: native(milliseconds)}, Map.merge(worker(label), metadata))
  end

  @doc false
  @spec down(label(), non_neg_integer(), non_neg_integer(), Error.t()) :: :ok
  def down(label, milliseconds, pause, error) do
    measurements = %{uptime: native(milliseconds), pause: pause}
    execute([:worker, :down], measurements, Map.put(worker(label), :reason, error))
  end

  @doc false
  @spec replaced(label(), non_neg_integer(), String.t()) :: :ok
  def replaced(label, milliseconds, reason) do
    execute([:worker, :replaced], %{uptime: native(milliseconds)}, Map.put(worker(label), :reason, reason))
  end

  @doc false
  @spec line(label(), %{level: Logger.level(), source: String.t(), text: String.t()}) :: :ok
  def line(label, line) do
    execute([:worker, :log], %{bytes: byte_size(line.text)}, Map.merge(worker(label), line))
  end

  @doc false
  @spec lines_left_out(label(), pos_integer()) :: :ok
  def lines_left_out(label, count), do: execute([:worker, :lines_left_out], %{count: count}, worker(label))

  defp started(monotonic), do: %{system_time: System.system_time(), monotonic_time: monotonic}

  defp lasted(since) do
    now = System.monotonic_time()
    %{duration: now - since, monotonic_time: now}
  end

  defp native(milliseconds), do: System.convert_time_unit(milliseconds, :millisecond, :native)

  defp failure(error), do: %{kind: :error, reason: error, stacktrace: []}

  defp metadata(entry, more \\ %{}) do
    Map.merge(%{worker: entry.worker, ref: entry.ref, type: entry.request.type}, more)
  end

  defp worker(label), do: %{worker: label, pid: self()}

  # Whoever has attached a handler has loaded it: so it is looked up without asking the code server, and never loaded.
  defp execute(name, measurements, metadata) do
    if function_exported?(:telemetry, :execute, 3) do
      :telemetry.execute([:nutkin | name], measurements, metadata)
    end

    :ok
  end
end
