defmodule Nutkin.Test.Models do
  @moduledoc """
  Models for tests that run the port program.
  """

  import Nutkin.Model

  @doc "Rubin's eight schools, not centered."
  def eight_schools do
    model do
      y = data(:y)
      sigma = data(:sigma)
      mu <~ normal(0, 5)
      tau <~ half_cauchy(5)
      theta <~ normal(mu, tau, shape: {8}, centered: false)
      observe(:obs, normal(theta, sigma), y)
    end
  end

  def eight_schools_data do
    %{y: [28, 8, -3, 7, -1, 1, 18, 12], sigma: [15, 10, 16, 11, 9, 11, 10, 18]}
  end

  @doc "A model that XLA compiles for many seconds."
  def slow_to_compile do
    model do
      x <~ normal(0, 1)
      factor(:end, Enum.reduce(1..200, x, fn _, value -> cos(tanh(exp(sin(value)))) end))
    end
  end

  @doc "A mean of given numbers; its posterior is known."
  def mean do
    model do
      y = data(:y)
      mu <~ normal(0, 10)
      observe(:obs, normal(mu, 1), y)
    end
  end
end
