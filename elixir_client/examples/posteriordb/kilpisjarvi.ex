defmodule Posteriordb.Kilpisjarvi do
  @moduledoc """
  Summer temperatures at Kilpisjärvi, by the year. The priors come with the data.
  """

  import Nutkin.Model

  def kilpisjarvi do
    model do
      alpha <~ normal(data(:pmualpha), data(:psalpha))
      beta <~ normal(data(:pmubeta), data(:psbeta))
      sigma <~ half_flat()
      observe(:temperature, normal(alpha + beta * data(:x), sigma), data(:y))
    end
  end
end
