defmodule Nutkin.Exmc.DistributionsTest do
  # Every distribution of eXMC, under every name that its parameters have, is that of Nutkin's own language.
  use ExUnit.Case, async: true

  import Nutkin.Model
  import Nutkin.Test.ExmcTerms
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Exmc.Distributions
  alias Nutkin.Test.Engine

  @moduletag :python

  setup :temporary_folder

  @vector [0.5, 1.5, 2.0]

  # Parameters by their first names, and the same distribution in Nutkin's language.
  defp cases do
    use Nutkin.Model.Language

    [
      {:Normal, [mu: 0.3, sigma: 2.0], fn opts -> normal(0.3, 2, opts) end},
      {:HalfNormal, [sigma: 2.0], fn opts -> half_normal(2, opts) end},
      {:Exponential, [lambda: 2.0], fn opts -> exponential(2, opts) end},
      {:Gamma, [alpha: 2.0, beta: 3.0], fn opts -> gamma(2, 3, opts) end},
      {:Beta, [alpha: 2.0, beta: 3.0], fn opts -> beta(2, 3, opts) end},
      {:Uniform01, [], fn opts -> uniform(0, 1, opts) end},
      {:Uniform, [lower: -1.0, upper: 3.0], fn opts -> uniform(-1, 3, opts) end},
      {:StudentT, [df: 4.0, loc: 0.3, scale: 2.0], fn opts -> student_t(4, 0.3, 2, opts) end},
      {:Cauchy, [loc: 0.3, scale: 2.0], fn opts -> cauchy(0.3, 2, opts) end},
      {:HalfCauchy, [scale: 2.0], fn opts -> half_cauchy(2, opts) end},
      {:Lognormal, [mu: 0.3, sigma: 2.0], fn opts -> lognormal(0.3, 2, opts) end},
      {:Laplace, [mu: 0.3, b: 2.0], fn opts -> laplace(0.3, 2, opts) end},
      {:Weibull, [k: 1.5, lambda: 2.0], fn opts -> weibull(1.5, 2, opts) end},
      {:TruncatedNormal, [mu: 0.3, sigma: 2.0, lower: -1.0, upper: 3.0],
       fn opts -> truncated(normal(0.3, 2), [lower: -1, upper: 3] ++ opts) end},
      {:MvNormal, [mu: [0.3, 1.0], cov: [[2.0, 0.5], [0.5, 1.0]]],
       fn opts -> mv_normal([0.3, 1.0], [[2.0, 0.5], [0.5, 1.0]], opts) end},
      {:GaussianRandomWalk, [sigma: 2.0], fn opts -> gaussian_random_walk(2, [shape: {4}] ++ opts) end},
      {:Dirichlet, [alpha: [1.0, 2.0, 3.0]], fn opts -> dirichlet([1.0, 2.0, 3.0], opts) end},
      {:Mixture,
       [
         components: [Exmc.Dist.Normal, Exmc.Dist.Laplace],
         params: [%{mu: 0.0, sigma: 1.0}, %{mu: 1.0, b: 2.0}],
         weights: [0.25, 0.75]
       ], fn opts -> mixture([0.25, 0.75], [normal(0, 1), laplace(1, 2)], opts) end}
    ]
  end

  # A distribution under each combination in which one parameter has another of its names.
  defp named({name, params, _own}) do
    {^name, _family, _values, names} = List.keyfind(Distributions.table(), name, 0)

    others =
      for {_ours, [first | aliases]} <- names, other <- aliases do
        Map.new(params, fn {key, value} -> {if(key == first, do: other, else: key), value} end)
      end

    texts = Map.new(params, fn {key, value} -> {to_string(key), value} end)
    [Map.new(params), texts | others]
  end

  defp shape(:GaussianRandomWalk), do: [shape: {4}]
  defp shape(_name), do: []

  test "the table is covered" do
    tested = for {name, _params, _own} <- cases(), do: name

    assert Enum.sort(tested ++ [:Bernoulli, :Poisson]) ==
             Enum.sort(for row <- Distributions.table(), do: elem(row, 0))
  end

  test "free variables", %{folder: folder} do
    tested =
      for {name, _params, own} = row <- cases(), params <- named(row) do
        {{name, params}, Nutkin.Exmc.model(ir([rv("x", name, params, shape(name))])), free(own)}
      end

    assert_same(tested, folder)
  end

  defp free(own), do: Nutkin.Model.build(fn -> Nutkin.Model.Language.__free__("x", own.([])) end)

  test "observed values", %{folder: folder} do
    tested =
      for {name, params, own} <- cases() do
        value = observed(name)
        nodes = [rv("x", name, Map.new(params), shape(name)), obs("x_obs", "x", nx(value))]
        distribution = %{own.([]) | opts: []}
        ours = Nutkin.Model.build(fn -> Nutkin.Model.Language.observe("x_obs", distribution, value) end)
        {name, Nutkin.Exmc.model(ir(nodes)), ours}
      end

    assert_same(tested, folder)
  end

  defp observed(name) when name in [:Beta, :Uniform01], do: [0.2, 0.7]
  defp observed(:MvNormal), do: [0.5, -0.5]
  defp observed(:Dirichlet), do: [0.2, 0.3, 0.5]
  defp observed(_name), do: @vector

  test "observed counts", %{folder: folder} do
    count = fn name, params, value ->
      Nutkin.Exmc.model(ir([rv("x", name, params), obs("x_obs", "x", nx(value))]))
    end

    zeros_and_ones = [0.0, 1.0, 1.0]
    counts = [0.0, 3.0, 1.0]

    assert_same(
      [
        {:p, count.(:Bernoulli, %{p: 0.3}, zeros_and_ones),
         model(do: observe("x_obs", bernoulli(0.3), zeros_and_ones))},
        {:probs, count.(:Bernoulli, %{"probs" => 0.3}, zeros_and_ones),
         model(do: observe("x_obs", bernoulli(0.3), zeros_and_ones))},
        {:logits, count.(:Bernoulli, %{logits: 0.3}, zeros_and_ones),
         model(do: observe("x_obs", bernoulli_logit(0.3), zeros_and_ones))},
        {:mu, count.(:Poisson, %{mu: 2.0}, counts), model(do: observe("x_obs", poisson(2.0), counts))},
        {:rate, count.(:Poisson, %{rate: 2.0}, counts), model(do: observe("x_obs", poisson(2.0), counts))}
      ],
      folder
    )
  end

  test "transforms: another way to the values of a distribution, or another constraint", %{folder: folder} do
    free = fn name, params, transform ->
      Nutkin.Exmc.model(ir([rv("x", name, params, transform: transform, shape: {2})]))
    end

    scale = %{sigma: 2.0}
    normal = %{mu: 0.3, sigma: 2.0}

    assert_same(
      [
        {:log, free.(:HalfNormal, scale, :log), model(do: x <~ half_normal(2, shape: {2}, transform: :log))},
        {:softplus, free.(:HalfNormal, scale, :softplus),
         model(do: x <~ half_normal(2, shape: {2}, transform: :softplus))},
        {:logit, free.(:Beta, %{alpha: 2.0, beta: 3.0}, :logit), model(do: x <~ beta(2, 3, shape: {2}))},
        {:restricted, free.(:Normal, normal, :log),
         restricted(fn -> Nutkin.Model.Language.half_flat(shape: {2}) end)},
        {:to_unit, free.(:Normal, normal, :logit),
         restricted(fn -> Nutkin.Model.Language.uniform(0, 1, shape: {2}) end)}
      ],
      folder
    )

    simplex =
      Nutkin.Exmc.model(
        ir([rv("w", :Dirichlet, %{alpha: [1.0, 2.0]}, transform: :stick_breaking, shape: {2})])
      )

    assert_same([{:simplex, simplex, model(do: w <~ dirichlet([1.0, 2.0]))}], folder)

    assert_raise InvalidModel, ~r/x has a transform.*found :square/, fn -> free.(:Normal, normal, :square) end
  end

  defp restricted(flat) do
    Nutkin.Model.build(fn ->
      x = Nutkin.Model.Language.__free__("x", flat.())

      Nutkin.Model.Language.factor(
        "p",
        Nutkin.Model.Language.log_prob(Nutkin.Model.Language.normal(0.3, 2), x)
      )
    end)
  end

  test "a variable with parameters of another shape has a term for each of them, as in eXMC", %{
    folder: folder
  } do
    several =
      for {name, params} <- [
            Normal: %{mu: nx([0.0, 1.0, 2.0]), sigma: 2.0},
            HalfNormal: %{sigma: nx([1.0, 2.0])}
          ] do
        Nutkin.Exmc.model(ir([rv("x", name, params)]))
      end

    normal =
      model do
        x <~ flat()
        factor("p", log_prob(normal([0, 1, 2], 2), x))
      end

    half_normal =
      model do
        x <~ half_flat()
        factor("p", log_prob(half_normal([1, 2]), x))
      end

    assert_same(Enum.zip([[:Normal, :HalfNormal], several, [normal, half_normal]]), folder)

    assert_raise InvalidModel, ~r/the parameters of x do not broadcast to its shape/, fn ->
      Nutkin.Exmc.model(ir([rv("x", :Uniform, %{lower: nx([0.0, 1.0]), upper: 2.0})]))
    end
  end

  test "the weights of a mixture need not sum to 1, and components may refer to variables", %{folder: folder} do
    params = fn weights, mu ->
      %{
        components: [Exmc.Dist.Normal, Exmc.Dist.Normal],
        params: [%{mu: mu, sigma: 1.0}, %{mu: 1.0, sigma: 2.0}],
        weights: weights
      }
    end

    unscaled = ir([rv("x", :Mixture, params.(nx([1.0, 3.0]), 0.0))])

    references =
      ir([
        rv("x", :Mixture, params.("z", "m")),
        rv("z", :Dirichlet, %{alpha: [1.0, 1.0]}),
        rv("m", :Normal, %{mu: 0.0, sigma: 1.0})
      ])

    own =
      model do
        m <~ normal(0, 1)
        z <~ dirichlet([1.0, 1.0])
        x <~ mixture(z, [normal(m, 1), normal(1, 2)])
      end

    assert_same(
      [
        {:unscaled, Nutkin.Exmc.model(unscaled),
         model(do: x <~ mixture([0.25, 0.75], [normal(0, 1), normal(1, 2)]))},
        {:references, Nutkin.Exmc.model(references), own}
      ],
      folder
    )
  end

  test "wrong distributions and parameters are named" do
    for {node, error} <- [
          {rv("x", :Norml, %{}), ~r/x has a distribution that is not known.*Norml.*did you mean :Normal/},
          {%{rv("x", :Normal, %{}) | op: {:rv, :normal, %{}}},
           ~r/x has a distribution that is not known.*:normal/},
          {%{rv("x", :Normal, %{}) | op: {:rv, "Normal", %{}}}, ~r/"Normal"/},
          {rv("x", :Normal, %{mu: 0.0, sd: 1.0}),
           ~r/x has no parameter sigma; expected Normal with mu, sigma; found mu, sd; scale would do/},
          {rv("x", :Poisson, %{mu: 1.0}),
           ~r/x is a free variable of Exmc.Dist.Poisson, whose values are counts/},
          {rv("x", :GaussianRandomWalk, %{sigma: 1.0}), ~r/x is a random walk without a shape/},
          {rv("x", :Normal, %{mu: :zero, sigma: 1.0}), ~r/mu of x is not a value/},
          {rv("x", :Mixture, %{components: [Exmc.Dist.Normal], params: [], weights: [1.0]}),
           ~r/the components of x and their params do not fit/},
          {rv("x", :Mixture, %{components: [Some.Module], params: [%{}], weights: [1.0]}),
           ~r/Some.Module in the mixture x/}
        ] do
      error = assert_raise InvalidModel, error, fn -> Nutkin.Exmc.model(ir([node])) end
      assert error.node == "x"
    end
  end

  # The log densities at the origin of two models.
  defp assert_same(tested, folder) do
    {labels, theirs, ours} = unzip3(tested)
    answers = Engine.run_all(theirs ++ for(model <- ours, do: {model, %{}}), folder)
    {theirs, ours} = Enum.split(answers, length(labels))

    for {label, {:ok, theirs}, {:ok, ours}} <- Enum.zip([labels, theirs, ours]) do
      assert is_float(ours["log_density"]), "no log density of #{inspect(label)}"
      assert_in_delta theirs["log_density"], ours["log_density"], 1.0e-10, inspect(label)
    end

    assert for({:error, error} <- answers, do: Exception.message(error)) == []
  end

  defp unzip3(triples),
    do: {Enum.map(triples, &elem(&1, 0)), Enum.map(triples, &elem(&1, 1)), Enum.map(triples, &elem(&1, 2))}
end
