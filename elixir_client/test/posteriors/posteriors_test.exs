defmodule Nutkin.PosteriorsTest do
  @moduledoc """
  Posteriors with known answers, from Elixir through a real port: means within 4 Monte Carlo standard errors, standard
  deviations within 10 %, R-hat below 1.01.
  """

  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.{Fit, Summary}
  alias Nutkin.Test.{ExmcModels, Models, PosteriordbModels, References}

  @moduletag :port
  @moduletag :capture_log
  @moduletag timeout: 300_000

  @standard_errors 4

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  defp rows(model, data, opts) do
    {:ok, fit} = Nutkin.sample(model, [data: data] ++ opts)
    assert fit.status == :complete
    {fit, Map.new(Summary.new(fit).rows, &{&1.name, &1})}
  end

  # `reference_error`: the Monte Carlo standard error of the reference itself.
  defp assert_agrees(row, mean, sd, reference_error) do
    error = :math.sqrt(row.mcse_mean ** 2 + reference_error ** 2)
    z = abs(row.mean - mean) / error
    assert z < @standard_errors, "#{row.name}: mean #{row.mean} is #{z} standard errors from #{mean}"
    assert abs(row.sd - sd) < 0.1 * sd, "#{row.name}: sd #{row.sd}, not #{sd}"
    assert row.r_hat < 1.01, "#{row.name}: R-hat #{row.r_hat}"
  end

  # posteriordb counts elements from 1.
  defp our_name(name) do
    case Regex.run(~r/^(\w+)\[(\d+)\]$/, name) do
      [_, variable, index] -> "#{variable}[#{String.to_integer(index) - 1}]"
      nil -> name
    end
  end

  for {name, model, slots} <- [
        {"eight_schools-eight_schools_noncentered", &Models.eight_schools/0, ~w(y sigma)},
        {"kidiq-kidscore_momiq", &PosteriordbModels.kidscore_momiq/0, ~w(kid_score mom_iq)},
        {"sblrc-blr", &PosteriordbModels.blr/0, ~w(X y)},
        {"earnings-logearn_height", &PosteriordbModels.logearn_height/0, ~w(earn height)}
      ] do
    @tag name: name, model: model, slots: slots
    test "posteriordb: #{name}", %{name: name, model: model, slots: slots, worker: worker} do
      {data, reference} = References.posteriordb(name)

      {_, rows} =
        rows(model.(), Map.take(data, slots), draws: 2000, seed: 1, target_accept: 0.95, worker: worker)

      assert rows |> Map.keys() |> Enum.sort() ==
               reference |> Map.keys() |> Enum.map(&our_name/1) |> Enum.sort()

      # The reference has 10,000 draws that are nearly independent.
      for {name, %{"mean" => mean, "sd" => sd}} <- reference do
        assert_agrees(rows[our_name(name)], mean, sd, sd / 100)
      end
    end
  end

  for name <- ~w(simple medium stress) do
    @tag name: name
    test "eXMC: the posterior of #{name}", %{name: name, worker: worker} do
      {model, data} = ExmcModels.get(name)
      {fit, rows} = rows(model, data, draws: 2000, seed: 1, target_accept: 0.95, worker: worker)
      assert Fit.divergences(fit) < 20

      for {variable, [mean, sd]} <- References.exmc("bench_reference")[name] do
        assert_agrees(rows[variable], mean, sd, 0.0)
      end
    end
  end

  for name <- ~w(simple medium stress eight_schools funnel logistic sv) do
    @tag name: name
    test "eXMC: log density and gradient of #{name}", %{name: name, worker: worker} do
      {model, data} = ExmcModels.get(name)
      opts = [data: data, worker: worker]
      {:ok, compiled} = Nutkin.compile(model, opts)
      d = compiled.dimension

      points = %{
        "zeros" => List.duplicate(0.0, d),
        "lin" => for(i <- 0..(d - 1), do: -0.5 + i / (d - 1)),
        "alt" => for(i <- 0..(d - 1), do: 0.3 * :math.cos(i))
      }

      fixtures = References.exmc("bench_fixtures")[name]

      for {point, position} <- points do
        {:ok, found} = Nutkin.log_density(model, position, opts)
        expected = fixtures[point]
        assert_in_delta found.value, expected, 1.0e-9 * abs(expected)
        gradient = Nutkin.Tensor.to_list(found.gradient)
        scale = gradient |> Enum.map(&abs/1) |> Enum.max()

        for i <- Enum.uniq([0, 1, div(d, 2), d - 1]) do
          h = 1.0e-5
          at = fn delta -> List.update_at(position, i, &(&1 + delta)) end
          {:ok, up} = Nutkin.log_density(model, at.(h), opts)
          {:ok, down} = Nutkin.log_density(model, at.(-h), opts)
          assert_in_delta Enum.at(gradient, i), (up.value - down.value) / (2 * h), 1.0e-6 * (1 + scale)
        end
      end
    end
  end
end
