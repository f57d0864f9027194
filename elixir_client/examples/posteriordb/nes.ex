defmodule Posteriordb.NES do
  @moduledoc """
  Party identification of American voters, by ideology, race, age, education, gender and income: one election a data set.
  """

  import Nutkin.Model

  def nes do
    model do
      age = data(:age_discrete)

      beta <~ flat(shape: {9})
      sigma <~ half_flat()

      mu =
        beta[0] + beta[1] * data(:real_ideo) + beta[2] * data(:race_adj) +
          beta[3] * (age == 2) + beta[4] * (age == 3) + beta[5] * (age == 4) +
          beta[6] * data(:educ1) + beta[7] * data(:gender) + beta[8] * data(:income)

      observe(:party, normal(mu, sigma), data(:partyid7))
    end
  end
end
