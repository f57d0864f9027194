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

  @complex [:fft, :ifft, :complex, :conjugate]

  test "every operation is known there, with its arguments and its options", %{folder: dir} do
    all =
      Nutkin.Model.build(fn ->
        for {name, values, settings_of, options_of, _doc} <- Operation.table() do
          args =
            for {value, place} <- Enum.with_index(values), do: Language.tensor(operand(name, value, place))

          opts = for {setting, _} <- settings_of ++ options_of, do: {setting, option(name, setting)}
          wire = Nutkin.Model.Option.to_wire!(opts, settings_of ++ options_of, "#{name}")

          case Operation.results("#{name}") do
            [] ->
              node = Builder.call("#{name}", args, wire)
              Language.deterministic(name, if(name in @complex, do: Language.real(node), else: node))

            results ->
              nodes = Builder.call("#{name}", args, wire, length(results))

              for {result, node} <- Enum.zip(results, nodes),
                  do: Language.deterministic("#{name}_#{result}", node)
          end
        end

        Language.deterministic(:dot, Language.dot([1, 2], [3, 4]))
        Language.deterministic(:dot_batched, Language.dot([[1, 2]], [1], [0], [[3, 4]], [1], [0]))
        Language.deterministic(:concatenate, Language.concatenate([[1], [2, 3]], axis: 0))
        Language.deterministic(:stack, Language.stack([[1, 2], [3, 4]], axis: -1))
      end)

    assert %{"values" => values} = run(all, dir)
    results = for {name, _, _, _, _} <- Operation.table(), do: max(1, length(Operation.results("#{name}")))
    assert map_size(values) == Enum.sum(results) + 4
    assert values["dot"] == 11
    assert values["dot_batched"] == [11]
    assert values["concatenate"] == [1, 2, 3]
    assert values["stack"] == [[1, 3], [2, 4]]
    assert values["slice"] == [[0.5]]
    assert values["as_type"] == [[0.25, 0.5]]
    assert values["greater"] == [[0, 0]]
  end

  @of_integers ~w(quotient bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift)a ++
                 ~w(population_count count_leading_zeros)a
  @of_squares ~w(trace cholesky solve triangular_solve determinant slogdet invert matrix_power lu eigh)a

  defp operand(name, _value, _place) when name in @of_integers, do: [[1, 2]]
  defp operand(_name, :min, _place), do: 0.0
  defp operand(_name, :max, _place), do: 1.0
  defp operand(name, :indices, _place) when name in [:gather, :take_along_axis], do: [[0, 0]]
  defp operand(_name, :indices, _place), do: [[0]]
  defp operand(:indexed_add, :updates, _place), do: [[1.0, 2.0]]
  defp operand(:indexed_put, :updates, _place), do: [[1.0, 2.0]]
  defp operand(:pad, :value, _place), do: 1.0
  defp operand(:put_diagonal, :diagonal, _place), do: [1.0]
  defp operand(:conv, _value, _place), do: [[[0.25, 0.5]]]
  defp operand(name, _value, 0) when name in @of_squares, do: [[2.0, 0.5], [0.5, 1.0]]
  defp operand(name, _value, 1) when name in [:solve, :triangular_solve], do: [1.0, 2.0]
  defp operand(:acosh, _value, _place), do: [[1.25, 1.5]]
  defp operand(:log1m_exp, _value, _place), do: [[-1.25, -1.5]]
  defp operand(_name, _value, _place), do: [[0.25, 0.5]]

  defp option(:as_type, :type), do: :f32
  defp option(:bitcast, :type), do: :u64
  defp option(:slice, :lengths), do: [1, 1]
  defp option(:slice, :strides), do: [1, 1]
  defp option(:broadcast, :axes), do: [0, 1]
  defp option(:transpose, :axes), do: [1, 0]
  defp option(:norm, :axes), do: [0, 1]
  defp option(:gather, :axes), do: [0, 1]
  defp option(:diff, :axis), do: 1
  defp option(name, :padding) when name == :conv, do: [{0, 1}]
  defp option(:pad, :padding_config), do: [{0, 1, 0}, {1, -1, 2}]

  @options %{
    type: :s32,
    starts: [0, 1],
    shape: {1, 2},
    axes: [0],
    axis: 0,
    length: 3,
    keep_axes: true,
    keep_axis: true,
    reverse: true,
    strides: 1,
    window: {1, 2},
    window_dilations: 1,
    padding: :same,
    input_dilation: 2,
    kernel_dilation: [1],
    feature_group_size: 1,
    batch_group_size: 1,
    input_permutation: [0, 1, 2],
    kernel_permutation: [0, 1, 2],
    output_permutation: [1, 0, 2],
    ddof: 0,
    q: 0.5,
    rtol: 0.1,
    atol: 0,
    equal_nan: true,
    tie_break: :high,
    direction: :desc,
    k: 1,
    repetitions: [2, 1],
    order: 1,
    offset: 0,
    lower: true,
    left_side: true,
    transform_a: :none,
    power: -1,
    ord: :nuclear
  }
  defp option(_name, option), do: Map.fetch!(@options, option)

  test "linear algebra, indexing and special functions mean what they say, and print as they are written",
       %{folder: dir} do
    built =
      model do
        x = data(:x)
        i = data(:i, shape: {}, type: :s64)
        covariance = dot(x, transpose(x)) + eye(2)
        l = cholesky(covariance)
        deterministic(:l, l)
        {q, r} = qr(x)
        deterministic(:same, all_close(dot(q, r), x))
        {values, vectors} = eigh(covariance)
        deterministic(:eigen, values)
        deterministic(:rotated, dot(transpose(vectors), dot(covariance, vectors)))
        {_sign, logdet} = slogdet(covariance)
        deterministic(:halves, logdet - 2 * sum(log(take_diagonal(l))))
        deterministic(:solved, triangular_solve(l, [2.0, 1.0], lower: true))
        deterministic(:window, slice(x, [i, 0], [1, 2]))
        deterministic(:put, put_slice(x, [0, i], [[9.0]]))
        deterministic(:gathered, gather(x, [[0, 1], [1, 0]]))
        deterministic(:added, indexed_add(x, [[1], [1]], [[1.0, 2.0], [3.0, 4.0]]))
        {top, places} = top_k(x, k: 1)
        deterministic(:top, top)
        deterministic(:places, places)
        deterministic(:sums, window_sum(x, {1, 2}, padding: [{0, 0}, {1, 0}]))
        deterministic(:padded, pad(tensor([1, 2]), 0, [{1, 0, 1}]))
        deterministic(:counted, iota({2, 2}, axis: 1))
        deterministic(:bits, bitwise_xor(left_shift(i, 3), 1))
        deterministic(:gamma, exp(lgamma([1, 5])))
        deterministic(:tail, betainc(2, 3, 0.5) + ndtr(0.0))
        deterministic(:middle, median(x) + quantile(x, 0.5))
        deterministic(:spread, standard_deviation(x, axes: 1, ddof: 1))
      end

    x = [[1.0, 2.0], [3.0, 5.0]]
    assert %{"values" => values} = run(built, dir, %{x: Tensor.new(x), i: Tensor.new(1)})
    close = fn found, expected -> assert_in_delta found, expected, 1.0e-12 end

    [[a, zero], [b, c]] = values["l"]
    close.(a, :math.sqrt(6))
    close.(zero, 0.0)
    close.(b, 13 / :math.sqrt(6))
    close.(c, :math.sqrt(35 - 169 / 6))
    assert values["same"] == 1
    assert [low, high] = values["eigen"]
    assert low < high
    close.(low + high, 41.0)
    [[first, off], [_, second]] = values["rotated"]
    close.(first, low)
    close.(off, 0.0)
    close.(second, high)
    close.(values["halves"], 0.0)
    close.(hd(values["solved"]), 2 / a)
    assert values["window"] == [[3.0, 5.0]]
    assert values["put"] == [[1.0, 9.0], [3.0, 5.0]]
    assert values["gathered"] == [2.0, 3.0]
    assert values["added"] == [[1.0, 2.0], [7.0, 11.0]]
    assert values["top"] == [[2.0], [5.0]]
    assert values["places"] == [[1], [1]]
    assert values["sums"] == [[1.0, 3.0], [3.0, 8.0]]
    assert values["padded"] == [0, 1, 0, 2]
    assert values["counted"] == [[0, 1], [0, 1]]
    assert values["bits"] == 9
    close.(List.last(values["gamma"]), 24.0)
    close.(values["tail"], 0.6875 + 0.5)
    close.(values["middle"], 5.0)
    close.(hd(values["spread"]), :math.sqrt(0.5))

    text = inspect(built)
    assert text =~ ~r/\{v\d+, v\d+\} = qr\(x\)/
    assert text =~ "deterministic(:window, slice(x, [i, 0], [1, 2]))"
    assert text =~ "put_slice(x, [0, i], tensor("
    assert text =~ "window_sum(x, {1, 2}, padding: [{0, 0}, {1, 0}])"
    assert text =~ ", 0, [{1, 0, 1}])"
    assert text =~ "iota({2, 2}, axis: 1)"
    assert text =~ "quantile(x, 0.5)"
  end

  test "an index of data that is outside its axis, and a matrix that is no covariance, are errors", %{
    folder: dir
  } do
    outside =
      model do
        x = data(:x)
        deterministic(:part, slice(x, [data(:i), 0], [1, 2]))
      end

    data = %{x: Tensor.new([[1.0, 2.0], [2.0, 1.0]]), i: Tensor.new(2)}

    assert %{"error" => %{"message" => message, "expected" => "indices from 0 to 1"}} =
             run(outside, dir, data)

    assert message =~ "the operand i of dynamic_slice(x, i, 0): 1 value is impossible"

    indefinite =
      model do
        deterministic(:l, cholesky(data(:x)))
      end

    assert %{"error" => error} = run(indefinite, dir, Map.take(data, [:x]))
    assert error["message"] == "the operand x of cholesky(x): 1 value is impossible"
    assert error["expected"] == "a symmetric positive definite matrix"
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
       [nu: 3, mu: [0.0, 1.0], cov: [[4.0, 0.0], [0.0, 4.0]]]},
    icar: {[edges: [[0, 1]], sigma: 2.0], [adjacency: [[0, 1], [1, 0]], sigma: 2.0]}
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
             ~w(mv_student_t_cholesky car icar icar_edges gaussian_random_walk ar zero_sum_normal)a

  defp argument(:matrix_normal, :mu), do: @identity
  defp argument(name, :nu) when name in [:wishart, :inv_wishart], do: 3
  defp argument(name, :mu) when name in @vectors, do: [0.0, 0.0]
  defp argument(name, :tau) when name in [:mv_normal_precision], do: @identity
  defp argument(_name, matrix) when matrix in ~w(cov chol scale row_chol col_chol factor)a, do: @identity
  defp argument(_name, :adjacency), do: [[0, 1], [1, 0]]
  defp argument(_name, :edges), do: [[0, 1]]
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
