defmodule Posteriordb.Kidiq do
  @moduledoc """
  Test scores of children, by whether their mothers finished high school, and their IQ.
  """

  import Nutkin.Model

  def kidscore_momhs do
    model do
      beta <~ flat(shape: {2})
      sigma <~ half_cauchy(2.5)
      observe(:scores, normal(beta[0] + beta[1] * data(:mom_hs), sigma), data(:kid_score))
    end
  end

  def kidscore_momiq do
    model do
      beta <~ flat(shape: {2})
      sigma <~ half_cauchy(2.5)
      observe(:scores, normal(beta[0] + beta[1] * data(:mom_iq), sigma), data(:kid_score))
    end
  end

  def kidscore_momhsiq do
    model do
      beta <~ flat(shape: {3})
      sigma <~ half_cauchy(2.5)
      mu = beta[0] + beta[1] * data(:mom_hs) + beta[2] * data(:mom_iq)
      observe(:scores, normal(mu, sigma), data(:kid_score))
    end
  end

  def kidscore_interaction do
    model do
      hs = data(:mom_hs)
      iq = data(:mom_iq)
      beta <~ flat(shape: {4})
      sigma <~ half_cauchy(2.5)
      mu = beta[0] + beta[1] * hs + beta[2] * iq + beta[3] * hs * iq
      observe(:scores, normal(mu, sigma), data(:kid_score))
    end
  end

  @doc "With predictors around 0."
  def kidscore_interaction_c do
    model do
      hs = data(:mom_hs)
      iq = data(:mom_iq)
      hs = hs - mean(hs)
      iq = iq - mean(iq)
      beta <~ flat(shape: {4})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * hs + beta[2] * iq + beta[3] * hs * iq
      observe(:scores, normal(mu, sigma), data(:kid_score))
    end
  end

  @doc "With predictors around 0, in units of two standard deviations."
  def kidscore_interaction_z do
    model do
      n = data(:N)

      standardize = fn x ->
        deviation = x - mean(x)
        deviation / (2 * sqrt(sum(deviation ** 2) / (n - 1)))
      end

      hs = standardize.(data(:mom_hs))
      iq = standardize.(data(:mom_iq))
      beta <~ flat(shape: {4})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * hs + beta[2] * iq + beta[3] * hs * iq
      observe(:scores, normal(mu, sigma), data(:kid_score))
    end
  end
end
