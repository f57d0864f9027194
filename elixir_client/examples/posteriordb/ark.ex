defmodule Posteriordb.ARK do
  @moduledoc """
  An autoregression: each value of a series by the five before it.
  """

  import Nutkin.Model

  @order 5

  def ark do
    model do
      y = data(:y)
      # Column k - 1 is the series k steps before.
      lags = stack(for(k <- 1..@order, do: y[(@order - k)..(-k - 1)]), axis: 1)

      alpha <~ normal(0, 10)
      beta <~ normal(0, 10, shape: {@order})
      sigma <~ half_cauchy(2.5)
      observe(:series, normal(alpha + dot(lags, beta), sigma), y[@order..-1//1])
    end
  end
end
