defmodule Nutkin.Doctor do
  @moduledoc """
  Whether Nutkin can work on this machine: what `mix nutkin.doctor` looks at, one thing after another, through a worker of its own.

    * `python` - there is one, of a version that is new enough
    * `packages` - the program starts in it; their versions
    * `devices` - what XLA computes on
    * `cache` - the folder of compiled programs can be written
    * `round trip` - the time of a message there and back
    * `model` - a small model is compiled and sampled, and its mean is what it must be

  In a release, where there is no Mix:

      bin/my_app eval 'Nutkin.Doctor.run([python: "/opt/nutkin/bin/python"], &IO.puts(Nutkin.Doctor.line(&1)))'
  """

  require Nutkin.Model

  alias Nutkin.{Fit, Tensor}
  alias Nutkin.Worker.{Options, Program}

  @typedoc "What a check has found; where it is wrong, with what to do."
  @type check :: %{
          name: String.t(),
          result: {:ok, String.t()} | {:wrong, String.t(), String.t()} | :not_looked_at
        }

  # Milliseconds: the engine may have to be read from a slow disk.
  @patience 120_000

  @pings 5

  # The mean of one observation of 1 with scale 1, with a prior of scale 10, and far more than the error of its estimate.
  @mean 100 / 101
  @tolerance 0.3

  @doc """
  Looks at everything, calls `tell` with each check when it is done, and says whether all is well. What needs something
  that is wrong is not looked at.

  The options are those of `Nutkin.start_link/1`, but for the name and the number of workers.
  """
  @spec run(keyword(), (check() -> term())) :: boolean()
  def run(opts \\ [], tell) do
    name = Module.concat(__MODULE__, "Worker#{System.unique_integer([:positive])}")
    opts = Keyword.merge(opts, name: name, workers: 1)
    program = opts |> Options.validate!() |> Program.new()
    {:ok, pool} = Nutkin.start_link(opts)

    checks = [
      {"python", [], fn -> python(program) end},
      {"packages", ["python"], fn -> packages(name) end},
      {"devices", ["packages"], fn -> devices(name) end},
      {"cache", ["packages"], fn -> cache(program) end},
      {"round trip", ["packages"], fn -> round_trip(name) end},
      {"model", ["packages"], fn -> small_model(name) end}
    ]

    try do
      Enum.reduce(checks, [], fn {name, needs, look}, fine ->
        result = if needs -- fine == [], do: look.(), else: :not_looked_at
        tell.(%{name: name, result: result})
        if match?({:ok, _}, result), do: [name | fine], else: fine
      end)
      |> length() == length(checks)
    after
      Supervisor.stop(pool)
    end
  end

  @doc """
  A check as text.

      iex> Nutkin.Doctor.line(%{name: "devices", result: {:ok, "cpu"}})
      "ok     devices     cpu"
      iex> Nutkin.Doctor.line(%{name: "model", result: :not_looked_at})
      "-      model       not looked at"
  """
  @spec line(check()) :: String.t()
  def line(%{name: name, result: result}) do
    {verdict, lines} =
      case result do
        {:ok, text} -> {"ok", [text]}
        {:wrong, text, to_do} -> {"wrong", String.split(text, "\n") ++ ["to do: " <> to_do]}
        :not_looked_at -> {"-", ["not looked at"]}
      end

    String.pad_trailing(verdict, 7) <>
      String.pad_trailing(name, 12) <> Enum.join(lines, "\n" <> String.duplicate(" ", 19))
  end

  defp python(program) do
    case Program.version(program) do
      {:ok, executable, version} -> {:ok, "#{version}, #{executable}"}
      {:error, error} -> {:wrong, error.message, error.hint}
    end
  end

  defp packages(worker) do
    with {:ok, _pong} <- Nutkin.ping(worker, @patience),
         {:ok, [%{versions: versions}]} <- Nutkin.info(worker) do
      packages = for {name, version} <- Enum.sort(versions), name != "python", do: "#{name} #{version}"
      {:ok, Enum.join(packages, ", ")}
    else
      {:error, error} ->
        wrong(error, "see that the package nutkin of this release is installed in that Python")
    end
  end

  defp devices(worker) do
    case Nutkin.ping(worker, @patience) do
      {:ok, %{devices: devices}} ->
        kinds = Enum.frequencies_by(devices, &"#{&1["platform"]} (#{&1["kind"]})")
        {:ok, Enum.map_join(kinds, ", ", fn {kind, count} -> "#{count} #{kind}" end)}

      {:error, error} ->
        wrong(error, "see that JAX finds its devices; JAX_PLATFORMS=cpu uses the processor alone")
    end
  end

  defp cache(program) do
    code = "import nutkin.settings; print(nutkin.settings.cache_dir() or '')"

    case Program.execute(program, ["-P", "-c", code], @patience) do
      {:ok, {output, 0}} ->
        output |> String.trim_trailing("\n") |> String.split("\n") |> List.last() |> folder()

      _failed ->
        {:wrong, "the program does not tell its folder", "see that #{program.python} can import nutkin"}
    end
  end

  defp folder(""), do: {:ok, "off: each program compiles anew"}

  defp folder(folder) do
    probe = Path.join(folder, ".doctor-#{System.pid()}")

    with :ok <- File.mkdir_p(folder),
         :ok <- File.write(probe, ""),
         :ok <- File.rm(probe),
         {:ok, names} <- File.ls(folder) do
      programs = Enum.filter(names, &String.ends_with?(&1, ".program"))
      bytes = for name <- programs, {:ok, %{size: size}} <- [File.stat(Path.join(folder, name))], do: size
      mebibytes = Float.round(Enum.sum(bytes) / 1_048_576, 1)
      {:ok, "#{folder}, can be written, #{length(programs)} programs, #{mebibytes} MiB"}
    else
      {:error, reason} ->
        {:wrong, "#{folder} cannot be written: #{:file.format_error(reason)}",
         "set NUTKIN_CACHE_DIR to a folder that can be, or to off"}
    end
  end

  defp round_trip(worker) do
    answers = for _ <- 1..@pings, do: :timer.tc(fn -> Nutkin.ping(worker, @patience) end)

    case for {_time, {:error, error}} <- answers, do: error do
      [] ->
        times = for {time, _} <- answers, do: time
        {:ok, "#{Float.round(Enum.at(Enum.sort(times), div(@pings, 2)) / 1000, 2)} ms"}

      [error | _] ->
        wrong(error, "see whether the machine is very busy")
    end
  end

  defp small_model(worker) do
    mean =
      Nutkin.Model.model do
        y = data(:y)
        mu <~ normal(0, 10)
        observe(:obs, normal(mu, 1), y)
      end

    case Nutkin.sample(mean, data: [y: [1.0]], draws: 250, worker: worker, timeout: @patience) do
      {:ok, %Fit{status: :complete} = fit} ->
        sampled(fit)

      {:ok, fit} ->
        {:wrong, "the run ended as #{fit.status}", "see whether the machine is very busy"}

      {:error, error} ->
        wrong(error, "run it with `NUTKIN_CACHE_DIR=off` to see whether a stored program is the reason")
    end
  end

  defp sampled(fit) do
    mu = fit |> Fit.tensor(:mu) |> Tensor.to_flat_list()
    mean = Enum.sum(mu) / length(mu)

    if abs(mean - @mean) < @tolerance do
      sampling = round(1000 * (fit.seconds.warmup + fit.seconds.sample))
      compiling = Float.round(fit.seconds.compile * 1.0, 2)
      {:ok, "compiled or read from the cache in #{compiling} s, 1000 draws in #{sampling} ms"}
    else
      {:wrong, "the mean of the draws is #{Float.round(mean, 3)}, and must be #{Float.round(@mean, 3)}",
       "report this: XLA does not compute what it should on this machine"}
    end
  end

  defp wrong(error, to_do), do: {:wrong, Exception.message(%{error | hint: nil}), error.hint || to_do}
end
