defmodule Nutkin.SummaryTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Diagnostics, Draws, Fit, Summary, Tensor}
  alias Nutkin.Test.Fits

  setup do
    :rand.seed(:exsss, {1, 2, 3})
    numbers = for _ <- 1..2, do: for(_ <- 1..50, do: :rand.normal())
    %{numbers: numbers, fit: numbers |> Enum.map(&Enum.chunk_every(&1, 20)) |> Fits.fit()}
  end

  test "has a row for every scalar, in the order of the model", %{fit: fit, numbers: numbers} do
    summary = Summary.new(fit)

    assert Enum.map(summary.rows, & &1.name) == [
             "theta[0, 0]",
             "theta[0, 1]",
             "theta[1, 0]",
             "theta[1, 1]",
             "mu"
           ]

    assert Enum.map(summary.rows, & &1.index) == [[0, 0], [0, 1], [1, 0], [1, 1], []]
    mu = List.last(summary.rows)
    assert mu.mean == Diagnostics.mean(numbers)
    assert mu.sd == Diagnostics.sd(numbers)
    assert mu.q5 == Diagnostics.quantile(numbers, 0.05)
    assert mu.q95 == Diagnostics.quantile(numbers, 0.95)
    assert mu.mcse_mean == Diagnostics.mcse_mean(numbers)
    assert mu.ess_bulk == Diagnostics.ess_bulk(numbers)
    assert mu.ess_tail == Diagnostics.ess_tail(numbers)
    assert mu.r_hat == Diagnostics.r_hat(numbers)
    hundred = Enum.at(summary.rows, 2)
    assert_in_delta hundred.mean, 100 * mu.mean, 1.0e-9
  end

  test "takes the variables that are asked for, and as many rows as the limit says", %{fit: fit} do
    assert [%{name: "mu"}] = Summary.new(fit, variables: [:mu]).rows
    assert %{rows: [_, _], more: 3} = Summary.new(fit, limit: 2)
    assert fit |> Summary.new(limit: 2) |> inspect() =~ "\n  ... 3 more\n>"

    assert_raise ArgumentError,
                 ~r/expected variables: to be a list of names, such as \[:mu\], found: :s/,
                 fn ->
                   Fit.summary(fit, variables: :s)
                 end

    assert_raise ArgumentError, ~r/expected limit: to be a number of rows, or :infinity, found: -1/, fn ->
      Fit.summary(fit, limit: -1)
    end

    assert_raise ArgumentError, ~r/nothing was drawn as nu/, fn -> Summary.new(fit, variables: [:nu]) end
  end

  test "columns are aligned, and numbers have the places that the standard error leaves certain", %{fit: fit} do
    assert ["#Nutkin.Summary<" <> _ | lines] = fit |> Summary.new() |> inspect() |> String.split("\n")
    {table, [">"]} = Enum.split(lines, -1)
    assert table |> Enum.map(&String.length/1) |> Enum.uniq() |> length() == 1
    assert hd(table) =~ ~r/^ +mean +sd +q5 +q95 +mcse_mean +ess_bulk +ess_tail +r_hat$/
    # The standard error of a mean of a hundred is about 0.1, of its thousandfold about 100.
    assert Enum.at(table, 5) =~
             ~r/^  mu +-?\d\.\d\d? +\d\.\d\d? +-\d\.\d\d? +\d\.\d\d? +0\.\d\d\d? +\d+ +\d+ +\d\.\d\d$/

    assert Enum.at(table, 4) =~ ~r/^  theta\[1, 1\] +-?\d+(\.\d)? +\d{3,4} +-\d{4} +\d{4} +\d{2,3}(\.\d)? /
  end

  test "warns of chains without a draw that is not divergent, and of variables that run off" do
    # What is above 5 is divergent.
    fit = Fits.fit([[[1, 2], [6, 7]], [[6, 7], [8, 9]]])
    assert [lost] = Summary.new(fit).warnings
    assert lost =~ ~r/^all draws of chain 1 are divergent, /
    assert inspect(fit) =~ "\n  all draws of chain 1 are divergent, "
    assert Summary.new(Fits.fit([[[1, 6, 7, 8]]])).warnings == []

    assert ["theta[1, 1] has draws beyond 1.0e100: " <> _] =
             Summary.new(Fits.fit([[[1, 2, -1.0e98, 3]]])).warnings

    off = [[[1, 2, -2.0e101, 3]]] |> Fits.fit() |> Summary.new() |> Map.fetch!(:warnings)
    assert ["theta[0, 0] has draws" <> _, "mu has draws" <> _] = off
  end

  test "large and small numbers keep the places that are certain" do
    rng = :rand.seed_s(:exsss, 5)
    {numbers, _} = Enum.map_reduce(1..100, rng, fn _, rng -> :rand.normal_s(rng) end)
    large = inspect(Summary.new(Fits.fit([[Enum.map(numbers, &(1.7e9 + 100 * &1))]]), variables: [:mu]))
    # The standard error is just below 10.
    assert large =~ ~r/^  mu +1\.[67]\d{8}e\+?09 /m
    small = inspect(Summary.new(Fits.fit([[[1.0e-6, 2.0e-6, 3.0e-6]]]), variables: [:mu]))
    assert small =~ ~r/^  mu +2\.0+e-0?6 /m
  end

  test "numbers that are no numbers, huge, or negative zeros" do
    options = %{chains: 1, variables: nil}
    names = ["nan", "huge", "tiny", "still"]
    parameters = for name <- names, do: %{name: name, shape: {}, type: "f64", size: 1}

    compiled = %{
      parameters: parameters,
      deterministic: [],
      observed: [],
      predicted: [],
      dimension: 4,
      rewrites: [],
      cached: true,
      seconds: 0
    }

    variables = %{
      "nan" => Tensor.new([1.0, :nan, 2.0, 3.0]),
      "huge" => Tensor.new([1.0e300, 2.0e300, 3.0e300, 4.0e300]),
      "tiny" => Tensor.new([-1.0e-20, 1.0e-20, -2.0e-20, 1.0e-20]),
      "still" => Tensor.new([-0.0, -0.0, -0.0, -0.0])
    }

    draws = %Draws{
      chain: 0,
      phase: :sample,
      start: 0,
      count: 4,
      variables: variables,
      stats: %{"diverging" => Tensor.new([0, 1, 0, 0], type: :u8)}
    }

    text = options |> Fit.new() |> Fit.put({:compiled, compiled}) |> Fit.put({:draws, draws}) |> inspect()
    assert text =~ "1 chain x 4 draws, 1 divergence,"
    assert text =~ ~r/^  nan +NaN +NaN +NaN +NaN +NaN +NaN +NaN +NaN$/m
    assert text =~ ~r/^  huge +2\.500e\+?300 +1\.291e\+?300/m

    assert text =~
             "\n  huge has draws beyond 1.0e100: see that a prior holds it, or what it is computed of\n>"

    refute text =~ "all draws of chain"
    assert text =~ ~r/^  tiny +-2\.500e-21/m
    assert text =~ ~r/^  still +0\.000 +0\.000 +0\.000 +0\.000 +0\.0000 +4 +4 +NaN$/m
  end
end
