defmodule Nutkin.Diagnostics.Ranks do
  @moduledoc false
  # Draws in their order, and the normal scores of their ranks. Sorting is most of the work of the diagnostics, so it is
  # done once: everything that needs an order is made of one ranking.

  alias Nutkin.Diagnostics.Special

  @typedoc "Pairs of a draw and its place among the draws of all chains, the smallest draw first."
  @type t :: [{float(), non_neg_integer()}]

  @doc """
  The ranking of the draws of all chains.

      iex> Nutkin.Diagnostics.Ranks.rank([[0.5, 0.25], [1.0, 0.75]])
      [{0.25, 1}, {0.5, 0}, {0.75, 3}, {1.0, 2}]
  """
  @spec rank([[float()]]) :: t()
  def rank(chains), do: chains |> Enum.concat() |> Enum.with_index() |> List.keysort(0)

  @doc """
  The draws without their places.

      iex> Nutkin.Diagnostics.Ranks.values([{0.25, 1}, {0.5, 0}])
      {0.25, 0.5}
  """
  @spec values(t()) :: tuple()
  def values(ranked), do: ranked |> Enum.map(&elem(&1, 0)) |> List.to_tuple()

  @doc """
  The ranking of both halves of chains of `draws` draws: without the middle one of an odd number.

      iex> Nutkin.Diagnostics.Ranks.halves([{0.25, 1}, {0.5, 0}, {0.75, 2}], 3)
      [{0.5, 0}, {0.75, 2}]
  """
  @spec halves(t(), pos_integer()) :: t()
  def halves(ranked, draws) when rem(draws, 2) == 0, do: ranked

  def halves(ranked, draws) do
    middle = div(draws, 2)
    Enum.reject(ranked, fn {_, place} -> rem(place, draws) == middle end)
  end

  @doc """
  The ranking of the distances from `median`.

  It is made without another sort: the draws below the median come in the reverse order, those above as they are.

      iex> Nutkin.Diagnostics.Ranks.fold([{0.0, 0}, {1.0, 1}, {4.0, 2}], 1.0)
      [{0.0, 1}, {1.0, 0}, {3.0, 2}]
  """
  @spec fold(t(), float()) :: t()
  def fold(ranked, median), do: fold(ranked, median, [], [])

  defp fold([{x, place} | rest], median, below, []) when x < median do
    fold(rest, median, [{median - x, place} | below], [])
  end

  defp fold([{x, place} | rest], median, below, above) do
    fold(rest, median, below, [{x - median, place} | above])
  end

  defp fold([], _median, below, above), do: :lists.keymerge(1, below, Enum.reverse(above))

  @doc """
  The scores of the ranks from 1 to `size`, where there are no ties: normal quantiles with Blom's offsets.

      iex> Nutkin.Diagnostics.Ranks.scores(3) |> Enum.map(&Float.round(&1, 3))
      [-0.869, 0.0, 0.869]
  """
  @spec scores(pos_integer()) :: [float()]
  def scores(size) do
    lower = for rank <- 1..div(size, 2)//1, do: blom(rank, size)
    middle = if rem(size, 2) == 0, do: [], else: [0.0]
    # The upper half is the mirror image of the lower one.
    lower ++ middle ++ Enum.reduce(lower, [], &[-&1 | &2])
  end

  defp blom(rank, size), do: Special.normal_quantile((rank - 0.375) / (size + 0.25))

  @doc """
  The normal scores of ranked draws in the order of their places, in chains of `draws` each. Ties have the score of their
  average rank. `scores` are those of `scores/1`.

      iex> ranked = [{0.25, 1}, {0.5, 0}, {0.5, 2}, {1.0, 3}]
      iex> [[_, low], [tied, high]] = Nutkin.Diagnostics.Ranks.normal_scores(ranked, Nutkin.Diagnostics.Ranks.scores(4), 2)
      iex> {tied > 0, Float.round(low + high, 12)}
      {false, 0.0}
  """
  @spec normal_scores(t(), [float()], pos_integer()) :: [[float()]]
  def normal_scores(ranked, scores, draws) do
    ranked
    |> score(scores, 1, length(ranked), [])
    |> List.keysort(0)
    |> Enum.map(&elem(&1, 1))
    |> cut(draws)
  end

  defp score([{value, _}, {next, _} | _] = ranked, scores, rank, size, scored) when value == next do
    {ties, rest} = take_ties(ranked, value, [])
    count = length(ties)
    score = blom(rank + (count - 1) / 2, size)
    score(rest, Enum.drop(scores, count), rank + count, size, Enum.reduce(ties, scored, &[{&1, score} | &2]))
  end

  defp score([{_, place} | rest], [score | scores], rank, size, scored) do
    score(rest, scores, rank + 1, size, [{place, score} | scored])
  end

  defp score([], [], _rank, _size, scored), do: scored

  defp take_ties([{value, place} | rest], tied, places) when value == tied,
    do: take_ties(rest, tied, [place | places])

  defp take_ties(rest, _tied, places), do: {places, rest}

  defp cut([], _draws), do: []

  defp cut(values, draws) do
    {chain, rest} = Enum.split(values, draws)
    [chain | cut(rest, draws)]
  end
end
