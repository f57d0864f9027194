defmodule Nutkin.Model.EngineTest do
  @moduledoc false
  # What the language writes is what the engine reads, and means the same.

  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Model.{Builder, Distribution, Language, Operation}
  alias Nutkin.Tensor
  import Nutkin.Test.Engine, only: [run: 2, run: 3]

  @moduletag :python

  import Nutkin.Test.TemporaryFolder
  setup :temporary_folder

  test "every operation is known there, with its arguments and its options", %{folder: dir} do
    domains = %{quotient: [[1, 2]], acosh: [[1.25, 1.5]]}
    operands = %{min: 0.0, max: 1.0, indices: [0]}
    settings = %{type: :f32, starts: [0, 1], lengths: [1, 1], shape: {1, 2}}
    options = %{axis: 0, keep_axes: true, reverse: true, strides: [1, 1]}
    axes = %{broadcast: [0, 1], squeeze: [0], transpose: [1, 0]}

    all =
      Nutkin.Model.build(fn ->
        for {name, values, settings_of, options_of, _doc} <- Operation.table() do
          x = Map.get(domains, name, [[0.25, 0.5]])
          args = for value <- values, do: Language.tensor(Map.get(operands, value, x))
          opts = for {setting, _} <- settings_of, do: {setting, settings[setting]}

          opts =
            opts ++ for({option, _} <- options_of, do: {option, Map.get(options, option, axes[name] || [0])})

          wire = Nutkin.Model.Option.to_wire!(opts, settings_of ++ options_of, "#{name}")
          Language.deterministic(name, Builder.call("#{name}", args, wire))
        end

        Language.deterministic(:dot, Language.dot([1, 2], [3, 4]))
        Language.deterministic(:dot_batched, Language.dot([[1, 2]], [1], [0], [[3, 4]], [1], [0]))
        Language.deterministic(:concatenate, Language.concatenate([[1], [2, 3]], axis: 0))
        Language.deterministic(:stack, Language.stack([[1, 2], [3, 4]], axis: -1))
      end)

    assert %{"values" => values} = run(all, dir)
    assert map_size(values) == length(Operation.table()) + 4
    assert values["dot"] == 11
    assert values["dot_batched"] == [11]
    assert values["concatenate"] == [1, 2, 3]
    assert values["stack"] == [[1, 3], [2, 4]]
    assert values["slice"] == [[0.5]]
    assert values["as_type"] == [[0.25, 0.5]]
    assert values["greater"] == [[0, 0]]
  end

  test "every distribution is known there, with its parameters", %{folder: dir} do
    all =
      Nutkin.Model.build(fn ->
        for {name, parameters, _, _} <- Distribution.table() do
          args = for parameter <- parameters, do: {parameter, argument(name, parameter)}
          Language.observe(name, apply(Language, name, [args]), value(name))
        end
      end)

    assert %{"log_density" => log_density} = run(all, dir)
    assert is_float(log_density)
  end

  # The other parameters, and those of the table that mean the same.
  @same [
    normal: {[mu: 0.5, tau: 4.0], [mu: 0.5, sigma: 0.5]},
    half_normal: {[tau: 4.0], [sigma: 0.5]},
    lognormal: {[mu: 0.5, tau: 4.0], [mu: 0.5, sigma: 0.5]},
    student_t: {[nu: 3, mu: 0.5, tau: 4.0], [nu: 3, mu: 0.5, sigma: 0.5]},
    exponential: {[scale: 2], [rate: 0.5]},
    gamma: {[alpha: 2, scale: 0.5], [alpha: 2, beta: 2]},
    gamma: {[mu: 1.5, sigma: 0.75], [alpha: 4, beta: 8 / 3]},
    inverse_gamma: {[mu: 1.5, sigma: 0.75], [alpha: 6, beta: 7.5]},
    beta: {[mu: 0.25, kappa: 4], [alpha: 1, beta: 3]},
    beta: {[mu: 0.25, sigma: 0.25], [alpha: 0.5, beta: 1.5]},
    bernoulli: {[logits: 1.0], [p: 0.7310585786300049]},
    binomial: {[n: 3, logits: 1.0], [n: 3, p: 0.7310585786300049]},
    poisson: {[eta: 0.0], [mu: 1]},
    neg_binomial: {[eta: 0.0, alpha: 2], [mu: 1, alpha: 2]},
    neg_binomial: {[alpha: 3, beta: 2], [mu: 1.5, alpha: 3]},
    neg_binomial: {[n: 3, p: 0.4], [mu: 4.5, alpha: 3]},
    categorical: {[logits: [0.0, 1.0]], [p: [0.2689414213699951, 0.7310585786300049]]},
    multinomial: {[n: 3, logits: [0.0, 0.0]], [n: 3, p: [0.5, 0.5]]},
    mv_normal:
      {[mu: [0.0, 1.0], chol: [[2.0, 0.0], [0.0, 2.0]]], [mu: [0.0, 1.0], cov: [[4.0, 0.0], [0.0, 4.0]]]},
    mv_normal:
      {[mu: [0.0, 1.0], tau: [[0.25, 0.0], [0.0, 0.25]]], [mu: [0.0, 1.0], cov: [[4.0, 0.0], [0.0, 4.0]]]},
    mv_student_t:
      {[nu: 3, mu: [0.0, 1.0], chol: [[2.0, 0.0], [0.0, 2.0]]],
       [nu: 3, mu: [0.0, 1.0], cov: [[4.0, 0.0], [0.0, 4.0]]]}
  ]

  test "other parameters mean what the table says", %{folder: dir} do
    listed =
      for {name, _, _, _} <- Distribution.table(),
          {names, _} <- Distribution.alternatives(name),
          do: {name, names}

    assert Enum.sort(listed) == Enum.sort(for {name, {others, _}} <- @same, do: {name, Keyword.keys(others)})

    [others, table] =
      for side <- [0, 1] do
        model =
          Nutkin.Model.build(fn ->
            for {{name, forms}, i} <- Enum.with_index(@same, 1) do
              # Weights of their own, so that no two errors cancel.
              distribution = apply(Language, name, [elem(forms, side)])
              Language.observe("#{name}_#{i}", distribution, value(name), weight: :math.sqrt(i))
            end
          end)

        run(model, dir)["log_density"]
      end

    assert_in_delta others, table, 1.0e-10
  end

  @identity [[1.0, 0.0], [0.0, 1.0]]
  @vectors ~w(mv_normal mv_normal_cholesky mv_normal_precision mv_normal_low_rank mv_student_t)a ++
             ~w(mv_student_t_cholesky car icar gaussian_random_walk ar zero_sum_normal)a

  defp argument(:matrix_normal, :mu), do: @identity
  defp argument(name, :nu) when name in [:wishart, :inv_wishart], do: 3
  defp argument(name, :mu) when name in @vectors, do: [0.0, 0.0]
  defp argument(name, :tau) when name in [:mv_normal_precision], do: @identity
  defp argument(_name, matrix) when matrix in ~w(cov chol scale row_chol col_chol factor)a, do: @identity
  defp argument(_name, :adjacency), do: [[0, 1], [1, 0]]
  defp argument(_name, vector) when vector in [:diag, :rho], do: [0.5, 0.5]
  defp argument(name, :alpha) when name in [:dirichlet, :dirichlet_multinomial], do: [1.0, 1.0]
  defp argument(:car, :alpha), do: 0.5
  defp argument(name, :p) when name in [:categorical, :multinomial], do: [0.5, 0.5]
  defp argument(name, :logits) when name in [:categorical_logit, :multinomial_logit], do: [0.0, 0.5]
  defp argument(_name, :cutpoints), do: [-1.0, 1.0]
  defp argument(_name, probability) when probability in [:p, :tau], do: 0.5
  defp argument(:beta_proportion, :mu), do: 0.5
  defp argument(name, :mu) when name in [:pareto_type_2, :levy], do: 0.25
  defp argument(:triangular, :c), do: 0.5
  defp argument(:log_uniform, :lower), do: 0.25
  defp argument(_name, :lower), do: 0
  defp argument(_name, :y_min), do: 0.25
  defp argument(_name, :population), do: 9
  defp argument(:hypergeometric, :k), do: 4
  defp argument(_name, :n), do: 3
  defp argument(_name, _parameter), do: 1

  defp value(:matrix_normal), do: @identity
  defp value(name) when name in [:lkj_corr, :lkj_cholesky, :wishart, :inv_wishart], do: @identity
  defp value(name) when name in @vectors, do: [0.5, -0.5]
  defp value(:dirichlet), do: [0.5, 0.5]
  defp value(:uniform_on_sphere), do: [0.6, 0.8]
  defp value(name) when name in [:multinomial, :multinomial_logit, :dirichlet_multinomial], do: [1, 2]
  defp value(name), do: if(counts?(name), do: 1, else: 0.5)

  defp counts?(name) do
    name in (~w(bernoulli bernoulli_logit binomial binomial_logit beta_binomial poisson poisson_log neg_binomial)a ++
               ~w(neg_binomial_log beta_neg_binomial geometric discrete_uniform hypergeometric categorical)a ++
               ~w(categorical_logit ordered_logistic ordered_probit)a)
  end

  test "operators, indices, data and options mean what they say", %{folder: dir} do
    built =
      model do
        x = data(:x, shape: {nil, 4}, type: :s64)
        group = tensor([1, 0, 1])
        mu <~ normal(0, 1)
        tau <~ half_normal(2)
        theta <~ normal(mu, tau, shape: {2}, centered: false)
        deterministic(:entry, x[[1, 2]])
        deterministic(:part, x[[0..1, 1..2]])
        deterministic(:first, theta[0])
        deterministic(:row, x[-1])
        deterministic(:rows, x[..])
        deterministic(:column, x[[.., 1]])
        deterministic(:lagged, x[[.., 1..-1]] - x[[.., 0..-2]])
        deterministic(:every_other, x[[0, 0..-1//2]])
        deterministic(:grouped, theta[group])
        deterministic(:polynomial, (2 - mu) ** 2 / 8 + -1)
        deterministic(:above, x > 5)
        deterministic(:signs, select(x >= [1, 2, 3, 4], max(x, 3), [-1, -2, -3, -4]))
        observe(:y, normal(theta[group], 1), [0.5, 7.5, 1.5], mask: [1, 0, 1], weight: 2, reduce: :mean)
        factor(:f, -sum(theta ** 2))
      end

    x = Tensor.new([[0, 1, 2, 3], [4, 5, 6, 7]])
    assert %{"values" => values, "log_density" => log_density} = run(built, dir, %{x: x})
    assert values["tau"] == 1.0
    assert values["theta"] == [0.0, 0.0]
    assert values["entry"] == 6
    assert values["part"] == [[1, 2], [5, 6]]
    assert values["first"] == 0.0
    assert values["row"] == [4, 5, 6, 7]
    assert values["rows"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert values["column"] == [1, 5]
    assert values["lagged"] == [[1, 1, 1], [1, 1, 1]]
    assert values["every_other"] == [0, 2]
    assert values["grouped"] == [0.0, 0.0, 0.0]
    assert values["polynomial"] == -0.5
    assert values["signs"] == [[-1, -2, -3, -4], [4, 5, 6, 7]]

    normal = fn x, sd -> -0.5 * (x / sd) ** 2 - :math.log(sd) - 0.5 * :math.log(2 * :math.pi()) end

    # mu, tau with its transform's Jacobian (log 1 = 0), the standardised theta, the mean of three observed terms.
    expected =
      normal.(0, 1) + normal.(1, 2) + :math.log(2) + 2 * normal.(0, 1) +
        2 * (normal.(0.5, 1) + normal.(1.5, 1)) / 3

    assert_in_delta log_density, expected, 1.0e-12
  end

  test "an index that is outside its axis is an error", %{folder: dir} do
    built =
      model do
        x = data(:x)
        deterministic(:beyond, x[2])
      end

    assert %{"error" => %{"message" => message, "index" => 1}} =
             run(built, dir, %{x: Tensor.new([[1, 2], [3, 4]])})

    assert message == "slice(x): index 2 is outside axis 0 of size 2"
  end

  test "groups that start at 1, or at -1, are an error", %{folder: dir} do
    grouped =
      model do
        group = data(:group)
        mu <~ normal(0, 1, shape: {3})
        observe(:y, normal(mu[group], 1), [1.0, 2.0, 3.0])
      end

    for {group, found} <- [{[1, 2, 3], "3 at [2]"}, {[-1, 0, 1], "-1 at [0]"}] do
      assert %{"error" => error} = run(grouped, dir, %{group: Tensor.new(group)})
      assert error["message"] == "the operand group of take(mu, group): 1 value is impossible"
      assert %{"code" => "invalid_data", "expected" => "indices from 0 to 2", "found" => ^found} = error
      assert error["hint"] == "indices start at 0"
    end
  end

  test "what is wrong is shown as the model prints it", %{folder: dir} do
    sums =
      model do
        x = data(:x)
        mu <~ normal(0, 1, shape: {3})
        deterministic(:fits, mu + 1 + mu)
        deterministic(:no_fit, mu + 2 * x)
      end

    assert %{"error" => %{"message" => message}} = run(sums, dir, %{x: Tensor.new([1, 2])})
    assert [shown, "the shapes do not broadcast"] = String.split(message, ": ")
    assert inspect(sums) =~ "deterministic(:no_fit, #{shown})"
  end
end
