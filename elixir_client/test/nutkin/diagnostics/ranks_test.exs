defmodule Nutkin.Diagnostics.RanksTest do
  use ExUnit.Case, async: true

  alias Nutkin.Diagnostics.{Ranks, Special}

  doctest Nutkin.Diagnostics.Ranks

  # As in the definition: draws that are smaller, and half of those that are equal.
  defp average_rank(x, all), do: Enum.count(all, &(&1 < x)) + (Enum.count(all, &(&1 == x)) + 1) / 2

  test "scores are those of the average ranks, with ties and without" do
    :rand.seed(:exsss, {1, 2, 3})

    for round <- [&Float.round(&1, 1), & &1], size <- [7, 8] do
      chains = for _ <- 1..3, do: for(_ <- 1..size, do: round.(:rand.normal()))
      all = Enum.concat(chains)
      found = chains |> Ranks.rank() |> Ranks.normal_scores(Ranks.scores(3 * size), size)

      for {chain, scores} <- Enum.zip(chains, found), {x, score} <- Enum.zip(chain, scores) do
        expected = Special.normal_quantile((average_rank(x, all) - 0.375) / (3 * size + 0.25))
        assert_in_delta score, expected, 1.0e-12
      end
    end
  end

  test "zeros of both signs are a tie" do
    assert [[zero, zero, _]] = [[0.0, -0.0, 1.0]] |> Ranks.rank() |> Ranks.normal_scores(Ranks.scores(3), 3)
  end

  test "a folded ranking is that of the distances" do
    :rand.seed(:exsss, {4, 5, 6})
    chain = for _ <- 1..50, do: Float.round(:rand.normal(), 1)

    for median <- [0.1, -9.0, 9.0] do
      distances = Enum.map(chain, &abs(&1 - median))
      folded = [chain] |> Ranks.rank() |> Ranks.fold(median)
      assert Ranks.values(folded) == distances |> Enum.sort() |> List.to_tuple()
      assert Enum.all?(folded, fn {distance, place} -> Enum.at(distances, place) == distance end)
    end
  end
end
