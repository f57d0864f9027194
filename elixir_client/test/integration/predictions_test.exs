defmodule Nutkin.PredictionsTest do
  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Model

  alias Nutkin.Error.{InvalidData, InvalidOption, Timeout}
  alias Nutkin.{Draws, Fit, Tensor}

  @moduletag :port
  @moduletag :capture_log

  setup_all do
    worker = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: worker)})
    fit = Nutkin.sample!(line(), data: data(), seed: 1, draws: 500, worker: worker)
    %{worker: worker, fit: fit}
  end

  defp line do
    model do
      x = data(:x)
      a <~ normal(0, 5)
      b <~ normal(0, 5)
      s <~ half_normal(2)
      mu = a + b * x
      deterministic(:mu, mu)
      observe(:obs, normal(mu, s), data(:y))
    end
  end

  defp data, do: %{x: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], y: [1.1, 2.3, 2.9, 4.2, 4.8, 6.1]}

  defp mean(list), do: Enum.sum(list) / length(list)

  test "what a fit predicts for new data of another length", %{worker: worker, fit: fit} do
    predicted = Nutkin.predict!(line(), fit, data: %{x: [10.0, 20.0, 30.0]}, worker: worker)
    assert %Fit{status: :complete, chains: []} = predicted
    assert Fit.names(predicted) == ["mu", "obs"]
    assert Fit.tensor(predicted, :obs).shape == {4, 500, 3}

    [first | _] = rows = Fit.summary(predicted, variables: [:obs]).rows
    assert_in_delta first.mean, 10, 0.5
    [mu | _] = Fit.summary(predicted, variables: [:mu]).rows
    assert first.sd > mu.sd
    assert length(rows) == 3

    refute inspect(predicted) =~ "divergence"
    refute inspect(predicted) =~ "warmup"
    assert inspect(predicted) =~ "#Nutkin.Fit<4 chains x 500 draws, complete, "
  end

  test "draws that are impossible are told with their chain and their number", %{worker: worker} do
    posterior = %{a: [[0.0, 0.0]], b: [[1.0, 1.0]], s: [[0.5, -0.5]]}
    assert {:error, error} = Nutkin.predict(line(), posterior, data: %{x: [1.0]}, worker: worker)

    assert %InvalidData{node: "s", expected: "a number of at least 0", found: "-0.5 at [0, 1]"} = error
    assert Exception.message(error) =~ "the first places are the chain and the draw"
  end

  test "the log likelihood of each value", %{worker: worker, fit: fit} do
    pointwise = Nutkin.log_likelihood!(line(), fit, data: data(), worker: worker)
    assert Fit.names(pointwise) == ["obs"]
    [a, b, s] = for name <- [:a, :b, :s], do: fit |> Fit.tensor(name) |> Tensor.to_list() |> List.flatten()
    found = pointwise |> Fit.tensor(:obs) |> Tensor.to_list() |> Enum.concat() |> Enum.map(&List.last/1)

    for {a, b, s, found} <- Enum.zip([a, b, s, found]) do
      z = (6.1 - a - b * 6.0) / s
      assert_in_delta found, -z * z / 2 - :math.log(s) - :math.log(2 * :math.pi()) / 2, 1.0e-9
    end
  end

  test "a prior, and that of its data", %{worker: worker} do
    options = [data: %{x: [0.0]}, chains: 1, draws: 2000, variables: [:a, :obs], worker: worker]
    prior = Nutkin.predict!(line(), :prior, options)
    assert Fit.names(prior) == ["a", "obs"]
    assert Fit.tensor(prior, :obs).shape == {1, 2000, 1}
    a = prior |> Fit.tensor(:a) |> Tensor.to_list() |> List.flatten()
    assert_in_delta mean(a), 0, 0.5
    assert_in_delta mean(Enum.map(a, &(&1 * &1))), 25, 3
  end

  test "groups that were not observed are drawn anew", %{worker: worker} do
    groups = fn count ->
      model do
        theta <~ normal(3, 0.1, shape: {count})
        observe(:obs, poisson(exp(theta[data(:group)])), data(:n))
      end
    end

    fit = Nutkin.sample!(groups.(2), data: %{group: [0, 1], n: [20, 21]}, draws: 200, worker: worker)
    new = [data: %{group: [2, 2]}, redraw: [:theta], worker: worker]
    predicted = Nutkin.predict!(groups.(3), fit, new)
    assert Fit.names(predicted) == ["theta", "obs"]
    assert %Tensor{shape: {4, 200, 2}, type: {:s, 64}} = Fit.tensor(predicted, :obs)

    assert {:error, %InvalidData{node: "theta", expected: "{3}", found: "{2}"}} =
             Nutkin.predict(groups.(3), fit, Keyword.delete(new, :redraw))
  end

  test "draws as tensors give what the fit gives, and the seed decides", %{worker: worker, fit: fit} do
    opts = [data: %{x: [1.0]}, variables: [:obs], worker: worker]
    draws = for name <- [:a, :b, :s], into: %{}, do: {name, Fit.tensor(fit, name)}
    of_fit = line() |> Nutkin.predict!(fit, opts) |> Fit.tensor(:obs)
    assert line() |> Nutkin.predict!(draws, opts) |> Fit.tensor(:obs) == of_fit
    assert line() |> Nutkin.predict!(fit, [seed: 3] ++ opts) |> Fit.tensor(:obs) != of_fit
  end

  test "a stream has the same values in chunks, and ends early", %{worker: worker, fit: fit} do
    opts = [data: %{x: [1.0, 2.0]}, worker: worker]
    whole = line() |> Nutkin.predict!(fit, opts) |> Fit.tensor(:obs, chains: [2])
    chunks = line() |> Nutkin.stream_predictions(fit, opts) |> Enum.to_list()
    assert [%Draws{start: 0, stats: stats} | _] = of_chain = for(chunk <- chunks, chunk.chain == 2, do: chunk)
    assert stats == %{}

    assert of_chain |> Enum.map(&Draws.tensor!(&1, :variables, :obs).data) |> IO.iodata_to_binary() ==
             whole.data

    endless = [data: %{x: [1.0]}, draws: 1_000_000_000, worker: worker]
    assert [%Draws{}] = line() |> Nutkin.stream_predictions(:prior, endless) |> Enum.take(1)
    eventually(fn -> match?({:ok, %{requests: 0}}, Nutkin.ping(worker)) end)
  end

  test "a timeout keeps what there is", %{worker: worker} do
    endless = [data: %{x: [1.0]}, draws: 1_000_000_000, worker: worker]
    Nutkin.predict!(line(), :prior, Keyword.put(endless, :draws, 1))

    case Nutkin.predict(line(), :prior, [timeout: 500] ++ endless) do
      {:ok, fit} -> assert %Fit{status: :timeout} = fit
      {:error, error} -> assert %Timeout{} = error
    end
  end

  test "what is wrong", %{worker: worker, fit: fit} do
    assert {:error, %InvalidData{node: "mu", expected: "values for x"}} =
             Nutkin.predict(line(), fit, worker: worker)

    assert {:error, %InvalidOption{path: "draws"}} = Nutkin.predict(line(), fit, draws: 3, worker: worker)

    assert {:error, %InvalidOption{path: "redraw"}} =
             Nutkin.predict(line(), :prior, redraw: [:a], worker: worker)

    some = %{a: [[1.0]], b: [[1.0]]}

    assert {:error, %InvalidData{message: "the parameter s is needed for obs"}} =
             Nutkin.predict(line(), some, data: %{x: [1.0]}, worker: worker)

    assert {:error, %InvalidData{node: "c"}} =
             Nutkin.predict(line(), %{c: [[1.0]]}, data: %{x: [1.0]}, worker: worker)

    assert {:error, %InvalidData{found: "nil"}} =
             Nutkin.predict(line(), nil, data: %{x: [1.0]}, worker: worker)

    assert_raise InvalidOption, fn -> Nutkin.stream_predictions(line(), fit, draw: 3) end
  end
end
