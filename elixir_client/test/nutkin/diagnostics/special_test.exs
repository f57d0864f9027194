defmodule Nutkin.Diagnostics.SpecialTest do
  use ExUnit.Case, async: true

  alias Nutkin.Diagnostics.Special

  doctest Nutkin.Diagnostics.Special

  # p, and the quantile by SciPy 1.18.
  @normal [
    {1.0e-300, -37.0470962993612},
    {1.0e-20, -9.262340089798409},
    {1.0e-08, -5.612001244174789},
    {0.001, -3.090232306167813},
    {0.07, -1.4757910281791706},
    {0.2, -0.8416212335729142},
    {0.49, -0.02506890825871106},
    {0.6, 0.2533471031357997},
    {0.93, 1.475791028179171},
    {0.999999, 4.753424308817087}
  ]

  @beta [
    {0.1586553, 1.0, 1.0, 0.1586553},
    {0.1586553, 20.3, 360.7, 0.04185644745447648},
    {0.8413447, 20.3, 360.7, 0.06470915680326761},
    {0.5, 2000.5, 2000.5, 0.5},
    {0.1586553, 3800.2, 201.4, 0.9462164815507913},
    {0.8413447, 1.5, 1.0, 0.8912153174441115},
    {0.01, 0.5, 0.25, 0.0006872822977617727},
    {0.999, 0.3, 7.5, 0.47473443902361484}
  ]

  for {p, expected} <- @normal do
    test "normal_quantile(#{p})" do
      assert_relative(Special.normal_quantile(unquote(p)), unquote(expected), 1.0e-14)
    end
  end

  for {p, a, b, expected} <- @beta do
    test "beta_quantile(#{p}, #{a}, #{b})" do
      assert_relative(Special.beta_quantile(unquote(p), unquote(a), unquote(b)), unquote(expected), 1.0e-10)
    end
  end

  defp assert_relative(found, expected, tolerance) do
    assert abs(found - expected) <= tolerance * abs(expected), "expected #{expected}, found #{found}"
  end
end
