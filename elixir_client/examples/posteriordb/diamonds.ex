defmodule Posteriordb.Diamonds do
  @moduledoc """
  The logarithm of the price of 5000 diamonds, by 24 features of their weight and quality.
  """

  import Nutkin.Model

  def diamonds do
    model do
      # Without the column of ones.
      x = data(:X)[[.., 1..-1//1]]
      centered = x - mean(x, axes: [0])

      b <~ normal(0, 1, shape: {24})
      intercept <~ student_t(3, 8, 10, name: "Intercept")
      sigma <~ half_student_t(3, 10)
      observe(:log_price, normal(intercept + dot(centered, b), sigma), data(:Y))
    end
  end
end
