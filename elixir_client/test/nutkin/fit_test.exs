defmodule Nutkin.FitTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Draws, Fit, Tensor}
  alias Nutkin.Test.Fits

  test "chunks are joined in their order, chain by chain" do
    fit = Fits.fit([[[1, 2], [3]], [[4], [5, 6]]])
    assert Fit.tensor(fit, :mu).shape == {2, 3}
    assert Tensor.to_list(Fit.tensor(fit, "mu")) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert Fit.tensor(fit, :theta).shape == {2, 3, 2, 2}

    assert fit |> Fit.tensor(:theta) |> Tensor.to_list() |> get_in([Access.at(1), Access.at(2)]) == [
             [6.0, 60.0],
             [600.0, 6000.0]
           ]
  end

  test "chains of different lengths are cut to the shortest" do
    fit = Fits.fit([[[1, 2], [3]], [[4, 5]]])
    assert Fit.lengths(fit) == [3, 2]
    assert Tensor.to_list(Fit.tensor(fit, :mu)) == [[1.0, 2.0], [4.0, 5.0]]
    assert Tensor.to_list(Fit.tensor(fit, :mu, chains: [0])) == [[1.0, 2.0, 3.0]]
  end

  test "draws/3 and stats/3 give the type that the user works with" do
    fit = Fits.fit([[[1, 2]]])
    module = if Code.ensure_loaded?(Nx), do: Nx.Tensor, else: Tensor
    assert Fit.draws(fit, :mu).__struct__ == module
    assert Fit.stats(fit, :lp).__struct__ == module
  end

  test "warmup draws are apart from the others" do
    fit = [[[1, 2]]] |> Fits.fit() |> Fit.put({:draws, Fits.draws(0, 0, [7, 8, 9], :warmup)})
    assert Tensor.to_list(Fit.tensor(fit, :mu)) == [[1.0, 2.0]]
    assert Tensor.to_list(Fit.tensor(fit, :mu, phase: :warmup)) == [[7.0, 8.0, 9.0]]
    assert Fit.lengths(fit) == [2]
  end

  test "names are in the order of the model, as far as they were asked for" do
    assert Fit.names(Fits.fit([[[1]]])) == ["theta", "mu"]
    assert Fit.names(Fits.fit([[[1]]], variables: ["mu"])) == ["mu"]
    assert Fit.names(Fit.new(%{chains: 1})) == []
  end

  test "names are those of the draws where it is not known what was compiled" do
    fit = %{chains: 1} |> Fit.new() |> Fit.put({:draws, Fits.draws(0, 0, [1, 2, 3, 4])})
    assert Fit.names(fit) == ["mu", "theta"]
    assert fit |> Fit.summary() |> Map.fetch!(:rows) |> length() == 5
  end

  test "only the options of sampling are kept" do
    options = %{chains: 2, seed: 1, data: %{"y" => [1]}, worker: Nutkin, on_progress: &inspect/1, timeout: 5}
    assert Fit.new(options).options == %{chains: 2, seed: 1}
  end

  test "a column is one scalar of each chain, cut to the shortest" do
    fit = Fits.fit([[[1, 2], [3]], [[4, 5]]])
    assert Fit.form(fit, :theta) == {{:f, 64}, {2, 2}}

    assert fit |> Fit.column(:theta, 2) |> Enum.map(&Tensor.Type.decode(&1, {:f, 64}, 2)) == [
             [100.0, 200.0],
             [400.0, 500.0]
           ]
  end

  test "divergences are counted in all chains, not in the warmup" do
    fit =
      [[[1, 6], [7]], [[2], [9, 3]]] |> Fits.fit() |> Fit.put({:draws, Fits.draws(0, 0, [7, 8, 9], :warmup)})

    assert Fit.divergences(fit) == 3
  end

  test "the end sets status, chains and seconds" do
    fit = Fit.put(Fits.fit([[[1]], [[2]]]), Fits.done(2))
    assert %Fit{status: :complete, seconds: %{compile: 1.25, warmup: 0.25, sample: 0.5}} = fit
    assert Enum.map(fit.chains, & &1.chain) == [0, 1]
  end

  test "what is not there is said" do
    fit = Fits.fit([[[1, 2]], []])

    assert_raise ArgumentError, ~r/nothing was drawn as nu: there are mu, theta/, fn ->
      Fit.tensor(fit, :nu, chains: [0])
    end

    assert_raise ArgumentError, ~r/no draws: the chains \[0, 1\] have \[2, 0\] draws/, fn ->
      Fit.tensor(fit, :mu)
    end

    assert_raise ArgumentError, ~r/no chain 2: they are numbered from 0 to 1/, fn ->
      Fit.tensor(fit, :mu, chains: [2])
    end

    assert_raise ArgumentError, "expected phase: to be :sample or :warmup, found: :warm", fn ->
      Fit.draws(fit, :mu, phase: :warm)
    end

    for chains <- [0, []] do
      assert_raise ArgumentError,
                   ~r/expected chains: to be a list of chains, such as \[0\], found: #{inspect(chains) |> Regex.escape()}/,
                   fn ->
                     Fit.draws(fit, :mu, chains: chains)
                   end
    end

    assert_raise ArgumentError, ~r/unknown keys \[:phse\]/, fn -> Fit.tensor(fit, :mu, phse: :warmup) end
    refute Fit.empty?(fit)
    assert Fit.empty?(Fits.fit([[], []]))
  end

  test "it prints as the table of its first 30 rows" do
    text = [[[1, 2, 3, 4]], [[2, 3, 4, 5]]] |> Fits.fit() |> Fit.put(Fits.done(2)) |> inspect()

    assert text =~
             "#Nutkin.Fit<2 chains x 4 draws, complete, 0 divergences, 0.3 s warmup, 0.5 s sampling, 1.3 s compiling\n"

    assert text =~ ~r/^  theta\[1, 0\] +300/m
    assert String.ends_with?(text, "\n>")
  end

  # The numbers do not matter here.
  defp large(scalars, draws) do
    tensor = Tensor.from_binary(:binary.copy(<<1.0::float-little>>, scalars * draws), :f64, {draws, scalars})

    chunk = %Draws{
      chain: 0,
      phase: :sample,
      start: 0,
      count: draws,
      variables: %{"x" => tensor},
      stats: %{"diverging" => Tensor.from_binary(:binary.copy(<<0>>, draws), :u8, {draws})}
    }

    %{chains: 1} |> Fit.new() |> Fit.put({:draws, chunk})
  end

  test "of many rows and many draws it prints what takes no time, and says where the rest is" do
    lines = fn fit, opts -> fit |> inspect(opts) |> String.split("\n") end
    rows = fn fit, opts -> Enum.count(lines.(fit, opts), &(&1 =~ "x[")) end
    assert rows.(large(40, 10), []) == 30
    assert "  ... 10 more: Nutkin.Fit.summary/1 has all" in lines.(large(40, 10), [])
    assert rows.(large(40, 10), limit: 3) == 3
    assert rows.(large(40, 10), limit: :infinity) == 30
    assert rows.(large(4, 100_000), []) == 2

    assert [
             "#Nutkin.Fit<1 chain x 300000 draws, 0 divergences",
             "  x  f64 {2}",
             "  Nutkin.Fit.summary/1 has the table",
             ">"
           ] = lines.(large(2, 300_000), [])
  end

  test "without draws it prints its headline" do
    assert inspect(Fit.new(%{chains: 4})) == "#Nutkin.Fit<4 chains x 0 draws, 0 divergences\n>"
  end
end
