defmodule Posteriordb.Mesquite do
  @moduledoc """
  The weight of the leaves of mesquite bushes, by measures that can be taken without cutting them.
  """

  import Nutkin.Model

  def logmesquite do
    model do
      beta <~ flat(shape: {7})
      sigma <~ half_flat()

      mu =
        beta[0] + beta[1] * log(data(:diam1)) + beta[2] * log(data(:diam2)) +
          beta[3] * log(data(:canopy_height)) + beta[4] * log(data(:total_height)) +
          beta[5] * log(data(:density)) + beta[6] * data(:group)

      observe(:log_weight, normal(mu, sigma), log(data(:weight)))
    end
  end

  def logmesquite_logvolume do
    model do
      log_volume = log(data(:diam1) * data(:diam2) * data(:canopy_height))
      beta <~ flat(shape: {2})
      sigma <~ half_flat()
      observe(:log_weight, normal(beta[0] + beta[1] * log_volume, sigma), log(data(:weight)))
    end
  end

  def logmesquite_logva do
    model do
      area = data(:diam1) * data(:diam2)
      log_volume = log(area * data(:canopy_height))
      beta <~ flat(shape: {4})
      sigma <~ half_flat()
      mu = beta[0] + beta[1] * log_volume + beta[2] * log(area) + beta[3] * data(:group)
      observe(:log_weight, normal(mu, sigma), log(data(:weight)))
    end
  end

  def logmesquite_logvas do
    model do
      diam1 = data(:diam1)
      diam2 = data(:diam2)
      area = diam1 * diam2
      log_volume = log(area * data(:canopy_height))
      log_shape = log(diam1 / diam2)

      beta <~ flat(shape: {7})
      sigma <~ half_flat()

      mu =
        beta[0] + beta[1] * log_volume + beta[2] * log(area) + beta[3] * log_shape +
          beta[4] * log(data(:total_height)) + beta[5] * log(data(:density)) + beta[6] * data(:group)

      observe(:log_weight, normal(mu, sigma), log(data(:weight)))
    end
  end
end
