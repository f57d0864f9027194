defmodule Benchmarks.Models do
  @moduledoc """
  The benchmark models, for Nutkin. They run from Elixir, and are written out for the engine alone.
  """

  import Nutkin.Model

  @names ~w(eight_schools logistic logistic_large radon stochastic_volatility funnel exmc_simple exmc_medium exmc_stress
            exmc_eight_schools exmc_funnel exmc_logistic exmc_sv diamonds ar5 blr)

  @spec names() :: [String.t()]
  def names, do: @names

  @doc "Writes all models out, as they travel."
  @spec main([Path.t()]) :: :ok
  def main([folder]) do
    File.mkdir_p!(folder)

    for name <- @names do
      # A model that captured tensors would need them beside it.
      %Nutkin.Model{blobs: blobs} = model = get(name)
      true = blobs == %{}
      File.write!(Path.join(folder, "#{name}.msgpack"), Nutkin.Msgpack.encode!(Nutkin.Model.to_ir(model)))
    end

    :ok
  end

  @spec get(String.t()) :: Nutkin.Model.t()
  def get("eight_schools") do
    model do
      mu <~ normal(0, 5)
      tau <~ half_cauchy(5)
      theta <~ normal(mu, tau, shape: {8}, centered: false)
      observe(:obs, normal(theta, data(:sigma)), data(:y))
    end
  end

  def get("logistic"), do: logistic(20)
  def get("logistic_large"), do: logistic(50)

  def get("radon") do
    model do
      mu <~ normal(0, 5)
      tau <~ half_normal(1)
      b <~ normal(0, 5)
      sigma <~ half_normal(1)
      alpha <~ normal(mu, tau, shape: {85}, centered: false)
      observe(:obs, normal(take(alpha, data(:county)) + b * data(:x), sigma), data(:y))
    end
  end

  def get("stochastic_volatility") do
    model do
      sigma <~ exponential(10)
      nu <~ exponential(0.1)
      z <~ normal(0, 1, shape: {100})
      observe(:obs, student_t(nu, 0, exp(sigma * cumulative_sum(z))), data(:y))
    end
  end

  def get("funnel") do
    model do
      y <~ normal(0, 3)
      x <~ normal(0, exp(y / 2), shape: {9}, centered: false)
    end
  end

  def get("exmc_simple") do
    model do
      mu <~ normal(0, 10)
      sigma <~ exponential(1)
      observe(:obs, normal(mu, sigma), data(:y))
    end
  end

  def get("exmc_medium") do
    model do
      mu_global <~ normal(0, 10)
      sigma_global <~ exponential(1)
      alpha <~ normal(mu_global, sigma_global)
      beta <~ normal(mu_global, sigma_global)
      sigma_obs <~ exponential(2)
      observe(:obs_a, normal(alpha, sigma_obs), data(:y_a))
      observe(:obs_b, normal(beta, sigma_obs), data(:y_b))
    end
  end

  def get("exmc_stress") do
    model do
      mu_pop <~ normal(0, 10)
      sigma_pop <~ exponential(0.5)

      for j <- 1..3 do
        group <~ normal(mu_pop, sigma_pop, name: "group_#{j}")
        noise <~ exponential(1, name: "noise_#{j}")
        observe("obs_#{j}", normal(group, noise), data("y_#{j}"))
      end
    end
  end

  def get("exmc_eight_schools") do
    model do
      mu <~ normal(0, 5)
      tau <~ half_normal(5)
      theta <~ normal(mu, tau, shape: {8})
      observe(:obs, normal(theta, data(:sigma)), data(:y))
    end
  end

  def get("exmc_funnel") do
    model do
      y <~ normal(0, 3)
      x <~ normal(0, exp(y / 2), shape: {9})
    end
  end

  def get("exmc_logistic") do
    model do
      alpha <~ normal(0, 10)
      beta <~ normal(0, 10, shape: {20})
      observe(:obs, bernoulli_logit(alpha + dot(data(:X), beta)), data(:y))
    end
  end

  def get("exmc_sv") do
    model do
      sigma <~ exponential(50)
      nu <~ exponential(0.1)
      s <~ gaussian_random_walk(sigma, shape: {100})
      observe(:obs, student_t(nu, 0, exp(s)), data(:returns))
    end
  end

  def get("diamonds") do
    model do
      b <~ normal(0, 1, shape: {24})
      intercept <~ student_t(3, 8, 10, name: "Intercept")
      # Half a Student t with 3 degrees of freedom and the scale 10: a half Cauchy with another tail.
      sigma <~ half_cauchy(10)
      factor(:tail, log1p(sigma * sigma / 100) - 2 * log1p(sigma * sigma / 300))
      observe(:obs, normal(intercept + dot(data(:X), b), sigma), data(:y))
    end
  end

  def get("ar5") do
    model do
      alpha <~ normal(0, 10)
      beta <~ normal(0, 10, shape: {5})
      sigma <~ half_cauchy(2.5)
      observe(:obs, normal(alpha + dot(data(:lags), beta), sigma), data(:y))
    end
  end

  def get("blr") do
    model do
      beta <~ normal(0, 10, shape: {5})
      sigma <~ half_normal(10)
      observe(:obs, normal(dot(data(:X), beta), sigma), data(:y))
    end
  end

  defp logistic(columns) do
    model do
      alpha <~ normal(0, 1)
      beta <~ normal(0, 1, shape: {columns})
      observe(:obs, bernoulli_logit(alpha + dot(data(:X), beta)), data(:y))
    end
  end
end
