defmodule Nutkin.DiagnosticsTest do
  use ExUnit.Case, async: true

  alias Nutkin.Diagnostics
  alias Nutkin.Test.DiagnosticsCases

  doctest Nutkin.Diagnostics

  @fixture Path.expand("../fixtures/diagnostics.txt", __DIR__)
  @external_resource @fixture

  for %{name: name} = reference <- @fixture |> File.read!() |> DiagnosticsCases.parse() do
    @tag reference: reference
    test "agrees with ArviZ: #{name}", %{reference: reference} do
      assert map_size(reference.expected) == 18
      assert_agreement(reference)
    end
  end

  @tag :python
  test "agrees with the ArviZ that is installed, on new draws" do
    %{folder: directory} = Nutkin.Test.TemporaryFolder.temporary_folder()
    :rand.seed(:exsss, {1, 2, 3})

    named =
      for rho <- [-0.5, 0.0, 0.6, 0.97], do: {"ar_#{rho}", for(_ <- 1..4, do: autoregressive(1000, rho))}

    references = DiagnosticsCases.ask_arviz(named, directory)
    assert Enum.map(references, & &1.name) == Enum.map(named, &elem(&1, 0))
    Enum.each(references, &assert_agreement/1)
  end

  describe "draws in extreme units" do
    setup do
      :rand.seed(:exsss, {4, 5, 6})
      %{chains: for(_ <- 1..2, do: autoregressive(50, 0.3))}
    end

    test "give the same R-hat and ESS, and errors in that unit", %{chains: chains} do
      for exponent <- [-1000, 1000] do
        unit = :math.pow(2.0, exponent)
        rescaled = Enum.map(chains, &Enum.map(&1, fn x -> x * unit end))
        assert Diagnostics.r_hat(rescaled) == Diagnostics.r_hat(chains)
        assert Diagnostics.ess_mean(rescaled) == Diagnostics.ess_mean(chains)
        assert Diagnostics.ess_sd(rescaled) == Diagnostics.ess_sd(chains)
        assert_in_delta Diagnostics.mcse_mean(rescaled) / unit, Diagnostics.mcse_mean(chains), 1.0e-12
        assert_in_delta Diagnostics.mcse_sd(rescaled) / unit, Diagnostics.mcse_sd(chains), 1.0e-12
      end
    end

    test "beyond the largest float are infinite" do
      assert Diagnostics.sd([[1.7e308, -1.7e308, 1.7e308, -1.7e308]]) == :infinity
    end
  end

  test "summary/1 has the numbers of the others, with ties, odd lengths and few draws" do
    :rand.seed(:exsss, {10, 11, 12})
    normal = for _ <- 1..3, do: autoregressive(101, 0.5)
    tied = for chain <- normal, do: Enum.map(chain, &round/1)

    for chains <- [normal, tied, [hd(normal)], [[1.0, 2.0, 3.0]], [[1.0, :nan, 2.0, 3.0, 4.0]]] do
      assert Diagnostics.summary(chains) == %{
               mean: Diagnostics.mean(chains),
               sd: Diagnostics.sd(chains),
               q5: Diagnostics.quantile(chains, 0.05),
               q95: Diagnostics.quantile(chains, 0.95),
               mcse_mean: Diagnostics.mcse_mean(chains),
               ess_bulk: Diagnostics.ess_bulk(chains),
               ess_tail: Diagnostics.ess_tail(chains),
               r_hat: Diagnostics.r_hat(chains)
             }
    end
  end

  test "summary/1 takes less work than R-hat and the two effective sample sizes alone" do
    :rand.seed(:exsss, {13, 14, 15})
    chains = for _ <- 1..4, do: autoregressive(1000, 0.3)

    apart = reductions(fn -> Enum.each([:r_hat, :ess_bulk, :ess_tail], &apply(Diagnostics, &1, [chains])) end)

    assert reductions(fn -> Diagnostics.summary(chains) end) < apart
  end

  test "a draw that is not finite makes everything :nan" do
    for bad <- [:nan, :infinity, :neg_infinity] do
      chains = [[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, bad, 4.0, 5.0]]
      assert Diagnostics.mean(chains) == :nan
      assert Diagnostics.r_hat(chains) == :nan
      assert Diagnostics.ess_bulk(chains) == :nan
      assert Diagnostics.ess_tail(chains) == :nan
      assert Diagnostics.mcse_mean(chains) == :nan
    end
  end

  test "chains that stand still at different places have an infinite R-hat" do
    assert Diagnostics.r_hat([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]) == :infinity
  end

  test "a single draw has no spread" do
    assert Diagnostics.mean([[3.0]]) == 3.0
    assert Diagnostics.sd([[3.0]]) == :nan
  end

  test "chains of different lengths are refused" do
    assert_raise ArgumentError, ~r/chains of one length, found the lengths \[2, 1\]/, fn ->
      Diagnostics.mean([[1.0, 2.0], [1.0]])
    end

    assert_raise ArgumentError, ~r/at least one chain/, fn -> Diagnostics.r_hat([]) end
  end

  test "the work for sticky chains grows with the lags that count, not with the square of the draws" do
    :rand.seed(:exsss, {7, 8, 9})
    chains = for _ <- 1..4, do: autoregressive(10_000, 0.5)
    # All lags would take 4 * 10_000^2 / 4 products.
    assert reductions(fn -> Diagnostics.ess_mean(chains) end) < 10_000_000
  end

  defp reductions(fun) do
    {_, before} = :erlang.process_info(self(), :reductions)
    fun.()
    {_, behind} = :erlang.process_info(self(), :reductions)
    behind - before
  end

  defp assert_agreement(%{name: name, chains: chains, expected: expected}) do
    # 17 from an installed ArviZ before 1.0, see diagnostics_reference.py.
    assert map_size(expected) in [17, 18]

    for {diagnostic, value} <- expected do
      found = DiagnosticsCases.diagnose(chains, diagnostic)

      assert close?(found, value),
             "#{diagnostic} of #{name}: expected ArviZ's #{inspect(value)}, found #{inspect(found)}"
    end
  end

  defp close?(found, value) when is_number(found) and is_number(value) do
    abs(found - value) <= 1.0e-9 * max(abs(value), 1.0e-3)
  end

  defp close?(found, value), do: found == value

  defp autoregressive(draws, rho) do
    {values, _last} =
      Enum.map_reduce(1..draws, :rand.normal(), fn _, last ->
        next = rho * last + :math.sqrt(1 - rho * rho) * :rand.normal()
        {next, next}
      end)

    values
  end
end
