defmodule Nutkin.Model.EngineTest do
  @moduledoc false
  # What the language writes is what the engine reads, and means the same.

  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Model.{Builder, Distribution, Language, Operation}
  alias Nutkin.{Msgpack, Tensor}
  alias Nutkin.Test.JSON

  @moduletag :python

  @root Path.expand("../../../..", __DIR__)
  @peer Path.expand("../../support/model_peer.py", __DIR__)

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
    shaped = %{
      dirichlet: [alpha: [1.0, 1.0]],
      mv_normal: [mu: [0.0, 0.0], cov: [[1.0, 0.0], [0.0, 1.0]]],
      mv_normal_cholesky: [mu: [0.0, 0.0], chol: [[1.0, 0.0], [0.0, 1.0]]]
    }

    values = %{
      dirichlet: [0.5, 0.5],
      mv_normal: [0.0, 0.0],
      mv_normal_cholesky: [0.0, 0.0],
      gaussian_random_walk: [0.0, 0.0]
    }

    all =
      Nutkin.Model.build(fn ->
        for {name, parameters, _, _} <- Distribution.table() do
          args = shaped[name] || Enum.map(parameters, &{&1, parameter(&1)})
          distribution = apply(Language, name, [args])
          Language.observe(name, distribution, Map.get(values, name, if(counts?(name), do: 1, else: 0.5)))
        end
      end)

    assert %{"log_density" => log_density} = run(all, dir)
    assert is_float(log_density)
  end

  defp parameter(:p), do: 0.5
  defp parameter(:n), do: 3
  defp parameter(:lower), do: 0.0
  defp parameter(_name), do: 1.0

  defp counts?(name),
    do: name in ~w(bernoulli bernoulli_logit binomial binomial_logit poisson poisson_log neg_binomial)a

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

  defp run(model, dir, data \\ %{}) do
    blobs = for {sha, _blob} <- model.blobs, do: [{:bin, sha}, tensor(model, sha)]
    body = %{"model" => Nutkin.Model.to_ir(model), "data" => data, "blobs" => blobs}
    path = Path.join(dir, "message")
    File.write!(path, Msgpack.encode!(["model", 0, body]))

    env = [
      {"PYTHONPATH",
       Enum.join(
         [Path.join(@root, "python"), Path.join(@root, "bridge"), System.get_env("PYTHONPATH", "")],
         ":"
       )},
      {"JAX_PLATFORMS", "cpu"},
      {"JAX_ENABLE_X64", "1"}
    ]

    assert {output, 0} = System.cmd(System.fetch_env!("NUTKIN_PYTHON"), [@peer, path], env: env)
    JSON.decode!(output)
  end

  # A blob holds the payload of a tensor: what msgpack has as an extension.
  defp tensor(model, sha) do
    {:ok, tensor} = model.blobs[sha].iodata |> IO.iodata_to_binary() |> Tensor.Payload.decode()
    tensor
  end
end
