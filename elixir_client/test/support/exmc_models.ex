defmodule Nutkin.Test.ExmcModels do
  @moduledoc false
  # The seven models of eXMC's benchmark, centered as there: `{model, data}` by name.

  import Nutkin.Model

  alias Nutkin.Test.References

  def all, do: for(name <- ~w(simple medium stress eight_schools funnel logistic sv), do: {name, get(name)})

  def get(name), do: {program(name), data(name, References.exmc("bench_data")[name])}

  defp data("logistic", data), do: Map.take(data, ["X", "y"])
  defp data("sv", data), do: Map.take(data, ["returns"])
  defp data("funnel", _), do: %{}
  defp data(_, data), do: data

  defp program("simple") do
    model do
      mu <~ normal(0, 10)
      sigma <~ exponential(1)
      observe(:obs, normal(mu, sigma), data(:y))
    end
  end

  defp program("medium") do
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

  # The layout of the reference has the groups before the noises.
  defp program("stress") do
    model do
      mu_pop <~ normal(0, 10)
      sigma_pop <~ exponential(0.5)
      groups = for j <- 1..3, do: group <~ normal(mu_pop, sigma_pop, name: "group_#{j}")
      noises = for j <- 1..3, do: noise <~ exponential(1, name: "noise_#{j}")

      for {group, noise, j} <- Enum.zip([groups, noises, 1..3]) do
        observe("obs_#{j}", normal(group, noise), data("y_#{j}"))
      end
    end
  end

  defp program("eight_schools") do
    model do
      mu <~ normal(0, 5)
      tau <~ half_normal(5)
      theta <~ normal(mu, tau, shape: {8})
      observe(:obs, normal(theta, data(:sigma)), data(:y))
    end
  end

  defp program("funnel") do
    model do
      y <~ normal(0, 3)
      x <~ normal(0, exp(y / 2), shape: {9})
    end
  end

  defp program("logistic") do
    model do
      alpha <~ normal(0, 10)
      beta <~ normal(0, 10, shape: {20})
      observe(:obs, bernoulli_logit(alpha + dot(data(:X), beta)), data(:y))
    end
  end

  defp program("sv") do
    model do
      sigma <~ exponential(50)
      nu <~ exponential(0.1)
      s <~ gaussian_random_walk(sigma, shape: {100})
      observe(:obs, student_t(nu, 0, exp(s)), data(:returns))
    end
  end
end
