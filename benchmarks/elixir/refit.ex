defmodule Benchmarks.Refit do
  @moduledoc """
  Refits of a model through one warm worker: what they take beside the sampling, and what memory the worker keeps.
  """

  alias Benchmarks.{Line, Models, Npy, Refresh}

  @doc """
  `[model, data folder, count, at]` prints, over `count` refits on new data of the same shape, the medians of the whole
  call (`refit`) and of the sampling inside (`sampling`), in seconds, the `compilations` they caused, and the resident
  bytes of the worker after `at` refits and at the end.
  """
  @spec main([String.t()]) :: :ok
  def main([name, folder, count, at]) do
    {:ok, _} = Application.ensure_all_started(:nutkin)
    {:ok, _} = Nutkin.start_link()
    model = Models.get(name)
    data = Npy.read_folder(folder)
    [count, at] = Enum.map([count, at], &String.to_integer/1)
    refit(model, data, 0)
    before = pong().compilations

    {early, later} = 1..count |> Enum.to_list() |> Enum.split(at)
    early = Enum.map(early, &refit(model, data, &1))
    resident_early = pong().resident
    times = early ++ Enum.map(later, &refit(model, data, &1))
    last = pong()

    Line.say(
      refits: count,
      refit: median(for {whole, _} <- times, do: whole),
      sampling: median(for {_, sampling} <- times, do: sampling),
      compilations: last.compilations - before,
      resident_early: resident_early,
      resident: last.resident
    )
  end

  defp refit(model, data, seed) do
    data = Refresh.all(data, seed)
    {microseconds, fit} = :timer.tc(fn -> Nutkin.sample!(model, data: data, seed: seed) end)
    {microseconds / 1.0e6, fit.seconds.warmup + fit.seconds.sample}
  end

  defp pong do
    {:ok, pong} = Nutkin.ping()
    pong
  end

  defp median(values), do: values |> Enum.sort() |> Enum.at(div(length(values), 2))
end
