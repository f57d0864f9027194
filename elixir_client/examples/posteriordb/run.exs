# Samples the models of this folder, compares them with posteriordb's draws, and writes docs/posteriordb.md where all of
# them agree. The names of some may follow; then nothing is written. The modules are there in the environment test.
#
#     MIX_ENV=test mix run examples/posteriordb/run.exs

alias Nutkin.Model
alias Nutkin.Test.{Agreement, References}

defmodule Posteriordb.Run do
  @moduledoc "One posterior, sampled and compared."

  defstruct [
    :name,
    :faults,
    :scalars,
    :standard_errors,
    :sd_ratio,
    :r_hat,
    :ess,
    :divergences,
    :total,
    :sampling
  ]

  @seed 1

  defp options(name, data), do: [data: data, draws: 2000, seed: @seed] ++ Posteriordb.options(name)

  def run(name, model) do
    {data, expected} = References.posteriordb(name)
    begun = System.monotonic_time()

    with {:ok, fit} <-
           Nutkin.sample(model, options(name, Map.take(data, Model.slots(model)))) do
      total = System.convert_time_unit(System.monotonic_time() - begun, :native, :microsecond) / 1.0e6
      comparisons = Agreement.compare(fit, expected)

      {:ok,
       %__MODULE__{
         name: name,
         faults: Agreement.faults(comparisons),
         scalars: length(comparisons),
         standard_errors: comparisons |> Enum.map(& &1.standard_errors) |> Enum.max(),
         sd_ratio: comparisons |> Enum.map(& &1.sd_ratio) |> Enum.max_by(&abs(:math.log(&1))),
         r_hat: comparisons |> Enum.map(& &1.r_hat) |> Enum.max(),
         ess: comparisons |> Enum.map(& &1.ess_bulk) |> Enum.min(),
         divergences: Nutkin.Fit.divergences(fit),
         total: total,
         sampling: fit.seconds.warmup + fit.seconds.sample
       }}
    end
  end
end

defmodule Posteriordb.Table do
  @moduledoc "What is printed of a run, and written down of all."

  @heading """
  # posteriordb

  Written by `make posteriordb`: the models of [examples/posteriordb](../elixir_client/examples/posteriordb), run from Elixir
  with the defaults but for the number of draws: 4 chains of 2000 after a pooled warmup. All means are within 4 standard errors of those of
  posteriordb's 10,000 reference draws (the Monte Carlo errors of both together), all standard deviations within 10 %, and
  every R-hat is below 1.01; else the command fails. ESS is the least of all scalars, a second one of warmup and sampling.
  """

  def line(run) do
    text =
      "within #{fixed(run.standard_errors, 1)} standard errors, sd ratio #{fixed(run.sd_ratio, 3)}, " <>
        "R-hat #{fixed(run.r_hat, 4)}, ESS #{round(run.ess)}, #{run.divergences} divergences, #{fixed(run.total, 1)} s"

    Enum.join([text | run.faults], "\n  FAILED: ")
  end

  @columns [
    "posterior",
    "scalars",
    "largest error of a mean, in its standard errors",
    "worst sd / reference's",
    "largest R-hat",
    "least bulk ESS",
    "divergences",
    "seconds, with compilation",
    "seconds of warmup and sampling",
    "ESS/s"
  ]

  def page(runs) do
    rows = [@columns, Enum.map(@columns, fn _ -> "---" end) | Enum.map(runs, &row/1)]
    table = for row <- rows, do: "| #{Enum.join(row, " | ")} |\n"
    foot = "#{Date.utc_today()}, #{System.schedulers_online()} cores, without a cache on disk.\n"
    [@heading, "\n", table, "\n", foot]
  end

  defp row(run) do
    [
      run.name,
      run.scalars,
      fixed(run.standard_errors, 1),
      fixed(run.sd_ratio, 3),
      fixed(run.r_hat, 4),
      round(run.ess),
      run.divergences,
      fixed(run.total, 1),
      fixed(run.sampling, 2),
      round(run.ess / run.sampling)
    ]
  end

  defp fixed(atom, _places) when is_atom(atom), do: atom
  defp fixed(value, places), do: :erlang.float_to_binary(value / 1, decimals: places)
end

models = Posteriordb.models()
names = if System.argv() == [], do: models |> Map.keys() |> Enum.sort(), else: System.argv()

case names -- Map.keys(models) do
  [] ->
    :ok

  unknown ->
    IO.puts(
      :stderr,
      "no posterior #{Enum.join(unknown, ", ")}; there are:\n  #{models |> Map.keys() |> Enum.sort() |> Enum.join("\n  ")}"
    )

    System.halt(1)
end

# Every run compiles, so that its seconds do not depend on runs before.
{:ok, _} = Nutkin.start_link(env: %{"NUTKIN_CACHE_DIR" => "off"})

results =
  for name <- names do
    IO.write("#{name}: ")
    result = Posteriordb.Run.run(name, models[name])

    case result do
      {:ok, run} -> IO.puts(Posteriordb.Table.line(run))
      {:error, error} -> IO.puts("\n  FAILED: #{Exception.message(error)}")
    end

    {name, result}
  end

case for {name, result} <- results, not match?({:ok, %{faults: []}}, result), do: name do
  [] ->
    if System.argv() == [] do
      page = Path.expand("../../../docs/posteriordb.md", __DIR__)
      File.write!(page, Posteriordb.Table.page(for {_name, {:ok, run}} <- results, do: run))
    end

    IO.puts("All #{length(names)} agree.")

  failed ->
    IO.puts(:stderr, "#{length(failed)} of #{length(names)} failed: #{Enum.join(failed, ", ")}")
    System.halt(1)
end
