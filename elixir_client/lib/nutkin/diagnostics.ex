defmodule Nutkin.Diagnostics do
  @moduledoc """
  Convergence diagnostics of Markov chains: rank-normalised split R-hat, bulk and tail effective sample sizes (ESS)
  and Monte Carlo standard errors (MCSE).

  They follow Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization:
  an improved R-hat for assessing convergence of MCMC", [arXiv:1903.08008](https://arxiv.org/abs/1903.08008), and give
  the numbers of ArviZ.

  Every function takes the draws of ONE scalar as a list of chains, each a list of numbers, all of the same length:

      iex> chains = [[1.0, 3.0, 2.0, 5.0, 4.0], [2.0, 4.0, 1.0, 3.0, 5.0]]
      iex> Nutkin.Diagnostics.mean(chains)
      3.0

  The result is a float, or `:nan` where the diagnostic is not defined: fewer than four draws a chain, a draw that is
  not finite (`:nan`, `:infinity`, `:neg_infinity`), or, for `r_hat/1`, a single chain or draws that never move.
  Chains that each stand still at different places have an R-hat of `:infinity`.
  """

  alias Nutkin.Diagnostics.{Ranks, Special}

  @typedoc "The draws of one scalar: a list of chains of equal length."
  @type chains :: [[number() | :nan | :infinity | :neg_infinity]]

  @type result :: float() | :nan | :infinity

  @typedoc "What `summary/1` gives."
  @type summary :: %{
          mean: result(),
          sd: result(),
          q5: result(),
          q95: result(),
          mcse_mean: result(),
          ess_bulk: result(),
          ess_tail: result(),
          r_hat: result()
        }

  @summary [:mean, :sd, :q5, :q95, :mcse_mean, :ess_bulk, :ess_tail, :r_hat]

  # The probabilities of a normal variable one standard deviation below and above its mean, with ArviZ's digits.
  @one_sigma {0.1586553, 0.8413447}

  @doc """
  What a table shows of a scalar, at once: the numbers of the functions below (`:q5` and `:q95` are the 5 % and 95 %
  quantiles), in a fraction of their time together, since the draws are sorted once for all.

      iex> summary = Nutkin.Diagnostics.summary([[1.0, 3.0, 2.0, 5.0, 4.0], [2.0, 4.0, 1.0, 3.0, 5.0]])
      iex> {summary.mean, summary.q5, Float.round(summary.r_hat, 2)}
      {3.0, 1.0, 1.12}
  """
  @spec summary(chains()) :: summary()
  def summary(chains) do
    case with_scaled(chains, 1, &summary_of/1) do
      :nan -> Map.new(@summary, &{&1, :nan})
      summary -> summary
    end
  end

  defp summary_of(scaled) do
    all = Enum.concat(scaled)
    ranked = Ranks.rank(scaled)
    sorted = Ranks.values(ranked)
    sd = sd_of(all)

    Map.merge(
      %{
        mean: {:scale, mean_of(all)},
        sd: {:scale, sd},
        q5: {:scale, quantile_of(sorted, 0.05)},
        q95: {:scale, quantile_of(sorted, 0.95)}
      },
      convergence(scaled, ranked, sorted, sd)
    )
  end

  defp convergence([first | _], _ranked, _sorted, _sd) when length(first) < 4 do
    %{mcse_mean: :nan, ess_bulk: :nan, ess_tail: :nan, r_hat: :nan}
  end

  defp convergence([first | _] = scaled, ranked, sorted, sd) do
    halves = Ranks.halves(ranked, length(first))
    of_ranks = Ranks.scores(length(halves))
    scores = normal_scores(halves, of_ranks, scaled)

    %{
      mcse_mean: {:scale, sd / :math.sqrt(scaled |> split() |> ess())},
      ess_bulk: ess(scores),
      ess_tail: tail(scaled, sorted),
      r_hat: reduction(scores, halves, of_ranks, scaled)
    }
  end

  @doc """
  The mean of all draws.

      iex> Nutkin.Diagnostics.mean([[1, 2], [3, 6]])
      3.0
  """
  @spec mean(chains()) :: result()
  def mean(chains), do: with_scaled(chains, 1, fn scaled -> {:scale, mean_of(Enum.concat(scaled))} end)

  @doc """
  The standard deviation of all draws (with n - 1).

      iex> Nutkin.Diagnostics.sd([[1, 2], [3, 4]])
      1.2909944487358056
  """
  @spec sd(chains()) :: result()
  def sd(chains), do: with_scaled(chains, 1, fn scaled -> {:scale, sd_of(Enum.concat(scaled))} end)

  @doc """
  The quantile of all draws at `probability`, interpolated linearly (type 7 of Hyndman and Fan).

      iex> Nutkin.Diagnostics.quantile([[1, 2], [3, 4]], 0.5)
      2.5
  """
  @spec quantile(chains(), float()) :: result()
  def quantile(chains, probability) when probability >= 0 and probability <= 1 do
    with_scaled(chains, 1, fn scaled -> {:scale, scaled |> sorted() |> quantile_of(probability)} end)
  end

  @doc """
  The rank-normalised split R-hat: the larger one of the bulk (location) and the folded (spread) R-hat. Values above
  1.01 say that the chains have not mixed.

      iex> Nutkin.Diagnostics.r_hat([[1, 2, 3, 4], [11, 12, 13, 14]]) > 1.5
      true
      iex> Nutkin.Diagnostics.r_hat([[1, 2, 3, 4]])
      :nan
  """
  @spec r_hat(chains()) :: result()
  def r_hat(chains) do
    with_scaled(chains, 4, fn scaled ->
      halves = ranked_halves(scaled)
      of_ranks = Ranks.scores(length(halves))
      halves |> normal_scores(of_ranks, scaled) |> reduction(halves, of_ranks, scaled)
    end)
  end

  @doc """
  The effective sample size of the bulk: of the rank-normalised draws. It should be above 100 a chain.

      iex> Nutkin.Diagnostics.ess_bulk([[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]])
      8.0
  """
  @spec ess_bulk(chains()) :: result()
  def ess_bulk(chains) do
    with_scaled(chains, 4, fn scaled ->
      halves = ranked_halves(scaled)
      halves |> normal_scores(Ranks.scores(length(halves)), scaled) |> ess()
    end)
  end

  @doc """
  The effective sample size of the tails: the smaller one of those of the 5 % and the 95 % quantile.

      iex> Nutkin.Diagnostics.ess_tail([[1.0, 2.0, 3.0]])
      :nan
  """
  @spec ess_tail(chains()) :: result()
  def ess_tail(chains) do
    with_scaled(chains, 4, fn scaled -> tail(scaled, sorted(scaled)) end)
  end

  defp tail(chains, sorted) do
    min(indicator_ess(chains, sorted, 0.05), indicator_ess(chains, sorted, 0.95))
  end

  @doc """
  The effective sample size of the mean.

      iex> Nutkin.Diagnostics.ess_mean([[1.0, :infinity, 3.0, 2.0]])
      :nan
  """
  @spec ess_mean(chains()) :: result()
  def ess_mean(chains), do: with_scaled(chains, 4, fn scaled -> scaled |> split() |> ess() end)

  @doc """
  The effective sample size of the standard deviation.

      iex> Nutkin.Diagnostics.ess_sd([[5, 5, 5, 5]])
      4.0
  """
  @spec ess_sd(chains()) :: result()
  def ess_sd(chains),
    do: with_scaled(chains, 4, fn scaled -> scaled |> squared_deviations() |> split() |> ess() end)

  @doc """
  The effective sample size of the quantile at `probability`.

      iex> Nutkin.Diagnostics.ess_quantile([[5, 5, 5, 5]], 0.25)
      4.0
  """
  @spec ess_quantile(chains(), float()) :: result()
  def ess_quantile(chains, probability) when probability >= 0 and probability <= 1 do
    with_scaled(chains, 4, fn scaled -> indicator_ess(scaled, sorted(scaled), probability) end)
  end

  @doc """
  The Monte Carlo standard error of the mean.

      iex> Nutkin.Diagnostics.mcse_mean([[5, 5, 5, 5]])
      0.0
  """
  @spec mcse_mean(chains()) :: result()
  def mcse_mean(chains) do
    with_scaled(chains, 4, fn scaled ->
      {:scale, sd_of(Enum.concat(scaled)) / :math.sqrt(scaled |> split() |> ess())}
    end)
  end

  @doc """
  The Monte Carlo standard error of the standard deviation. `:nan` for draws that never move.

      iex> Nutkin.Diagnostics.mcse_sd([[5, 5, 5, 5]])
      :nan
  """
  @spec mcse_sd(chains()) :: result()
  def mcse_sd(chains) do
    with_scaled(chains, 4, fn scaled ->
      squares = squared_deviations(scaled)
      ess = squares |> split() |> ess()
      squares = Enum.concat(squares)
      variance = mean_of(squares)

      if variance == 0 do
        :nan
      else
        # Rounding can take the difference below zero where all deviations are alike.
        variance_of_variance = max(mean_of(Enum.map(squares, &(&1 * &1))) - variance * variance, 0.0) / ess
        {:scale, :math.sqrt(variance_of_variance / variance / 4)}
      end
    end)
  end

  @doc """
  The Monte Carlo standard error of the quantile at `probability`: half the width of its one-sigma interval.

      iex> Nutkin.Diagnostics.mcse_quantile([[5, 5, 5, 5]], 0.5)
      0.0
  """
  @spec mcse_quantile(chains(), float()) :: result()
  def mcse_quantile(chains, probability) when probability >= 0 and probability <= 1 do
    with_scaled(chains, 4, fn scaled ->
      sorted = sorted(scaled)
      ess = indicator_ess(scaled, sorted, probability)
      {low, high} = @one_sigma
      last = tuple_size(sorted) - 1

      position = fn p ->
        Special.beta_quantile(p, ess * probability + 1, ess * (1 - probability) + 1) * (last + 1) - 1
      end

      lower = elem(sorted, position.(low) |> max(0.0) |> floor())
      upper = elem(sorted, position.(high) |> min(last * 1.0) |> ceil())
      {:scale, (upper - lower) / 2}
    end)
  end

  # Diagnostics do not depend on the unit of the draws, but overflow raises here and underflow divides by zero: so
  # everything is computed on draws divided by a power of two (which is exact) near their largest magnitude.
  # `fun` gives a result that has no unit, or `{:scale, x}` for one that is in units of the draws, or a map of such results.
  defp with_scaled(chains, least_draws, fun) do
    draws = check_lengths!(chains)
    largest = Enum.reduce(chains, 0, &magnitude/2)

    if draws < least_draws or not is_number(largest) do
      :nan
    else
      scale = if largest == 0, do: 1.0, else: :math.pow(2.0, floor(:math.log2(largest)))
      chains |> map(fn x -> x / scale end) |> fun.() |> in_units(scale)
    end
  end

  # The largest magnitude, or the first draw that is not a number.
  defp magnitude(_chain, largest) when is_atom(largest), do: largest
  defp magnitude([], largest), do: largest
  defp magnitude([x | rest], largest) when is_number(x), do: magnitude(rest, max(abs(x), largest))
  defp magnitude([x | _], _largest), do: x

  defp in_units(%{} = results, scale), do: Map.new(results, fn {name, x} -> {name, in_units(x, scale)} end)
  defp in_units({:scale, result}, scale), do: unscale(result, scale)
  defp in_units(result, _scale), do: result

  defp unscale(:nan, _scale), do: :nan

  # The spread of draws near the largest float can be beyond it.
  defp unscale(result, scale) do
    result * scale
  rescue
    ArithmeticError -> :infinity
  end

  defp check_lengths!([first | rest] = chains) when is_list(first) do
    draws = length(first)

    unless Enum.all?(rest, &(is_list(&1) and length(&1) == draws)) do
      raise ArgumentError,
            "expected chains of one length, found the lengths #{inspect(Enum.map(chains, &length/1))}"
    end

    draws
  end

  defp check_lengths!(other) do
    raise ArgumentError,
          "expected a list of at least one chain, each a list of draws, found: #{inspect(other)}"
  end

  # Both halves of each chain, one after the other; the middle draw of an odd number is left out.
  defp split([first | _] = chains) do
    draws = length(first)
    half = div(draws, 2)
    Enum.flat_map(chains, &[Enum.take(&1, half), Enum.drop(&1, draws - half)])
  end

  # The ranking of `split(chains)`, and the chains of its normal scores.
  defp ranked_halves([first | _] = chains), do: chains |> Ranks.rank() |> Ranks.halves(length(first))

  defp normal_scores(halves, of_ranks, [first | _]) do
    Ranks.normal_scores(halves, of_ranks, div(length(first), 2))
  end

  # The larger R-hat of the two: that of the draws, whose scores are there, and of their distances from the median.
  defp reduction(_scores, _halves, _of_ranks, [_single]), do: :nan

  defp reduction(scores, halves, of_ranks, chains) do
    median = halves |> Ranks.values() |> quantile_of(0.5)
    folded = halves |> Ranks.fold(median) |> normal_scores(of_ranks, chains)
    largest(scale_reduction(scores), scale_reduction(folded))
  end

  defp scale_reduction([first | _] = chains) do
    draws = length(first)
    within = chains |> Enum.map(&variance_of/1) |> mean_of()
    between = chains |> Enum.map(&mean_of/1) |> variance_of()

    cond do
      within > 0 -> :math.sqrt((draws * between / within + draws - 1) / draws)
      between > 0 -> :infinity
      true -> :nan
    end
  end

  # Folded draws that never move (as those of two values do) say nothing.
  defp largest(bulk, :nan), do: bulk
  defp largest(:infinity, _), do: :infinity
  defp largest(_, :infinity), do: :infinity
  defp largest(a, b), do: max(a, b)

  defp indicator_ess(chains, sorted, probability) do
    quantile = quantile_of(sorted, probability)
    chains |> map(fn x -> if x <= quantile, do: 1.0, else: 0.0 end) |> split() |> ess()
  end

  defp squared_deviations(chains) do
    mean = mean_of(Enum.concat(chains))
    map(chains, fn x -> (x - mean) * (x - mean) end)
  end

  # The effective sample size of chains as they are, by Geyer's initial positive and monotone sequences.
  defp ess([first | _] = chains) do
    draws = length(first)
    total = draws * length(chains)

    if still?(chains) do
      total * 1.0
    else
      means = Enum.map(chains, &mean_of/1)
      centred = for {chain, mean} <- Enum.zip(chains, means), do: for(x <- chain, do: x - mean)
      within = autocovariance(centred, centred, total) * draws / (draws - 1)
      spread = within * (draws - 1) / draws + variance_of(means)
      correlation = fn lagged -> 1.0 - (within - autocovariance(centred, lagged, total)) / spread end

      lagged = advance(centred)
      sum = geyer(lagged, correlation, draws, 1, {1.0, correlation.(lagged)}, :infinity, 0.0)
      total / max(sum - 1.0, 1 / :math.log10(total))
    end
  end

  defp still?([[first | _] | _] = chains),
    do: Enum.all?(chains, fn chain -> Enum.all?(chain, &(&1 == first)) end)

  # Sums the autocorrelations of pairs of lags (t - 1, t), `lagged` being the chains from lag t on. Each lag is computed
  # only when its turn comes. `bound` is the last pair's sum, which makes the sequence monotone (any atom is above any number).
  defp geyer(lagged, correlation, draws, t, {even, odd}, bound, sum) do
    pair = even + odd

    if t < draws - 3 and pair > 0 do
      bound = min(pair, bound)
      lagged_even = advance(lagged)
      lagged_odd = advance(lagged_even)
      next = {correlation.(lagged_even), correlation.(lagged_odd)}
      geyer(lagged_odd, correlation, draws, t + 2, next, bound, sum + 2 * bound)
    else
      # The last even lag improves the estimate even where its pair is not counted.
      if even > 0 or pair >= 0, do: sum + even, else: sum
    end
  end

  defp advance(chains), do: Enum.map(chains, &tl/1)

  # The mean over the chains of sum(x[i] x[i + t]) / draws; `total` is the number of all draws.
  defp autocovariance(chains, lagged, total), do: products(chains, lagged, 0.0) / total

  defp products([], [], sum), do: sum
  defp products([chain | chains], [lagged | rest], sum), do: products(chains, rest, dot(chain, lagged, sum))

  # Here and below the guards tell the compiler that it can keep the sum in a register: this takes most of the time.
  defp dot([x | xs], [y | ys], sum) when is_float(x) and is_float(y) and is_float(sum) do
    dot(xs, ys, sum + x * y)
  end

  defp dot(_, [], sum), do: sum

  defp sorted(chains), do: chains |> Enum.concat() |> Enum.sort() |> List.to_tuple()

  defp quantile_of(sorted, probability) do
    position = (tuple_size(sorted) - 1) * probability
    index = floor(position)
    fraction = position - index
    low = elem(sorted, index)
    high = elem(sorted, min(index + 1, tuple_size(sorted) - 1))
    # From the nearer end, so that both ends are met exactly.
    if fraction < 0.5, do: low + (high - low) * fraction, else: high - (high - low) * (1 - fraction)
  end

  defp map(chains, fun), do: Enum.map(chains, &Enum.map(&1, fun))

  defp mean_of(values), do: sum(values, 0.0) / length(values)

  defp sum([x | rest], sum) when is_float(x) and is_float(sum), do: sum(rest, sum + x)
  defp sum([], sum), do: sum

  defp sd_of([_single]), do: :nan
  defp sd_of(values), do: :math.sqrt(variance_of(values))

  defp variance_of(values), do: squares(values, mean_of(values), 0.0) / (length(values) - 1)

  defp squares([x | rest], mean, sum) when is_float(x) and is_float(mean) and is_float(sum) do
    squares(rest, mean, sum + (x - mean) * (x - mean))
  end

  defp squares([], _mean, sum), do: sum
end
