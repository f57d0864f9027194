defmodule Nutkin.Model.Parameterization do
  @moduledoc false
  # Other parameters by which distributions are known, as Stan and PyMC have them: they become those of the table, by
  # operations of the model. `Nutkin.Model.Distribution.alternatives/0` lists them.

  use Nutkin.Model.Language

  @doc "The family and the parameters of the table that mean the same."
  @spec convert(atom(), %{atom() => term()}) :: {atom(), keyword()}
  def convert(:normal, %{mu: mu, tau: tau}), do: {:normal, mu: mu, sigma: rsqrt(tau)}
  def convert(:half_normal, %{tau: tau}), do: {:half_normal, sigma: rsqrt(tau)}
  def convert(:lognormal, %{mu: mu, tau: tau}), do: {:lognormal, mu: mu, sigma: rsqrt(tau)}
  def convert(:student_t, %{nu: nu, mu: mu, tau: tau}), do: {:student_t, nu: nu, mu: mu, sigma: rsqrt(tau)}
  def convert(:exponential, %{scale: scale}), do: {:exponential, rate: 1 / scale}
  def convert(:gamma, %{alpha: alpha, scale: scale}), do: {:gamma, alpha: alpha, beta: 1 / scale}
  def convert(:gamma, %{mu: mu, sigma: sigma}), do: {:gamma, alpha: (mu / sigma) ** 2, beta: mu / sigma ** 2}

  def convert(:inverse_gamma, %{mu: mu, sigma: sigma}) do
    ratio = (mu / sigma) ** 2
    {:inverse_gamma, alpha: ratio + 2, beta: mu * (ratio + 1)}
  end

  def convert(:beta, %{mu: mu, kappa: kappa}), do: {:beta_proportion, mu: mu, kappa: kappa}

  def convert(:beta, %{mu: mu, sigma: sigma}) do
    {:beta_proportion, mu: mu, kappa: mu * (1 - mu) / sigma ** 2 - 1}
  end

  def convert(:bernoulli, %{logits: logits}), do: {:bernoulli_logit, logits: logits}
  def convert(:binomial, %{n: n, logits: logits}), do: {:binomial_logit, n: n, logits: logits}
  def convert(:poisson, %{eta: eta}), do: {:poisson_log, eta: eta}
  def convert(:neg_binomial, %{eta: eta, alpha: alpha}), do: {:neg_binomial_log, eta: eta, alpha: alpha}
  def convert(:neg_binomial, %{alpha: alpha, beta: beta}), do: {:neg_binomial, mu: alpha / beta, alpha: alpha}
  def convert(:neg_binomial, %{n: n, p: p}), do: {:neg_binomial, mu: n * (1 - p) / p, alpha: n}
  def convert(:categorical, %{logits: logits}), do: {:categorical_logit, logits: logits}
  def convert(:multinomial, %{n: n, logits: logits}), do: {:multinomial_logit, n: n, logits: logits}
  def convert(:mv_normal, %{mu: mu, chol: chol}), do: {:mv_normal_cholesky, mu: mu, chol: chol}
  def convert(:mv_normal, %{mu: mu, tau: tau}), do: {:mv_normal_precision, mu: mu, tau: tau}

  def convert(:mv_student_t, %{nu: nu, mu: mu, chol: chol}) do
    {:mv_student_t_cholesky, nu: nu, mu: mu, chol: chol}
  end

  def convert(:icar, %{edges: edges, sigma: sigma}), do: {:icar_edges, edges: edges, sigma: sigma}
end
