defmodule Nutkin.Test.PosteriordbModels do
  @moduledoc false
  # Models of posteriordb (https://github.com/stan-dev/posteriordb), written from their Stan programs. A parameter without a
  # prior there has one here that is flat over any scale of its posterior. The eight schools are in Nutkin.Test.Models.

  import Nutkin.Model

  @wide 1.0e6

  def kidscore_momiq do
    model do
      kid_score = data(:kid_score)
      mom_iq = data(:mom_iq)
      beta <~ normal(0, @wide, shape: {2})
      sigma <~ half_cauchy(2.5)
      observe(:scores, normal(beta[0] + beta[1] * mom_iq, sigma), kid_score)
    end
  end

  def blr do
    model do
      x = data(:X)
      y = data(:y)
      beta <~ normal(0, 10, shape: {5})
      sigma <~ half_normal(10)
      observe(:likelihood, normal(dot(x, beta), sigma), y)
    end
  end

  def logearn_height do
    model do
      earn = data(:earn)
      height = data(:height)
      beta <~ normal(0, @wide, shape: {2})
      sigma <~ half_normal(@wide)
      observe(:log_earn, normal(beta[0] + beta[1] * height, sigma), log(earn))
    end
  end
end
