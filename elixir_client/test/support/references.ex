defmodule Nutkin.Test.References do
  @moduledoc false
  # Posteriors with known answers, from tests/references: data as they are, and means and standard deviations.

  @folder Path.expand("../../../tests/references", __DIR__)

  @doc "One of public posteriordb's posteriors: `{data, reference}`, both maps by name (`\"beta[1]\"` for elements)."
  def posteriordb(name) do
    %{"data" => data, "reference" => reference} = read("posteriordb/#{name}.json")
    {data, reference}
  end

  @doc "The data, log densities and exact moments of eXMC's benchmark."
  def exmc(file), do: read("exmc/#{file}.json")

  defp read(path), do: @folder |> Path.join(path) |> File.read!() |> Nutkin.Test.JSON.decode!()
end
