defmodule Nutkin.Test.References do
  @moduledoc false
  # Posteriors with known answers, from tests/references: data as they are, and means and standard deviations, as
  # Nutkin.Test.Agreement compares them.

  @folder Path.expand("../../../tests/references", __DIR__)

  @doc "The names of public posteriordb's posteriors that are kept."
  def posteriordb do
    for file <- @folder |> Path.join("posteriordb") |> File.ls!() |> Enum.sort(), do: Path.rootname(file)
  end

  @doc "One of them: `{data, expected}`, the data by name."
  def posteriordb(name) do
    %{"data" => data, "reference" => reference, "draws" => draws} = read("posteriordb/#{name}.json")

    # The draws are nearly independent.
    expected =
      for {scalar, %{"mean" => mean, "sd" => sd}} <- reference do
        {our_name(scalar), mean, sd, sd / :math.sqrt(draws)}
      end

    {data, expected}
  end

  # posteriordb counts elements from 1.
  defp our_name(name) do
    case Regex.run(~r/^(\w+)\[(\d+)\]$/, name) do
      [_, variable, index] -> "#{variable}[#{String.to_integer(index) - 1}]"
      nil -> name
    end
  end

  @doc "The data, log densities and exact moments of eXMC's benchmark."
  def exmc(file), do: read("exmc/#{file}.json")

  @doc "The exact moments of one of eXMC's models."
  def exmc_moments(model) do
    for {name, [mean, sd]} <- exmc("bench_reference")[model], do: {name, mean, sd, 0.0}
  end

  defp read(path), do: @folder |> Path.join(path) |> File.read!() |> Nutkin.Test.JSON.decode!()
end
