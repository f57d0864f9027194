defmodule Nutkin.Diagnostics.Special do
  @moduledoc false
  # The special functions that the diagnostics need and `:math` lacks.

  # Coefficients of the rational approximations of Wichura's AS 241 (PPND16), constant term first; about 16 digits.
  @central {:central,
            [
              3.3871328727963666080e0,
              1.3314166789178437745e2,
              1.9715909503065514427e3,
              1.3731693765509461125e4,
              4.5921953931549871457e4,
              6.7265770927008700853e4,
              3.3430575583588128105e4,
              2.5090809287301226727e3
            ],
            [
              1.0,
              4.2313330701600911252e1,
              6.8718700749205790830e2,
              5.3941960214247511077e3,
              2.1213794301586595867e4,
              3.9307895800092710610e4,
              2.8729085735721942674e4,
              5.2264952788528545610e3
            ]}
  @middle {:middle,
           [
             1.42343711074968357734e0,
             4.63033784615654529590e0,
             5.76949722146069140550e0,
             3.64784832476320460504e0,
             1.27045825245236838258e0,
             2.41780725177450611770e-1,
             2.27238449892691845833e-2,
             7.74545014278341407640e-4
           ],
           [
             1.0,
             2.05319162663775882187e0,
             1.67638483018380384940e0,
             6.89767334985100004550e-1,
             1.48103976427480074590e-1,
             1.51986665636164571966e-2,
             5.47593808499534494600e-4,
             1.05075007164441684324e-9
           ]}
  @far {:far,
        [
          6.65790464350110377720e0,
          5.46378491116411436990e0,
          1.78482653991729133580e0,
          2.96560571828504891230e-1,
          2.65321895265761230930e-2,
          1.24266094738807843860e-3,
          2.71155556874348757815e-5,
          2.01033439929228813265e-7
        ],
        [
          1.0,
          5.99832206555887937690e-1,
          1.36929880922735805310e-1,
          1.48753612908506148525e-2,
          7.86869131145613259100e-4,
          1.84631831751005468180e-5,
          1.42151175831644588870e-7,
          2.04426310338993978564e-15
        ]}

  # Lanczos' approximation of log gamma with g = 7.
  @lanczos [
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7
  ]

  @doc """
  The standard normal quantile of `p`, 0 < p < 1.

      iex> Nutkin.Diagnostics.Special.normal_quantile(0.5)
      0.0
      iex> Float.round(Nutkin.Diagnostics.Special.normal_quantile(0.975), 12)
      1.959963984540
  """
  @spec normal_quantile(float()) :: float()
  def normal_quantile(p) when is_float(p) and p > 0 and p < 1 do
    q = p - 0.5

    if abs(q) <= 0.425 do
      q * central(0.180625 - q * q)
    else
      r = :math.sqrt(-:math.log(if q < 0, do: p, else: 1.0 - p))
      z = if r <= 5.0, do: middle(r - 1.6), else: far(r - 5.0)
      if q < 0, do: -z, else: z
    end
  end

  # Written out as Horner's scheme, since this is called for every draw.
  x = Macro.var(:x, __MODULE__)

  horner = fn coefficients ->
    coefficients
    |> Enum.reverse()
    |> Enum.reduce(fn c, sum -> quote(do: unquote(sum) * unquote(x) + unquote(c)) end)
  end

  for {name, numerator, denominator} <- [@central, @middle, @far] do
    defp unquote(name)(unquote(x)) when is_float(unquote(x)),
      do: unquote(horner.(numerator)) / unquote(horner.(denominator))
  end

  @doc """
  The quantile of the beta distribution: the `x` at which the regularised incomplete beta function of `a`, `b` > 0 is `p`.

      iex> Float.round(Nutkin.Diagnostics.Special.beta_quantile(0.5, 2.0, 2.0), 12)
      0.5
  """
  @spec beta_quantile(float(), float(), float()) :: float()
  def beta_quantile(p, a, b) when p > 0 and p < 1 and a > 0 and b > 0 do
    bisect(p, a, b, log_beta(a, b), 0.0, 1.0, 64)
  end

  defp bisect(_p, _a, _b, _log_beta, low, high, 0), do: (low + high) / 2

  defp bisect(p, a, b, log_beta, low, high, steps) do
    middle = (low + high) / 2

    if incomplete_beta(middle, a, b, log_beta) < p,
      do: bisect(p, a, b, log_beta, middle, high, steps - 1),
      else: bisect(p, a, b, log_beta, low, middle, steps - 1)
  end

  # The continued fraction converges fast only on one side of the mean; the other side follows by symmetry.
  defp incomplete_beta(x, _a, _b, _log_beta) when x <= 0.0, do: 0.0
  defp incomplete_beta(x, _a, _b, _log_beta) when x >= 1.0, do: 1.0

  defp incomplete_beta(x, a, b, log_beta) do
    front = :math.exp(a * :math.log(x) + b * :math.log(1.0 - x) - log_beta)

    if x < (a + 1) / (a + b + 2),
      do: front * fraction(x, a, b) / a,
      else: 1.0 - front * fraction(1.0 - x, b, a) / b
  end

  # The modified Lentz algorithm.
  defp fraction(x, a, b) do
    d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1))
    lentz(x, a, b, 1, 1.0, d, d)
  end

  defp lentz(_x, _a, _b, m, _c, _d, value) when m > 10_000, do: value

  defp lentz(x, a, b, m, c, d, value) do
    even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    d = 1.0 / nonzero(1.0 + even * d)
    c = nonzero(1.0 + even / c)
    value = value * c * d
    odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    d = 1.0 / nonzero(1.0 + odd * d)
    c = nonzero(1.0 + odd / c)
    step = c * d

    if abs(step - 1.0) < 1.0e-15,
      do: value * step,
      else: lentz(x, a, b, m + 1, c, d, value * step)
  end

  defp nonzero(x) when abs(x) < 1.0e-300, do: 1.0e-300
  defp nonzero(x), do: x

  defp log_beta(a, b), do: log_gamma(a) + log_gamma(b) - log_gamma(a + b)

  defp log_gamma(x) when x < 0.5 do
    :math.log(:math.pi() / :math.sin(:math.pi() * x)) - log_gamma(1.0 - x)
  end

  defp log_gamma(x) do
    x = x - 1.0
    t = x + 7.5

    series =
      @lanczos
      |> Enum.with_index(1)
      |> Enum.reduce(0.99999999999980993, fn {c, i}, sum -> sum + c / (x + i) end)

    0.5 * :math.log(2.0 * :math.pi()) + (x + 0.5) * :math.log(t) - t + :math.log(series)
  end
end
