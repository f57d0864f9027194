defmodule Nutkin.Exmc.BenchmarkTest do
  # The seven models of eXMC's benchmark as a user of eXMC has them: log densities, and exact posteriors.
  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Test.ExmcTerms

  alias Nutkin.{Diagnostics, Fit}
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

  # v ~ normal(0, 3) and x ~ normal(0, exp(v / 2)), with s = exp(v / 2): a scale that is a variable, as eXMC has it.
  test "the funnel, whose marginals are known: a pilot run finds that it is not to be centered", %{
    worker: worker
  } do
    funnel = [
      rv("s", :Lognormal, %{mu: 0.0, sigma: 1.5}),
      rv("x", :Normal, %{mu: 0.0, sigma: "s"}, shape: {9})
    ]

    {model, data} = Nutkin.Exmc.model(ir(funnel), ncp: :auto)
    {:ok, fit} = Nutkin.sample(model, data: data, draws: 2000, seed: 1, worker: worker)
    assert Fit.divergences(fit) == 0
    scales = chains(fit, "s")
    v = for chain <- scales, do: for(s <- chain, do: 2 * :math.log(s))

    z =
      for {chain, scales} <- Enum.zip(chains(fit, "x"), scales), do: Enum.zip_with(chain, scales, &(&1 / &2))

    for {draws, sd} <- [{v, 3.0}, {z, 1.0}], {probability, score} <- normal_quantiles() do
      off = Diagnostics.quantile(draws, probability) - sd * score
      assert abs(off) < 4 * Diagnostics.mcse_quantile(draws, probability)
      assert Diagnostics.ess_quantile(draws, probability) > 1000
    end
  end

  # Nobody samples it: what counts is that the fit does not look well.
  test "the funnel, centered: the fit says that it is not to be trusted", %{worker: worker} do
    {ir, _layout} = ExmcBenchmark.get("funnel")
    {model, data} = Nutkin.Exmc.model(ir)
    {:ok, fit} = Nutkin.sample(model, data: data, draws: 2000, seed: 1, worker: worker)
    assert Fit.divergences(fit) > 0
    assert Enum.any?(Fit.summary(fit).rows, &(&1.r_hat > 1.01))
  end

  # The draws of the first element in each chain.
  defp chains(fit, name),
    do: for(column <- Fit.column(fit, name, 0), do: for(<<x::float-little <- column>>, do: x))

  defp normal_quantiles,
    do: [{0.05, -1.644854}, {0.25, -0.67449}, {0.5, 0.0}, {0.75, 0.67449}, {0.95, 1.644854}]

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
