defmodule Posteriordb.Earnings do
  @moduledoc """
  The logarithm of earnings, by height and sex.
  """

  import Nutkin.Model

  def log10earn_height do
    model do
      beta <~ flat(shape: {2})
      sigma <~ half_flat()
      observe(:earnings, normal(beta[0] + beta[1] * data(:height), sigma), log(data(:earn)) / log(10))
    end
  end

  def logearn_height do
    model do
      beta <~ flat(shape: {2})
      sigma <~ half_flat()
      observe(:earnings, normal(beta[0] + beta[1] * data(:height), sigma), log(data(:earn)))
    end
  end

  def logearn_height_male do
    model do
      beta <~ flat(shape: {3})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * data(:height) + beta[2] * data(:male)
      observe(:earnings, normal(mu, sigma), log(data(:earn)))
    end
  end

  def logearn_interaction do
    model do
      height = data(:height)
      male = data(:male)
      beta <~ flat(shape: {4})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * height + beta[2] * male + beta[3] * height * male
      observe(:earnings, normal(mu, sigma), log(data(:earn)))
    end
  end

  def logearn_logheight_male do
    model do
      beta <~ flat(shape: {3})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * log(data(:height)) + beta[2] * data(:male)
      observe(:earnings, normal(mu, sigma), log(data(:earn)))
    end
  end
end
