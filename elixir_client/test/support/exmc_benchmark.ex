defmodule Nutkin.Test.ExmcBenchmark do
  @moduledoc """
  The seven models of eXMC's benchmark, as a user of eXMC writes them, and the order of coordinates of their references.
  """

  import Nutkin.Test.ExmcTerms

  alias Nutkin.Test.{ExmcExpressions, References}

  def names, do: ~w(simple medium stress eight_schools funnel logistic sv)

  @doc "The model, and its variables with their sizes in the order of the references."
  def get(name) do
    {nodes, data, layout} = model(name, References.exmc("bench_data")[name])
    {ir(nodes, data: data), layout}
  end

  defp model("simple", data) do
    {[
       rv("mu", :Normal, %{mu: nx(0.0), sigma: nx(10.0)}),
       rv("sigma", :Exponential, %{lambda: nx(1.0)}),
       rv("y", :Normal, %{mu: "mu", sigma: "sigma"}),
       obs("y_obs", "y", nx(data["y"]))
     ], nil, ~w(mu sigma)}
  end

  defp model("medium", data) do
    {[
       rv("mu_global", :Normal, %{mu: nx(0.0, {:f, 32}), sigma: nx(10.0, {:f, 32})}),
       rv("sigma_global", :Exponential, %{lambda: nx(1.0)}),
       rv("alpha", :Normal, %{mu: "mu_global", sigma: "sigma_global"}),
       rv("beta", :Normal, %{mu: "mu_global", sigma: "sigma_global"}),
       rv("sigma_obs", :Exponential, %{lambda: 2.0}),
       rv("y_a", :Normal, %{mu: "alpha", sigma: "sigma_obs"}),
       rv("y_b", :Normal, %{mu: "beta", sigma: "sigma_obs"}),
       obs("y_a_obs", "y_a", nx(data["y_a"])),
       obs("y_b_obs", "y_b", nx(data["y_b"]))
     ], nil, ~w(mu_global sigma_global alpha beta sigma_obs)}
  end

  defp model("stress", data) do
    groups =
      Enum.flat_map(1..3, fn j ->
        [
          rv("group_#{j}", :Normal, %{mu: "mu_pop", sigma: "sigma_pop"}),
          rv("noise_#{j}", :Exponential, %{lambda: 1}),
          rv("y_#{j}", :Normal, %{mu: "group_#{j}", sigma: "noise_#{j}"}),
          obs("y_#{j}_obs", "y_#{j}", nx(data["y_#{j}"]))
        ]
      end)

    population = [
      rv("mu_pop", :Normal, %{mu: 0.0, sigma: 10.0}),
      rv("sigma_pop", :Exponential, %{lambda: 0.5})
    ]

    {population ++ groups, nil, ~w(mu_pop sigma_pop group_1 group_2 group_3 noise_1 noise_2 noise_3)}
  end

  defp model("eight_schools", data) do
    {[
       rv("mu", :Normal, %{mu: 0.0, sigma: 5.0}),
       rv("tau", :HalfNormal, %{sigma: 5.0}, transform: :log),
       rv("theta", :Normal, %{mu: "mu", sigma: "tau"}, shape: {8}),
       rv("y", :Normal, %{mu: "theta", sigma: nx(data["sigma"])}),
       obs("y_obs", "y", nx(data["y"]))
     ], nil, ["mu", "tau", {"theta", 8}]}
  end

  # -(log(2 pi) + y + (x exp(-y / 2))²) / 2, for each x.
  defp model("funnel", _data) do
    import ExmcExpressions, except: [exp: 1]
    y = parameter(1)
    z = multiply(parameter(0, {9}), ExmcExpressions.exp(divide(y, -2)))
    logpdf = divide(add(add(multiply(z, z), y), :math.log(2 * :math.pi())), -2)

    {[rv("y", :Normal, %{mu: 0.0, sigma: 3.0}), custom("x", logpdf, %{y: "y"}, shape: {9})], nil,
     ["y", {"x", 9}]}
  end

  # Of the arguments [x, %{__obs_data, alpha, beta}]: y eta - softplus(eta).
  defp model("logistic", data) do
    import ExmcExpressions, except: [exp: 1, abs: 1, max: 2]
    observed = for {row, y} <- Enum.zip(data["X"], data["y"]), do: row ++ [y]
    data = parameter(1, {500, 21})
    eta = add(parameter(2), dot(columns(data, 0, 20), parameter(3, {20})))
    tail = eta |> ExmcExpressions.abs() |> multiply(-1) |> ExmcExpressions.exp() |> log1p()
    softplus = add(ExmcExpressions.max(eta, 0), tail)
    logpdf = sum(subtract(multiply(column(data, 20), eta), softplus))

    {[
       rv("alpha", :Normal, %{mu: 0.0, sigma: 10.0}),
       rv("beta", :Normal, %{mu: 0.0, sigma: 10.0}, shape: {20}),
       custom("ll", logpdf, %{alpha: "alpha", beta: "beta", __obs_data: "__obs_data"}),
       obs("ll_obs", "ll", nx(0.0))
     ], nx(observed), ["alpha", {"beta", 20}]}
  end

  # Of the arguments [x, %{nu, s}], the observed returns being x.
  defp model("sv", data) do
    import ExmcExpressions, except: [exp: 1]
    [r, nu, s] = [parameter(0, {100}), parameter(1), parameter(2, {100})]
    half = divide(nu, 2)
    z = divide(r, ExmcExpressions.exp(s))
    tail = multiply(add(half, 0.5), log1p(divide(multiply(z, z), nu)))
    scale = add(divide(log(multiply(nu, :math.pi())), 2), s)
    gammas = subtract(log_gamma(add(half, 0.5)), log_gamma(half))
    logpdf = subtract(subtract(gammas, scale), tail)

    {[
       rv("sigma", :Exponential, %{lambda: 50.0}),
       rv("nu", :Exponential, %{lambda: 0.1}),
       rv("s", :GaussianRandomWalk, %{sigma: "sigma"}, shape: {100}),
       custom("r", logpdf, %{nu: "nu", s: "s"}),
       obs("r_obs", "r", nx(data["returns"]))
     ], nil, ["sigma", "nu", {"s", 100}]}
  end

  # Stirling's series, for x + 10 (Abramowitz and Stegun, 6.1.41), and back by the recurrence.
  defp log_gamma(x) do
    import ExmcExpressions, except: [exp: 1]
    above = add(x, 10)
    inverse = divide(constant(1), above)
    square = multiply(inverse, inverse)

    series =
      [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360_360]
      |> Enum.reverse()
      |> Enum.reduce(constant(0), fn coefficient, sum -> add(multiply(sum, square), coefficient) end)
      |> multiply(inverse)

    stirling =
      subtract(multiply(subtract(above, 0.5), log(above)), above)
      |> add(0.5 * :math.log(2 * :math.pi()))
      |> add(series)

    Enum.reduce(0..9, stirling, fn shift, sum -> subtract(sum, log(add(x, shift))) end)
  end
end
