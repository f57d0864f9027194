defmodule Nutkin.Model.ImputationTest do
  use ExUnit.Case, async: true

  import Nutkin.Model
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Test.Engine

  setup :temporary_folder

  @tag :python
  test "what is nil is a variable of as many numbers, under the distribution that is observed", %{folder: dir} do
    built =
      model do
        mu <~ normal(0, 1)
        observe(:y, normal(mu + tensor([[0, 1], [2, 3]]), 2), [[1, nil], [nil, 4]])
        observe(:t, exponential(2), [nil, 0.5])
      end

    assert %{"values" => values, "log_density" => found} = Engine.run(built, dir)
    assert %{"mu" => 0.0, "y_missing" => [0.0, 0.0], "t_missing" => [1.0]} = values

    normal = fn x, mu, sigma ->
      -0.5 * ((x - mu) / sigma) ** 2 - :math.log(sigma) - 0.5 * :math.log(2 * :math.pi())
    end

    rows = for {x, mu} <- [{1, 0}, {0, 1}, {0, 2}, {4, 3}], do: normal.(x, mu, 2)
    expected = normal.(0, 0, 1) + Enum.sum(rows) + 2 * :math.log(2) - 2 * 1.5
    assert_in_delta found, expected, 1.0e-12
  end

  test "counts are not imputed" do
    error = assert_raise InvalidModel, fn -> model(do: observe(:y, poisson(2), [1, nil])) end
    assert error.message =~ "the values of y that are nil cannot be imputed"
    assert error.hint =~ "mask"
  end
end
