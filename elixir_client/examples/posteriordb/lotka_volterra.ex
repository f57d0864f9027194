defmodule Posteriordb.LotkaVolterra do
  @moduledoc """
  Hares and lynxes: prey and predators by a differential equation, counted with multiplicative errors.
  """

  import Nutkin.Model

  @doc """
  Where the chains start: far from here the populations swing wildly, and the likelihood has modes of its own.
  """
  def init, do: [values: %{theta: [1, 0.05, 1, 0.05]}, radius: 0.5]

  def lotka_volterra do
    model do
      ts = data(:ts)
      y_init = data(:y_init)
      y = data(:y)
      theta <~ truncated(normal([1, 0.05, 1, 0.05], [0.5, 0.05, 0.5, 0.05]), lower: 0)
      z_init <~ lognormal(:math.log(10), 1, shape: {2})
      sigma <~ lognormal(-1, 1, shape: {2})

      z =
        ode(z_init, 0, ts, fn _t, z ->
          {hares, lynxes} = {z[0], z[1]}
          stack([(theta[0] - theta[1] * lynxes) * hares, (theta[3] * hares - theta[2]) * lynxes])
        end)

      observe(:first, lognormal(log(z_init), sigma), y_init)
      observe(:counts, lognormal(log(z), sigma), y)
    end
  end
end
