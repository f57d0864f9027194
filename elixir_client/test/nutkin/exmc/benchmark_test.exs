defmodule Nutkin.Exmc.BenchmarkTest do
  # The seven models of eXMC's benchmark as a user of eXMC has them: log densities, and exact posteriors.
  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Fit
  alias Nutkin.Test.{Agreement, ExmcBenchmark, ExmcModels, References}

  @moduletag :port
  @moduletag :capture_log
  @moduletag timeout: 300_000

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  for name <- ExmcBenchmark.names() do
    @tag name: name
    test "the log density of #{name}", %{name: name, worker: worker} do
      {ir, layout} = ExmcBenchmark.get(name)
      {model, data} = Nutkin.Exmc.model(ir, ncp: false)
      {:ok, compiled} = Nutkin.compile(model, data: data, worker: worker)
      assert Nutkin.Exmc.warnings(ir) == []

      for {point, expected} <- References.exmc("bench_fixtures")[name] do
        position = point |> coordinates(compiled.dimension) |> arranged(layout, compiled.parameters)
        {:ok, found} = Nutkin.log_density(model, position, data: data, worker: worker)
        assert_in_delta found.value, expected, 1.0e-9 * abs(expected)
      end
    end
  end

  for name <- ~w(simple medium stress) do
    @tag name: name
    test "the posterior of #{name}", %{name: name, worker: worker} do
      {ir, _layout} = ExmcBenchmark.get(name)
      {model, data} = Nutkin.Exmc.model(ir, ncp: :auto)
      {:ok, fit} = Nutkin.sample(model, data: data, draws: 2000, seed: 1, target_accept: 0.95, worker: worker)
      assert fit |> Agreement.compare(References.exmc_moments(name)) |> Agreement.faults() == []
    end
  end

  # No exact ones are known of these: what Nutkin's own language gives, whose log densities are the same.
  for name <- ~w(eight_schools logistic sv) do
    @tag name: name
    test "the posterior of #{name}", %{name: name, worker: worker} do
      {ir, _layout} = ExmcBenchmark.get(name)
      {model, data} = Nutkin.Exmc.model(ir, ncp: true)
      {:ok, fit} = Nutkin.sample(model, data: data, draws: 6000, seed: 1, target_accept: 0.95, worker: worker)
      {own, data} = ExmcModels.get(name)
      {:ok, other} = Nutkin.sample(own, data: data, draws: 4000, seed: 2, target_accept: 0.98, worker: worker)
      expected = for row <- Fit.summary(other).rows, do: {row.name, row.mean, row.sd, row.mcse_mean}
      assert fit |> Agreement.compare(expected) |> Agreement.faults() == []
    end
  end

  defp coordinates("zeros", d), do: List.duplicate(0.0, d)
  defp coordinates("lin", d), do: for(i <- 0..(d - 1), do: -0.5 + i / (d - 1))
  defp coordinates("alt", d), do: for(i <- 0..(d - 1), do: 0.3 * :math.cos(i))

  # From the order of the references to that of the model.
  defp arranged(position, layout, parameters) do
    {parts, []} =
      Enum.map_reduce(layout, position, fn variable, rest ->
        {id, size} = if is_tuple(variable), do: variable, else: {variable, 1}
        {own, rest} = Enum.split(rest, size)
        {{id, own}, rest}
      end)

    parts = Map.new(parts)
    Enum.flat_map(parameters, &Map.fetch!(parts, &1.name))
  end
end
