defmodule Nutkin.Model.Imputation do
  @moduledoc false
  # Observations of which some are missing: these become a free variable, and the distribution that is observed is their
  # prior.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Distribution, Node}

  # By the values of a distribution, as its table says them: an improper variable on them, and a number among them.
  @free %{
    "real" => {"flat", %{}, 0.0},
    "positive" => {"half_flat", %{}, 1.0},
    "between 0 and 1" => {"uniform", %{"lower" => 0, "upper" => 1}, 0.5}
  }

  @doc "Whether nil stands for some of the numbers of a list, or of lists of lists."
  @spec missing?(term()) :: boolean()
  def missing?(list) when is_list(list), do: Enum.any?(list, &(&1 == nil or missing?(&1)))
  def missing?(_value), do: false

  @doc """
  The value to observe: the list with a free variable `NAME_missing` of {k} numbers in the k places that are nil, in
  their row-major order.
  """
  @spec complete(String.t(), Distribution.t(), list()) :: Node.t()
  def complete(name, distribution, list) do
    {family, limits, inside} = free!(name, distribution)
    flat = List.flatten(list)
    places = for {nil, place} <- Enum.with_index(flat), do: [place]

    args = for {limit, number} <- limits, into: %{}, do: {limit, Builder.reference(number, limit)}
    fields = %{"kind" => "rv", "dist" => family, "args" => args, "shape" => [length(places)]}
    missing = Builder.named(name <> "_missing", fields)

    filled = Builder.node(fill(list, inside), "the value of #{name}")
    shape = shape(list)
    row = Builder.call("reshape", [filled], %{"shape" => [length(flat)]})
    row = Builder.call("indexed_put", [row, places, missing], %{})
    Builder.call("reshape", [row], %{"shape" => shape})
  end

  defp free!(name, %Distribution{family: family}) do
    values =
      Enum.find_value(Distribution.table(), fn {known, _parameters, values, _note} ->
        if Atom.to_string(known) == family, do: values
      end)

    with nil <- @free[values] do
      raise InvalidModel,
        message: "the values of #{name} that are nil cannot be imputed",
        node: name,
        expected: "a distribution on the real line, on the positive numbers or on (0, 1)",
        found: Distribution.label(family),
        hint: "leave them out with a mask: any number in the place of nil, and mask: 0 there"
    end
  end

  # Floats, so that the place of a missing number can hold one.
  defp fill(list, inside) when is_list(list), do: Enum.map(list, &fill(&1, inside))
  defp fill(nil, inside), do: inside
  defp fill(number, _inside) when is_integer(number), do: number * 1.0
  defp fill(other, _inside), do: other

  defp shape([first | _] = list), do: [length(list) | shape(first)]
  defp shape(_number), do: []
end
