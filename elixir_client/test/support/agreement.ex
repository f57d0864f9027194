defmodule Nutkin.Test.Agreement do
  @moduledoc false
  # Whether a fit agrees with a known posterior: means within 4 Monte Carlo standard errors, standard deviations within
  # 10 %, R-hat below 1.01.

  alias Nutkin.{Fit, Summary}

  @standard_errors 4
  @sd_ratios {0.9, 1.1}
  @r_hat 1.01

  @typedoc "A scalar, its mean and standard deviation, and the Monte Carlo standard error of this mean."
  @type expected :: {name :: String.t(), mean :: float(), sd :: float(), error :: float()}

  @type t :: %{
          name: String.t(),
          standard_errors: float(),
          sd_ratio: float(),
          r_hat: float(),
          ess_bulk: float()
        }

  @doc "One comparison for each expected scalar. Raises `KeyError` where the fit has none of that name."
  @spec compare(Fit.t(), [expected()]) :: [t()]
  def compare(fit, expected) do
    rows = Map.new(Summary.new(fit).rows, &{&1.name, &1})

    for {name, mean, sd, error} <- expected do
      row = Map.fetch!(rows, name)
      off = abs(row.mean - mean) / :math.sqrt(row.mcse_mean ** 2 + error ** 2)
      %{name: name, standard_errors: off, sd_ratio: row.sd / sd, r_hat: row.r_hat, ess_bulk: row.ess_bulk}
    end
  end

  @doc "What does not agree, in words: nothing where all is well."
  @spec faults([t()]) :: [String.t()]
  def faults(comparisons) do
    {least, most} = @sd_ratios

    Enum.flat_map(comparisons, fn %{name: name} = found ->
      for {false, fault} <- [
            {found.standard_errors < @standard_errors,
             "the mean of #{name} is #{round_to(found.standard_errors, 1)} standard errors off, not below #{@standard_errors}"},
            {found.sd_ratio > least and found.sd_ratio < most,
             "the sd of #{name} is #{round_to(found.sd_ratio, 3)} of the reference's, not between #{least} and #{most}"},
            # Atoms, as :nan, are above all numbers.
            {found.r_hat < @r_hat, "the R-hat of #{name} is #{round_to(found.r_hat, 4)}, not below #{@r_hat}"}
          ],
          do: fault
    end)
  end

  defp round_to(value, places) when is_float(value), do: Float.round(value, places)
  defp round_to(atom, _places), do: atom
end
