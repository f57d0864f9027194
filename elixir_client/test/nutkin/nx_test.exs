defmodule Nutkin.NxTest do
  # With the real Nx, and the real port: functions are traced, sampled from, and computed.
  use Nutkin.Test.WorkerCase, async: true

  import Nutkin.Model

  alias Nutkin.Error.InvalidModel
  alias Nutkin.{Fit, Tensor}

  @compile {:no_warn_undefined, [Nx, Nx.Defn, Nx.LinAlg]}
  @moduletag :nx
  @moduletag :port

  setup_all do
    %{worker: start_worker!(port_options())}
  end

  @data %{x: [0.5, -1.0, 2.0, 0.25], y: [1.2, -0.7, 3.9, 1.1]}

  defp regression do
    model do
      x = data(:x)
      y = data(:y)
      a <~ normal(0, 2)
      b <~ normal(0, 2)
      observe(:obs, normal(a + b * x, 0.5), y)
    end
  end

  defp log_density(y, mu, sigma) do
    z = Nx.divide(Nx.subtract(y, mu), sigma)
    Nx.subtract(Nx.multiply(-0.5, Nx.multiply(z, z)), :math.log(sigma * :math.sqrt(2 * :math.pi())))
  end

  defp line(p, x), do: Nx.add(p.a, Nx.multiply(p.b, x))

  # The same density, written in another way.
  defp assert_same_density(model, worker) do
    for point <- [[0.0, 0.0], [1.3, -0.4]] do
      {:ok, expected} = Nutkin.log_density(regression(), point, data: @data, worker: worker)
      {:ok, found} = Nutkin.log_density(model, point, data: @data, worker: worker)
      assert_close([found.value], [expected.value])
      assert_close(Tensor.to_flat_list(found.gradient), Tensor.to_flat_list(expected.gradient))
    end
  end

  defp assert_close(found, expected) do
    for {a, b} <- Enum.zip(found, expected), do: assert_in_delta(a, b, 1.0e-12 * max(1.0, abs(b)))
  end

  describe "in a model" do
    test "a factor of the variables and the data", %{worker: worker} do
      model do
        data(:x)
        data(:y)
        a <~ normal(0, 2)
        b <~ normal(0, 2)
        factor(:likelihood, fn p, d -> log_density(d.y, line(p, d.x), 0.5) end)
      end
      |> assert_same_density(worker)
    end

    test "a factor of the variables, with captured data", %{worker: worker} do
      x = Nx.tensor(@data.x, type: :f64)
      y = Nx.tensor(@data.y, type: :f64)

      model do
        data(:x)
        data(:y)
        a <~ normal(0, 2)
        b <~ normal(0, 2)
        factor(:likelihood, fn p -> log_density(y, line(p, x), 0.5) end)
      end
      |> assert_same_density(worker)
    end

    test "values, which other nodes use", %{worker: worker} do
      model do
        x = data(:x)
        y = data(:y)
        a <~ normal(0, 2)
        b <~ normal(0, 2)
        {mu, sigma} = nx(fn p, x -> {line(p, x), 0.5} end, [%{a: a, b: b}, x], results: 2)
        observe(:obs, normal(mu, sigma), y)
      end
      |> assert_same_density(worker)
    end

    test "a function of what another one gives", %{worker: worker} do
      model do
        x = data(:x)
        y = data(:y)
        a <~ normal(0, 2)
        b <~ normal(0, 2)
        scaled = nx(&Nx.multiply/2, [b, x])
        mu = nx(&Nx.add/2, [a, scaled])
        observe(:obs, normal(mu, 0.5), y)
      end
      |> assert_same_density(worker)
    end

    test "custom distributions, free and observed", %{worker: worker} do
      normal = fn x, p ->
        z = Nx.divide(Nx.subtract(x, p.mu), p.sigma)
        Nx.subtract(Nx.multiply(-0.5, Nx.multiply(z, z)), Nx.log(p.sigma))
      end

      model do
        x = data(:x)
        y = data(:y)
        a <~ custom(fn x, _none -> log_density(x, 0.0, 2.0) end, {})
        b <~ normal(0, 2)

        observe(:obs, custom(fn y, mu -> log_density(y, mu, 0.5) end, a + b * x), y,
          weight: 2,
          mask: [1, 1, 1, 1]
        )

        observe(:again, custom(normal, %{mu: nx(&Nx.add/2, [a, 0.0]), sigma: 0.5}), 0.0, weight: 0)

        factor(
          :once,
          nx(fn p, x, y -> Nx.negate(Nx.sum(log_density(y, line(p, x), 0.5))) end, [%{a: a, b: b}, x, y])
        )
      end
      |> assert_same_density(worker)
    end

    test "the transform of a custom distribution is that of its support", %{worker: worker} do
      exponential = fn x, p -> Nx.subtract(Nx.log(p.rate), Nx.multiply(p.rate, x)) end

      custom =
        model do
          x <~ custom(exponential, %{rate: 3.0}, support: :positive, shape: {2})
          p <~ custom(fn p, _ -> Nx.multiply(0.0, p) end, {}, support: :unit_interval, name: "q")
          deterministic(:sum, x + p)
        end

      same =
        model do
          x <~ exponential(3.0, shape: {2})
          p <~ uniform(0, 1, name: "q")
          deterministic(:sum, x + p)
        end

      assert Nutkin.Model.parameters(custom) == ["x", "q"]

      [found, expected] =
        for model <- [custom, same] do
          {:ok, density} = Nutkin.log_density(model, [0.3, -1.2, 0.4], worker: worker)
          density
        end

      # The literal 3 is in the precision of the model, also behind the logarithm.
      assert_close([found.value], [expected.value])
    end

    test "is sampled from, and predicts for new data", %{worker: worker} do
      model =
        model do
          x = data(:x)
          data(:y)
          a <~ normal(0, 2)
          b <~ normal(0, 2)
          mu = nx(&line/2, [%{a: a, b: b}, x])
          deterministic(:mu, mu)
          factor(:likelihood, fn p, d -> log_density(d.y, line(p, d.x), 0.5) end)
        end

      {:ok, fit} = Nutkin.sample(model, data: @data, worker: worker, seed: 3)
      {:ok, expected} = Nutkin.sample(regression(), data: @data, worker: worker, seed: 3)

      for name <- [:a, :b] do
        [a, b] = for fit <- [fit, expected], do: mean(Tensor.to_flat_list(Fit.tensor(fit, name)))
        # Six Monte Carlo standard errors.
        assert_in_delta a, b, 0.035
      end

      {:ok, predicted} = Nutkin.predict(model, fit, data: %{x: [10.0]}, worker: worker)
      assert Fit.tensor(predicted, :mu).shape == {4, 1000, 1}
    end

    defp mean(list), do: Enum.sum(list) / length(list)

    test "names of variables that no atom is for are strings", %{worker: worker} do
      name = "variable_#{System.unique_integer([:positive])}_of_a_model"

      model =
        model do
          x <~ normal(0, 1, name: name)
          factor(:f, fn p -> Nx.multiply(2, Map.fetch!(p, name)) end)
          deterministic(:y, x)
        end

      {:ok, %{value: value}} = Nutkin.log_density(model, [0.5], worker: worker)
      assert_close([value], [1.0 - 0.125 - 0.5 * :math.log(2 * :math.pi())])
      assert_raise ArgumentError, fn -> String.to_existing_atom(name) end
    end
  end

  test "a function of what a function gives that has captured a tensor", %{worker: worker} do
    weights = Nx.tensor([1.0, 2.0, 4.0], type: :f64)

    model =
      model do
        x <~ normal(0, 1)
        weighted = nx(&Nx.multiply(&1, weights), [x])
        factor(:f, nx(&Nx.sum/1, [weighted]))
      end

    {:ok, %{value: value, gradient: gradient}} = Nutkin.log_density(model, [0.5], worker: worker)
    assert_close([value], [3.5 - 0.125 - 0.5 * :math.log(2 * :math.pi())])
    assert_close(Tensor.to_list(gradient), [7.0 - 0.5])
  end

  describe "what cannot be traced" do
    defp refused(fun, worker) do
      model =
        model do
          x <~ normal(0, 1)
          factor(:f, fun)
          deterministic(:y, x)
        end

      assert {:error, %InvalidModel{} = error} = Nutkin.log_density(model, [0.5], worker: worker)
      error
    end

    test "a captured tensor that is elsewhere: which one, where, and what mends it", %{worker: worker} do
      elsewhere = Nx.template({3}, :f32)
      error = refused(fn p -> Nx.sum(Nx.multiply(p.x, elsewhere)) end, worker)
      assert error.node == "f"
      assert error.found == "f32 {3} on Nx.TemplateBackend"
      assert error.hint =~ "Nx.backend_copy(t, Nx.BinaryBackend)"
    end

    test "the wrong number of results", %{worker: worker} do
      error = refused(fn p -> {p.x, p.x} end, worker)
      assert {error.node, error.expected, error.found} == {"f", "1", "2"}
    end

    test "what is no tensor", %{worker: worker} do
      error = refused(fn p -> [p.x] end, worker)
      assert error.message == "the function of f takes or gives what is no tensor"
      assert error.node == "f"
    end

    test "values of the model where Nx wants tensors, and of Nx where the model wants its own", %{
      worker: worker
    } do
      around = fn ->
        model do
          x <~ normal(0, 1)
          factor(:f, Nx.multiply(x, 2))
        end
      end

      error = assert_raise InvalidModel, around
      assert error.message == "x is a value that exists only when the model runs, not a tensor of Nx"
      assert error.hint =~ "use nx(fn x -> … end, [x])"

      captured =
        model do
          x <~ normal(0, 1)
          factor(:f, fn _p -> Nx.multiply(x, 2) end)
        end

      assert {:error, ^error} = Nutkin.log_density(captured, %{x: 0.5}, worker: worker)

      operators =
        model do
          x <~ normal(0, 1)
          factor(:f, fn p -> p.x * 2 end)
          deterministic(:same, x)
        end

      {:error, error} = Nutkin.log_density(operators, %{x: 0.5}, worker: worker)
      assert error.message == "argument 1 of * is what Nx traces, and not a value of the model"
      assert error.hint =~ "Nx.multiply/2"
    end

    test "what the function raises itself passes through", %{worker: worker} do
      assert_raise KeyError, fn -> refused(fn p -> p.missing end, worker) end
    end
  end

  describe "by itself" do
    test "arguments that do not fit are told apart", %{worker: worker} do
      function = Nutkin.Nx.trace(&Nx.add/2, [1.0, Nx.template({3}, :f64)])
      {:error, error} = Nutkin.Nx.call(function, [1.0], worker: worker)
      assert {error.expected, error.found} == {"2", "1"}
      {:error, error} = Nutkin.Nx.call(function, [1.0, Nx.tensor([1.0, 2.0], type: :f64)], worker: worker)
      assert {error.node, error.expected, error.found} == {"tensor 2", "{3}", "{2}"}
    end

    test "a function gives its container, with the types of Nx", %{worker: worker} do
      function =
        Nutkin.Nx.trace(
          fn p, x -> %{sum: Nx.sum(Nx.multiply(p.a, x)), pair: {Nx.add(x, 1), Nx.less(x, 2)}} end,
          [%{a: Nx.template({}, :f64)}, Nx.template({3}, :u8, names: [:n])]
        )

      {:ok, result} = Nutkin.Nx.call(function, [%{a: 0.5}, Nx.tensor([1, 2, 255], type: :u8)], worker: worker)
      assert result.sum == Nx.tensor(129.0, type: :f64)

      assert result.pair ==
               {Nx.tensor([2, 3, 0], type: :u8, names: [:n]), Nx.tensor([1, 0, 0], type: :u8, names: [:n])}
    end

    test "a chain that doubles when its sharing is lost is as long as it is", %{worker: worker} do
      chain = fn x -> Enum.reduce(1..300, x, fn _, x -> Nx.multiply(0.5, Nx.add(x, x)) end) end
      function = Nutkin.Nx.trace(chain, [Nx.template({2}, :f64)])
      assert length(function.model.nodes) < 2_000
      x = Nx.tensor([1.5, -2.0], type: :f64)
      # Another process, which gets a copy of it.
      assert {:ok, ^x} = Task.await(Task.async(fn -> Nutkin.Nx.call(function, [x], worker: worker) end))
    end

    test "a captured tensor of 80 MB is one blob, and an argument", %{worker: worker} do
      large = Nx.broadcast(Nx.tensor(1.0, type: :f64), {10_000_000})

      function =
        Nutkin.Nx.trace(fn x -> Nx.add(Nx.sum(Nx.multiply(x, large)), Nx.reduce_max(large)) end, [1.0])

      assert [%{size: size}] = Map.values(function.model.blobs)
      assert size in 80_000_000..80_000_100

      [first, second] =
        for x <- [1.0, 2.0] do
          {:ok, sum} = Nutkin.Nx.call(function, [x], worker: worker)
          assert Nx.to_number(sum) == 10_000_000 * x + 1
          {:ok, pong} = Nutkin.ping(worker)
          pong
        end

      assert second.blobs == first.blobs or second.blobs.bytes - first.blobs.bytes < 1000
      assert second.compilations == first.compilations
      assert second.resident - first.resident < 8_000_000
    end
  end
end
