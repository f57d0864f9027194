defmodule Nutkin.PosteriorsTest do
  @moduledoc """
  The models of eXMC's benchmark, from Elixir through a real port: exact posteriors, log densities, gradients.
  """

  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Fit
  alias Nutkin.Test.{Agreement, ExmcModels, References}

  @moduletag :port
  @moduletag :capture_log
  @moduletag timeout: 300_000

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  for name <- ~w(simple medium stress) do
    @tag name: name
    test "eXMC: the posterior of #{name}", %{name: name, worker: worker} do
      {model, data} = ExmcModels.get(name)
      opts = [draws: 2000, seed: 1, target_accept: 0.95]
      {:ok, fit} = Nutkin.sample(model, [data: data, worker: worker] ++ opts)
      assert fit.status == :complete
      assert Fit.divergences(fit) < 20
      assert fit |> Agreement.compare(References.exmc_moments(name)) |> Agreement.faults() == []
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
