defmodule Nutkin.Exmc.CustomTest do
  # Log densities that are functions over Nx: as graphs, which need no Nx, and as functions, which do.
  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Test.ExmcExpressions, only: [parameter: 1, log: 1, multiply: 2]
  import Nutkin.Test.ExmcTerms

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Tensor
  alias Nutkin.Test.TracedGraphs

  @moduletag :port
  @moduletag :capture_log
  @compile {:no_warn_undefined, Nx}

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  defp log_density(ir, values, worker) do
    {model, data} = Nutkin.Exmc.model(ir)
    {:ok, %{value: value}} = Nutkin.log_density(model, values, data: data, worker: worker)
    value
  end

  defp log_normal(x), do: -0.5 * x * x - 0.5 * :math.log(2 * :math.pi())

  # Their first argument is that of the distribution, in the order of their keys, and the others are its parameters.
  for name <- ~w(hier student_t) do
    test "the graph of #{name}, of which one variable is free", %{worker: worker} do
      %{"points" => points} = TracedGraphs.recorded!(unquote(name))

      for %{"input" => %{"items" => items}, "output" => output} <- points do
        [{x, value} | others] = for [id, tensor] <- Enum.sort(items), do: {id, TracedGraphs.tensor(tensor)}
        parameters = for {id, _value} <- others, into: %{}, do: {String.to_atom(id), id}

        priors =
          for {id, %{shape: shape}} <- others, do: rv(id, :Normal, %{mu: 0.0, sigma: 1.0}, shape: shape)

        graph = TracedGraphs.graph!(unquote(name))
        ir = ir([custom(x, graph, parameters, shape: value.shape) | priors])
        [expected] = TracedGraphs.results(output)

        prior =
          for {_id, tensor} <- others, number <- Tensor.to_flat_list(tensor), reduce: 0.0 do
            sum -> sum + log_normal(number)
          end

        expected = prior + hd(Tensor.to_flat_list(expected))

        assert_in_delta log_density(ir, Map.new([{x, value} | others]), worker),
                        expected,
                        1.0e-9 * abs(expected)
      end
    end
  end

  test "the values of a distribution are those of its support", %{worker: worker} do
    exponential = custom("x", multiply(parameter(0), -2), %{}, support: :positive)
    assert_in_delta log_density(ir([exponential]), %{"x" => 3.0}, worker), -6 + :math.log(3), 1.0e-12

    beta = custom("x", log(parameter(0)), %{}, support: :unit_interval)
    jacobian = :math.log(0.3 * 0.7)
    assert_in_delta log_density(ir([beta]), %{"x" => 0.3}, worker), :math.log(0.3) + jacobian, 1.0e-12

    softplus = custom("x", multiply(parameter(0), -2), %{}, support: :positive, transform: :softplus)
    slope = :math.log(1 - :math.exp(-3.0))
    assert_in_delta log_density(ir([softplus]), %{"x" => 3.0}, worker), -6 + slope, 1.0e-12
  end

  test "terms of an observation have weights and a reduction", %{worker: worker} do
    terms = multiply(Nutkin.Test.ExmcExpressions.parameter(0, {2}), parameter(1))
    variables = [rv("m", :Normal, %{mu: 0.0, sigma: 1.0}), custom("x", terms, %{m: "m"})]

    for {opts, expected} <- [
          {[], 2 * (1.0 + 3.0)},
          {[weight: 3.0], 6 * (1.0 + 3.0)},
          {[mask: nx([0, 1], {:u, 8}), reduce: :mean], 3.0},
          {[likelihood: false], 0.0}
        ] do
      ir = ir(variables ++ [obs("y", "x", nx([1.0, 3.0]), opts)])
      assert_in_delta log_density(ir, %{"m" => 2.0}, worker), expected + log_normal(2.0), 1.0e-12
    end
  end

  test "what is no distribution is named" do
    for {node, error} <- [
          {rv("x", :Custom, %{mu: 0.0}), ~r/the Custom distribution of x is missing/},
          {custom("x", :none, %{}), ~r/the log density of x is no function of a value/},
          {custom("x", fn x -> x end, %{}), ~r/the log density of x is no function of a value/},
          {rv("x", :Normal, %{}) |> Map.put(:op, {:rv, Some.Dist, %{}}), ~r/x has a distribution.*Some.Dist/},
          {custom("x", multiply(parameter(0), 1), %{a: :b}), ~r/a parameter of x is not a value/},
          {custom("x", multiply(parameter(0), 1), %{}, transform: :stick_breaking), ~r/x has a transform/}
        ] do
      error = assert_raise InvalidModel, error, fn -> Nutkin.Exmc.model(ir([node])) end
      assert error.node == "x"
    end

    censored = [custom("x", parameter(0), %{}), obs("y", "x", 1.0, censored: :right)]

    assert_raise InvalidModel, ~r/y is censored, and its distribution is a function/, fn ->
      Nutkin.Exmc.model(ir(censored))
    end
  end

  @tag :without_nx
  test "a function needs Nx", %{worker: worker} do
    assert_raise InvalidModel, ~r/needs Nx, which is not loaded/, fn ->
      Nutkin.Exmc.sample(ir([custom("x", fn x, _params -> x end, %{})]), %{}, worker: worker)
    end
  end

  defmodule Logistic do
    # The behaviour of Exmc.Dist.
    @compile {:no_warn_undefined, Nx}

    def logpdf(x, %{scale: scale}) do
      z = Nx.divide(x, scale)
      Nx.subtract(Nx.negate(z), Nx.add(Nx.log(scale), Nx.multiply(2, Nx.log1p(Nx.exp(Nx.negate(z))))))
    end

    def support(_params), do: :real
    def transform(_params), do: nil
  end

  @tag :nx
  test "functions see references and tensors as Nx has them, and all else as it is", %{worker: worker} do
    logpdf = fn x, params ->
      [first, _second] = params.names
      2 = params.count
      true = params["flag"]
      columns = for i <- 0..(params.count - 1), do: params.data[[.., i]]
      mean = Enum.reduce(columns, Nx.tensor(0.0), &Nx.add(Nx.multiply(&1, params[first]), &2))
      z = Nx.subtract(x, mean)
      Nx.sum(Nx.multiply(Nx.multiply(z, z), params.nested.half))
    end

    params = %{
      :names => [:m, :n],
      :count => 2,
      "flag" => true,
      :m => "m",
      :data => "__obs_data",
      :nested => %{half: Nx.tensor(-0.5)}
    }

    ir =
      ir(
        [
          rv("m", :Normal, %{mu: Nx.tensor(0.0), sigma: Nx.tensor(1.0)}),
          custom("x", logpdf, params),
          obs("y", "x", Nx.tensor([1.0, 2.0]))
        ],
        data: Nx.tensor([[1.0, 2.0], [3.0, 4.0]])
      )

    expected = -0.5 * ((1 - 3 * 0.5) ** 2 + (2 - 7 * 0.5) ** 2) + log_normal(0.5)
    assert_in_delta log_density(ir, %{"m" => 0.5}, worker), expected, 1.0e-12
  end

  @tag :nx
  test "a module with the behaviour of a distribution, free and observed", %{worker: worker} do
    node = fn id, params -> %{rv(id, :Normal, params) | op: {:rv, Logistic, params}} end

    ir =
      ir([
        rv("s", :HalfNormal, %{sigma: 1.0}),
        node.("x", %{scale: "s"}),
        node.("o", %{scale: Nx.tensor(2.0)}),
        obs("y", "o", Nx.tensor([1.0, 2.0]))
      ])

    own =
      Nutkin.Model.build(fn ->
        alias Nutkin.Model.Language
        s = Language.__free__("s", Language.half_normal(1))
        Language.__free__("x", Language.logistic(0, s))
        Language.observe("y", Language.logistic(0, 2), [1.0, 2.0])
      end)

    {:ok, %{value: expected}} = Nutkin.log_density(own, %{"s" => 0.7, "x" => 0.3}, worker: worker)
    assert_in_delta log_density(ir, %{"s" => 0.7, "x" => 0.3}, worker), expected, 1.0e-12
  end

  @tag :nx
  test "a trace is of Nx", %{worker: worker} do
    logpdf = fn x, _params -> Nx.multiply(-0.5, Nx.multiply(x, x)) end
    ir = ir([custom("x", logpdf, %{}, shape: {2})])
    {trace, stats} = Nutkin.Exmc.sample(ir, %{"x" => Nx.tensor([0.5, 0.1])}, worker: worker, num_samples: 300)
    assert Nx.shape(trace["x"]) == {300, 2}
    assert Nx.type(trace["x"]) == {:f, 64}
    assert_in_delta trace["x"] |> Nx.variance() |> Nx.to_number(), 1.0, 0.3
    assert Nx.shape(stats.inv_mass_diag) == {2}
  end
end
