defmodule Posteriordb.Mixture do
  @moduledoc """
  A mixture of two normal distributions, of which the first has the smaller mean.
  """

  import Nutkin.Model

  def low_dim_gauss_mix do
    model do
      mu <~ normal(0, 2, shape: {2}, transform: :ordered)
      sigma <~ half_normal(2, shape: {2})
      theta <~ beta(5, 5)
      observe(:values, mixture(stack([theta, 1 - theta]), normal(mu, sigma)), data(:y))
    end
  end
end
