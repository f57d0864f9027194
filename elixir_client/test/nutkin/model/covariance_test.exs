defmodule Nutkin.Model.CovarianceTest do
  use ExUnit.Case, async: true

  import Nutkin.Model
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Test.Engine

  setup :temporary_folder

  @x [0.0, 1.0, 2.5]
  @z [1.0, 0.0, -1.0]

  @tag :python
  test "are their formulas, of points on a line and in a plane", %{folder: dir} do
    {sigma, scale, alpha, period} = {1.5, 0.8, 2.0, 3.0}

    built =
      model do
        deterministic(:exp_quad, gp_exp_quad_cov(@x, sigma, scale))
        deterministic(:exponential, gp_exponential_cov(@x, sigma, scale))
        deterministic(:matern32, gp_matern32_cov(@x, sigma, scale))
        deterministic(:matern52, gp_matern52_cov(@x, sigma, scale))
        deterministic(:rational, gp_rational_quadratic_cov(@x, sigma, scale, alpha))
        deterministic(:periodic, gp_periodic_cov(@x, sigma, scale, period))
        deterministic(:plane, gp_exp_quad_cov({@x, @z}, sigma, scale, jitter: 0.5))
        deterministic(:cross, gp_exp_quad_cov(@x, sigma, scale, to: [4.0]))
        # Points that are parameters: the gradient at equal ones is finite.
        u <~ normal(0, 1, shape: {3})
        factor(:latent, sum(gp_matern32_cov(u, 1.0, 1.0)))
      end

    assert %{"values" => values} = Engine.run(built, dir)

    root = fn r, k -> :math.sqrt(k) * abs(r) / scale end

    formulas = %{
      "exp_quad" => fn r -> :math.exp(-r * r / (2 * scale * scale)) end,
      "exponential" => fn r -> :math.exp(-abs(r) / scale) end,
      "matern32" => fn r -> (1 + root.(r, 3)) * :math.exp(-root.(r, 3)) end,
      "matern52" => fn r -> (1 + root.(r, 5) + root.(r, 5) ** 2 / 3) * :math.exp(-root.(r, 5)) end,
      "rational" => fn r -> :math.pow(1 + r * r / (2 * alpha * scale * scale), -alpha) end,
      "periodic" => fn r -> :math.exp(-2 * :math.sin(:math.pi() * r / period) ** 2 / (scale * scale)) end
    }

    for {name, formula} <- formulas do
      assert_near(values[name], for(a <- @x, do: for(b <- @x, do: sigma ** 2 * formula.(a - b))))
    end

    points = Enum.zip(@x, @z)

    plane =
      for {a, p} <- points do
        for {b, q} <- points do
          square = (a - b) ** 2 + (p - q) ** 2
          sigma ** 2 * :math.exp(-square / (2 * scale ** 2)) + if({a, p} == {b, q}, do: 0.5, else: 0)
        end
      end

    assert_near(values["plane"], plane)
    assert_near(values["cross"], for(a <- @x, do: [sigma ** 2 * formulas["exp_quad"].(a - 4.0)]))
  end

  test "say which options they have" do
    error = assert_raise InvalidModel, fn -> model(do: gp_exp_quad_cov(@x, 1, 1, jiter: 1)) end
    assert Exception.message(error) =~ "gp_exp_quad_cov has no option :jiter"
  end

  defp assert_near(found, expected) do
    for {row, wanted} <- Enum.zip(found, expected),
        {a, b} <- Enum.zip(row, wanted),
        do: assert_in_delta(a, b, 1.0e-12)

    assert length(found) == length(expected)
  end
end
