defmodule Posteriordb.EightSchools do
  @moduledoc """
  Rubin's eight schools: the effects of coaching, and what they have in common.
  """

  import Nutkin.Model

  def eight_schools_noncentered do
    model do
      mu <~ normal(0, 5)
      tau <~ half_cauchy(5)
      theta <~ normal(mu, tau, shape: {8}, centered: false)
      observe(:effects, normal(theta, data(:sigma)), data(:y))
    end
  end
end
