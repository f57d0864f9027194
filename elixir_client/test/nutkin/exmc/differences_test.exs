defmodule Nutkin.Exmc.DifferencesTest do
  # What a model is told where eXMC computes something else.
  use ExUnit.Case, async: true

  import Nutkin.Test.ExmcTerms

  @limits %{mu: 0.0, sigma: 1.0, lower: -1.0, upper: 1.0}
  @components %{
    components: [Exmc.Dist.Normal, Exmc.Dist.Normal],
    params: [%{mu: 0.0, sigma: 1.0}, %{mu: 2.0, sigma: 1.0}],
    weights: [0.5, 0.5]
  }

  defp warnings(nodes), do: nodes |> ir() |> Nutkin.Exmc.warnings()

  test "observed zeros and ones" do
    nodes = fn opts ->
      [rv("x", :Bernoulli, %{p: 0.5}, opts), obs("y", "x", nx([0, 1])), obs("z", "x", nx([1, 1]))]
    end

    assert [warning] = warnings(nodes.([]))
    assert warning =~ ~r/^y, z: eXMC takes the logit of observed zeros and ones/
  end

  test "a censored Weibull variable" do
    nodes = fn opts -> [rv("x", :Weibull, %{k: 1.5, lambda: 1.0}), obs("y", "x", nx([0.5]), opts)] end
    assert [warning] = warnings(nodes.(censored: :right))
    assert warning =~ ~r/^y: eXMC ignores the censoring/
    assert warnings(nodes.([])) == []
    assert warnings([rv("x", :Normal, %{mu: 0, sigma: 1}), obs("y", "x", nx([0.5]), censored: :right)]) == []
  end

  test "mixtures of several elements" do
    assert [warning] =
             warnings([
               rv("x", :Mixture, @components, shape: {2}),
               rv("v", :Mixture, @components),
               obs("y", "v", nx([0.5, 1.0])),
               obs("z", "v", 0.5)
             ])

    assert warning =~ ~r/^x, y: eXMC adds the densities of all elements/
    assert warnings([rv("x", :Mixture, @components)]) == []
  end

  test "a free truncated variable" do
    assert [warning] = warnings([rv("x", :TruncatedNormal, @limits)])
    assert warning =~ ~r/^x: eXMC lets a free TruncatedNormal leave its limits/
    assert warnings([rv("x", :TruncatedNormal, @limits), obs("y", "x", 0.5)]) == []
  end

  test "a det that nothing observes" do
    x = rv("x", :Normal, %{mu: 0.0, sigma: 1.0})
    assert [warning] = warnings([x, det("d", :add, ["x", 1.0])])
    assert warning =~ ~r/^d: no observation uses this det/
    assert warnings([x, det("d", :affine, [2.0, 1.0, "x"]), obs("y", "d", 0.5)]) == []
  end
end
