defmodule Nutkin.DrawsTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Draws, Tensor}
  alias Nutkin.Test.Fits

  setup do
    %{draws: Fits.draws(0, 0, [1, 6])}
  end

  test "variables and statistics are found by atoms and strings", %{draws: draws} do
    for {fetch, names, shape} <- [
          {&Draws.fetch!/2, [:theta, "theta"], {2, 2, 2}},
          {&Draws.stat!/2, [:lp, "lp"], {2}}
        ],
        name <- names do
      assert fetch.(draws, name).shape == shape
    end
  end

  test "they are of the type that the user works with", %{draws: draws} do
    module = if Code.ensure_loaded?(Nx), do: Nx.Tensor, else: Tensor
    assert Draws.fetch!(draws, :mu).__struct__ == module
    assert Draws.stat!(draws, :lp).__struct__ == module
  end

  test "what is not there is said", %{draws: draws} do
    assert_raise ArgumentError, "nothing was drawn as nu: there are mu, theta", fn ->
      Draws.fetch!(draws, :nu)
    end

    assert_raise ArgumentError, "nothing was drawn as mu: there are diverging, lp", fn ->
      Draws.stat!(draws, :mu)
    end
  end
end
