defmodule Nutkin.Exmc.ObservationsTest do
  # Observations of eXMC with all that their metadata say, and what they mean in Nutkin's own language.
  use ExUnit.Case, async: true

  import Nutkin.Model
  import Nutkin.Test.ExmcTerms
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Test.Engine

  @moduletag :python

  setup :temporary_folder

  @y [0.5, 1.5, 2.0]

  defp observed(opts, params \\ %{mu: "m", sigma: 2.0}, value \\ nx(@y)) do
    Nutkin.Exmc.model(
      ir([rv("m", :Normal, %{mu: 0.0, sigma: 1.0}), rv("x", :Normal, params), obs("y", "x", value, opts)])
    )
  end

  test "weight, mask and reduction, in this order", %{folder: folder} do
    mean_of_terms =
      model do
        m <~ normal(0, 1)
        factor("y", mean(select([1, 1, 0], 3 * log_prob(normal(m, 2), @y), 0)))
      end

    logsumexp =
      model do
        m <~ normal(0, 1)
        factor("y", logsumexp(log_prob(normal(m, 2), @y)))
      end

    prior = model(do: m <~ normal(0, 1))
    mask = nx([1, 1, 0], {:u, 8})

    assert_same(
      [
        {observed([]), own([])},
        {observed(weight: 2.0), own(weight: 2.0)},
        {observed(weight: nx([1.0, 2.0, 0.5])), own(weight: [1.0, 2.0, 0.5])},
        {observed(mask: mask, weight: 3.0), own(mask: [1, 1, 0], weight: 3.0)},
        {observed(reduce: :mean), own(reduce: :mean)},
        {observed(reduce: :mean, mask: mask, weight: 3.0), mean_of_terms},
        {observed(reduce: :logsumexp), logsumexp},
        {observed(likelihood: false), prior},
        {observed([unknown: 1, likelihood: true, weight: 1.0], %{mu: "m", sigma: 2.0}, @y), own([])}
      ],
      folder
    )
  end

  defp own(opts) do
    Nutkin.Model.build(fn ->
      m = Nutkin.Model.Language.__free__("m", Nutkin.Model.Language.normal(0, 1))
      Nutkin.Model.Language.observe("y", Nutkin.Model.Language.normal(m, 2), @y, opts)
    end)
  end

  test "a value of another shape than the parameters has a term for each of these", %{folder: folder} do
    own =
      model do
        m <~ normal(0, 1)
        factor("y", log_prob(normal([0, 1], 1), 0.5))
        deterministic("same", m)
      end

    theirs =
      ir([
        rv("m", :Normal, %{mu: 0.0, sigma: 1.0}),
        rv("x", :Normal, %{mu: nx([0.0, 1.0]), sigma: 1.0}),
        obs("y", "x", 0.5, reduce: :sum)
      ])

    assert_same([{Nutkin.Exmc.model(theirs), own}], folder)
  end

  test "censored values", %{folder: folder} do
    bounds = %{lower: nx([0.0, 1.0, 1.5]), upper: nx([1.0, 2.0, 2.5])}

    own =
      for of <- [&Nutkin.Model.Language.log_sf/2, &Nutkin.Model.Language.log_cdf/2] do
        model do
          m <~ normal(0, 1)
          factor("y", of.(normal(m, 2), @y))
        end
      end

    interval =
      model do
        m <~ normal(0, 1)
        factor("y", log_prob(interval_censored(normal(m, 2)), [[0, 1], [1, 2], [1.5, 2.5]]))
      end

    weibull =
      model do
        lambda <~ half_normal(1)
        factor("y", -((@y / lambda) ** 1.5) * [1, 0, 1])
      end

    theirs =
      ir([
        rv("lambda", :HalfNormal, %{sigma: 1.0}),
        rv("x", :Weibull, %{k: 1.5, lambda: "lambda"}),
        obs("y", "x", nx(@y), censored: :right, mask: nx([1, 0, 1], {:u, 8}))
      ])

    params = %{mu: "m", sigma: 2.0}

    assert_same(
      Enum.zip([observed(censored: :right), observed(censored: :left)], own) ++
        [
          {observed([censored: :interval, reduce: :sum], params, bounds), interval},
          {Nutkin.Exmc.model(theirs), weibull}
        ],
      folder
    )
  end

  test "values that are linear in what is observed", %{folder: folder} do
    matrix = [[2.0, 0.5], [0.0, 4.0]]

    affine =
      model do
        m <~ normal(0, 1)
        factor("p", log_prob(normal(m, 1), (tensor(@y) - 1) / -2) - log(2))
      end

    product =
      model do
        m <~ normal(0, 1)
        factor("p", sum(log_prob(normal(m, 1), solve(matrix, [1.0, 2.0]))) - log(8))
      end

    variables = [
      rv("m", :Normal, %{mu: 0.0, sigma: 1.0}),
      rv("x", :Normal, %{mu: "m", sigma: 1.0}, shape: {2})
    ]

    f32 = {:f, 32}

    assert_same(
      [
        {variables ++ [det("d", :affine, [nx(-2.0, f32), 1.0, "x"]), obs("y", "d", nx(@y))], affine},
        {variables ++ [node("y", {:meas_obs, "x", nx(@y), {:affine, -2.0, 1.0}})], affine},
        {variables ++ [det("d", :matmul, [nx(matrix), "x"]), obs("y", "d", nx([1.0, 2.0]))], product},
        {variables ++ [node("y", {:meas_obs, "x", nx([1.0, 2.0]), {:matmul, nx(matrix)}, %{weight: 1.0}})],
         product}
      ]
      |> Enum.map(fn {nodes, own} -> {Nutkin.Exmc.model(ir(nodes)), own} end),
      folder
    )
  end

  test "constants of type f32 are exactly what they are", %{folder: folder} do
    <<tenth::float-32>> = <<0.1::float-32>>

    nodes = [
      rv("m", :Normal, %{mu: nx(0.0, {:f, 32}), sigma: nx(0.1, {:f, 32})}),
      det("d", :affine, [nx(0.1, {:f, 32}), nx(0.1, {:f, 32}), "x"]),
      rv("x", :Normal, %{mu: "m", sigma: 1.0}),
      obs("y", "d", nx([0.3], {:f, 32}))
    ]

    <<observed::float-32>> = <<0.3::float-32>>

    own =
      model do
        m <~ normal(0, tenth)
        factor("p", log_prob(normal(m, 1), (tensor(observed) - tenth) / tenth) - log(tenth))
      end

    assert_same([{Nutkin.Exmc.model(ir(nodes)), own}], folder)
  end

  test "variables in any order, one of them observed twice, the data of the model", %{folder: folder} do
    nodes = [
      rv("a", :Normal, %{"mu" => "b", "sigma" => "z"}),
      rv("b", :Normal, %{mu: "c", sigma: "z"}),
      rv("c", :Normal, %{mu: 0.0, sigma: 1.0}),
      rv("z", :Exponential, %{lambda: 1.0}),
      rv("x", :Normal, %{mu: "__obs_data", sigma: "z"}),
      obs("first", "x", nx([1.0, 2.0])),
      node("second", {:obs, "x", nx([3.0, 4.0])})
    ]

    own =
      model do
        c <~ normal(0, 1)
        z <~ exponential(1)
        b <~ normal(c, z)
        a <~ normal(b, z)
        observe("first", normal([0.5, 0.7], z), [1.0, 2.0])
        observe("second", normal([0.5, 0.7], z), [3.0, 4.0])
        deterministic("same", a)
      end

    {model, data} = Nutkin.Exmc.model(ir(nodes, data: nx([0.5, 0.7])), ncp: false)
    assert_same([{{model, data}, own}], folder)
    assert Nutkin.Model.parameters(model) == ~w(c z b a)
    assert data |> Map.keys() |> Enum.sort() == ~w(__obs_data first_value second_value)
  end

  test "a model that eXMC has rewritten means the same", %{folder: folder} do
    rewritten =
      ir(
        [
          rv("m", :Normal, %{mu: 0.0, sigma: 1.0}),
          rv("s", :HalfNormal, %{sigma: 1.0}, transform: :log),
          rv("x", :Normal, %{mu: 0.0, sigma: 1.0}, shape: {2})
        ],
        ncp_info: %{"x" => %{mu: "m", sigma: "s"}}
      )

    own =
      model do
        m <~ normal(0, 1)
        s <~ half_normal(1)
        x <~ normal(m, s, shape: {2}, centered: false)
      end

    assert_same([{Nutkin.Exmc.model(rewritten), own}], folder)
  end

  test "how hierarchical variables are sampled" do
    nodes = [
      rv("m", :Normal, %{mu: 0.0, sigma: 1.0}),
      rv("s", :HalfNormal, %{sigma: 1.0}),
      rv("both", :Normal, %{mu: "m", sigma: "s"}),
      rv("scale", :Normal, %{mu: 0.0, sigma: "s"}),
      rv("t", :StudentT, %{df: 3.0, loc: "m", scale: "s"})
    ]

    centered = fn ncp ->
      {model, _data} = Nutkin.Exmc.model(ir(nodes), ncp: ncp)
      for %{"kind" => "rv", "name" => name, "centered" => how} <- model.nodes, do: {name, how}
    end

    assert centered.(true) == [{"both", false}]
    assert centered.(false) == []
    assert centered.(:auto) == [{"both", "auto"}, {"scale", "auto"}]
  end

  test "wrong nodes are named" do
    x = rv("x", :Normal, %{mu: 0.0, sigma: 1.0})
    free = rv("m", :Normal, %{mu: "x", sigma: 1.0})
    affine = det("d", :affine, [2.0, 1.0, "x"])

    for {nodes, name, error} <- [
          {[x, obs("y", "z", 1.0)], "y", ~r/y observes "z", which is no random variable.*one of x/},
          {[x, det("d", :add, ["x", 1.0]), obs("y", "d", 1.0)], "y",
           ~r/y observes d, which has no density.*:add/},
          {[rv("m", :Normal, %{mu: "d", sigma: 1.0}), x, affine], "m",
           ~r/m refers to "d".*can only be observed/},
          {[free, x, obs("y", "x", 1.0)], "m", ~r/m refers to x, which is observed/},
          {[rv("m", :Normal, %{mu: "n", sigma: 1.0}), rv("n", :Normal, %{mu: "m", sigma: 1.0})], "m",
           ~r/random variables refer to each other: m, n, m/},
          {[rv("m", :Normal, %{mu: "__obs_data", sigma: 1.0})], "m",
           ~r/m refers to __obs_data, and the model has no data/},
          {[x, obs("y", "x", nx(@y), reduce: :max)], "y",
           ~r/y has an unknown value of :reduce.*:logsumexp; found :max/},
          {[x, obs("y", "x", nx(@y), censored: :interval)], "y",
           ~r/y has a value that does not go with its censoring/},
          {[x, obs("y", "x", %{lower: 1.0, upper: 2.0})], "y",
           ~r/y has a value that does not go with its censoring/},
          {[x, obs("y", "x", :one)], "y", ~r/the observed value of y is not a value/},
          {[x, det("d", :matmul, [nx(@y), "x"]), obs("y", "d", nx(@y))], "y",
           ~r/shapes of the matrix.*do not fit/},
          {[node("q", {:rw, 1})], "q", ~r/the node "q" is none of eXMC.*found \{:rw, 1\}/}
        ] do
      error = assert_raise InvalidModel, error, fn -> Nutkin.Exmc.model(ir(nodes)) end
      assert error.node == name
    end

    assert_raise InvalidModel, ~r/not a model of eXMC; expected an %Exmc.IR/, fn -> Nutkin.Exmc.model(%{}) end
  end

  # The log densities at the origin of two models.
  defp assert_same(pairs, folder) do
    answers = Engine.run_all(Enum.flat_map(pairs, fn {theirs, ours} -> [theirs, {ours, %{}}] end), folder)
    assert for({:error, error} <- answers, do: Exception.message(error)) == []

    for {[{:ok, theirs}, {:ok, ours}], place} <- answers |> Enum.chunk_every(2) |> Enum.with_index() do
      assert is_float(ours["log_density"]), "no log density of pair #{place}"
      assert_in_delta theirs["log_density"], ours["log_density"], 1.0e-10, "pair #{place}"
    end
  end
end
