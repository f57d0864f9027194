# Nutkin from Elixir: eight schools through one warm worker. `Nutkin.sample/2` is timed as a whole, with new data sent each time.

import Nutkin.Model

{:ok, _} = Nutkin.start_link()

schools =
  model do
    y = data(:y)
    sigma = data(:sigma)
    mu <~ normal(0, 5)
    tau <~ half_cauchy(5)
    theta <~ normal(mu, tau, shape: {8}, centered: false)
    observe(:obs, normal(theta, sigma), y)
  end

y = [28, 8, -3, 7, -1, 1, 18, 12]
sigma = [15, 10, 16, 11, 9, 11, 10, 18]

sample = fn seed ->
  # Data that the worker has not seen: the refit of a running system.
  fresh = Enum.map(y, &(&1 + seed * 1.0e-9))
  Nutkin.sample!(schools, data: %{y: fresh, sigma: sigma}, draws: 1000, warmup: 1000, chains: 4, seed: seed)
end

sample.(0)
IO.puts("ready")

for line <- IO.stream(:stdio, :line) do
  seed = line |> String.trim() |> String.to_integer()
  {microseconds, fit} = :timer.tc(fn -> sample.(seed) end)
  mean = fit |> Nutkin.Fit.tensor(:mu) |> Nutkin.Tensor.to_flat_list() |> then(&(Enum.sum(&1) / length(&1)))
  IO.puts(~s({"seconds": #{microseconds / 1.0e6}, "mean": #{mean}}))
end
