defmodule Posteriordb.BLR do
  @moduledoc """
  A linear regression on made data, with five strongly correlated predictors.
  """

  import Nutkin.Model

  def blr do
    model do
      beta <~ normal(0, 10, shape: {5})
      sigma <~ half_normal(10)
      observe(:likelihood, normal(dot(data(:X), beta), sigma), data(:y))
    end
  end
end
