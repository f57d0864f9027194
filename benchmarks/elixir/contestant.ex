defmodule Benchmarks.Contestant do
  @moduledoc """
  Nutkin from Elixir, with its defaults: `Nutkin.sample/2` through the port, timed as a whole, with new numbers at each
  call. Speaks as `contestants/serving.py` tells.
  """

  alias Benchmarks.{Line, Models, Npy, Refresh}
  alias Nutkin.Fit

  @spec main([String.t()]) :: :ok
  def main([name, folder]) do
    {:ok, _} = Application.ensure_all_started(:nutkin)
    {:ok, _} = Nutkin.start_link()
    model = Models.get(name)
    data = Npy.read_folder(folder)
    {microseconds, _} = :timer.tc(fn -> Nutkin.compile!(model, data: data) end)
    {:ok, [info]} = Nutkin.info(Nutkin)
    versions = Map.put(info.versions, "elixir", System.version())
    Line.say(compile: microseconds / 1.0e6, versions: versions)

    for line <- IO.stream(:stdio, :line) do
      line |> String.trim() |> String.split(" ", parts: 3) |> sample(model, data)
    end

    :ok
  end

  defp sample([_variant, seed, folder], model, data) do
    seed = String.to_integer(seed)
    data = Refresh.all(data, seed)

    {microseconds, fit} =
      :timer.tc(fn -> Nutkin.sample!(model, data: data, seed: seed, chains: 4, draws: 1000) end)

    for name <- Fit.names(fit), do: Npy.write!(Path.join(folder, "#{name}.npy"), Fit.tensor(fit, name))
    steps = fit |> Fit.stats(:n_steps) |> Nutkin.Tensor.to_flat_list() |> Enum.sum()
    gradients = fit.chains |> Enum.map(& &1.gradients) |> Enum.sum()

    Line.say(
      seconds: Map.put(fit.seconds, :total, microseconds / 1.0e6),
      gradients: %{warmup: gradients - steps, sample: steps},
      divergences: Fit.divergences(fit)
    )
  end
end
