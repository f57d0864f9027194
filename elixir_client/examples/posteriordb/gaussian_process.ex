defmodule Posteriordb.GaussianProcess do
  @moduledoc """
  A Poisson regression whose log rate is a Gaussian process, by the Cholesky factor of its covariance.
  """

  import Nutkin.Model

  def gp_pois_regr do
    model do
      x = data(:x)
      rho <~ gamma(25, 4)
      alpha <~ half_normal(2)
      f_tilde <~ normal(0, 1, shape: {11})

      squared = (new_axis(x, 1) - x) ** 2
      jitter = Enum.map(0..10, fn i -> Enum.map(0..10, &if(&1 == i, do: 1.0e-10, else: 0.0)) end)
      covariance = alpha ** 2 * exp(-0.5 * squared / rho ** 2) + jitter
      f = deterministic(:f, dot(cholesky(covariance), f_tilde))
      observe(:counts, poisson_log(f), data(:k))
    end
  end
end
