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

      covariance = gp_exp_quad_cov(x, alpha, rho, jitter: 1.0e-10)
      f = deterministic(:f, dot(cholesky(covariance), f_tilde))
      observe(:counts, poisson_log(f), data(:k))
    end
  end
end
