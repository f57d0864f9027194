defmodule Posteriordb.GARCH do
  @moduledoc """
  A GARCH(1, 1): the variance of each value by the value before it, and its variance.
  """

  import Nutkin.Model

  def garch11 do
    model do
      y = data(:y)
      sigma1 = data(:sigma1)
      mu <~ flat()
      alpha0 <~ half_flat()
      alpha1 <~ uniform(0, 1)
      beta1 <~ uniform(0, 1 - alpha1)
      # The density is flat in both, where uniform has 1 / (1 - alpha1).
      factor(:flat, log(1 - alpha1))

      {variances, _next} =
        scan(y, sigma1 ** 2, fn value, variance ->
          {variance, alpha0 + alpha1 * (value - mu) ** 2 + beta1 * variance}
        end)

      observe(:series, normal(mu, sqrt(variances)), y)
    end
  end
end
