defmodule Nutkin.Exmc.SamplingTest do
  # The interface of eXMC's sampler.
  use Nutkin.Test.WorkerCase, async: false

  import ExUnit.CaptureLog
  import Nutkin.Test.ExmcTerms

  alias Nutkin.{Error, Tensor}

  @moduletag :port
  @moduletag :capture_log

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  # Of known standard deviations: a and b are 0.1 and 10 for x, {2}, and 1 for m, which comes first.
  defp ir do
    Nutkin.Test.ExmcTerms.ir([
      rv("a", :Normal, %{mu: "m", sigma: 0.1}, shape: {2}),
      rv("m", :Normal, %{mu: 0.0, sigma: 10.0}),
      rv("y", :Normal, %{mu: "m", sigma: 1.0}),
      obs("y_obs", "y", nx([1.0, 2.0, 3.0]))
    ])
  end

  defp list(tensor), do: tensor |> Tensor.new() |> Tensor.to_flat_list()
  defp shape(tensor), do: Tensor.new(tensor).shape

  test "a trace and its statistics", %{worker: worker} do
    {trace, stats} = Nutkin.Exmc.sample(ir(), %{}, num_samples: 400, num_warmup: 500, seed: 3, worker: worker)
    assert Enum.sort(Map.keys(trace)) == ["a", "m"]
    assert shape(trace["a"]) == {400, 2}
    assert shape(trace["m"]) == {400}
    m = list(trace["m"])
    assert_in_delta Enum.sum(m) / 400, 2.0, 0.3
    assert Enum.all?(Enum.zip(m, list(trace["a"])), fn {_m, a} -> is_float(a) end)

    assert %{num_warmup: 500, num_samples: 400, recoveries: 0, warnings: [], divergences: 0} = stats
    assert is_float(stats.step_size)
    assert length(stats.sample_stats) == 400
    assert Map.keys(hd(stats.sample_stats)) == ~w(accept_prob divergent energy n_steps recovered tree_depth)a
    assert %{divergent: false, recovered: false, n_steps: steps} = hd(stats.sample_stats)
    assert steps >= 1
    assert shape(stats.inv_mass_diag) == {3}
  end

  test "the inverse mass is in the order of the ids", %{worker: worker} do
    ir =
      Nutkin.Test.ExmcTerms.ir([
        rv("b", :Normal, %{mu: 0.0, sigma: 10.0}),
        rv("a", :Normal, %{mu: "b", sigma: 0.1}),
        rv("c", :Normal, %{mu: 0.0, sigma: 0.1}),
        rv("y", :Normal, %{mu: "b", sigma: 0.1}),
        obs("y_obs", "y", 1.0)
      ])

    # After b comes a in the model; their variances are 0.01, 0.02 and 0.01.
    {model, _data} = Nutkin.Exmc.model(ir)
    assert Nutkin.Model.parameters(model) == ~w(b a c)
    {_trace, stats} = Nutkin.Exmc.sample(ir, %{}, num_samples: 10, seed: 1, worker: worker)
    [a, b, c] = list(stats.inv_mass_diag)
    assert a > 1.3 * b and a > 1.3 * c
  end

  test "several chains", %{worker: worker} do
    opts = [num_samples: 50, worker: worker, vectorized: true, parallel: 4]
    {traces, stats} = Nutkin.Exmc.sample_chains(ir(), 3, opts)
    assert [{50, 2}, {50, 2}, {50, 2}] = for(trace <- traces, do: shape(trace["a"]))
    assert [50, 50, 50] = for(one <- stats, do: length(one.sample_stats))
    assert traces |> Enum.map(&list(&1["m"])) |> Enum.uniq() |> length() == 3
  end

  test "chains that start at values of their own", %{worker: worker} do
    opts = [num_samples: 20, worker: worker]
    values = [%{"m" => 1.0}, %{"m" => 3.0, "a" => nx([3.0, 3.1])}]
    {traces, _stats} = Nutkin.Exmc.sample_chains(ir(), 2, [init_values: values] ++ opts)
    assert traces |> Enum.map(&list(&1["m"])) |> Enum.uniq() |> length() == 2

    assert {[_, _], [_, _]} = Nutkin.Exmc.sample_chains(ir(), 2, [init_values: hd(values)] ++ opts)
    assert {%{}, %{}} = Nutkin.Exmc.sample(ir(), %{}, [init_values: hd(values)] ++ opts)

    assert_raise Error.InvalidOption,
                 ~r/:init_values; expected a map, or a list of 3 maps.*a list of 2/,
                 fn ->
                   Nutkin.Exmc.sample_chains(ir(), 3, [init_values: values] ++ opts)
                 end
  end

  test "a stream of messages", %{worker: worker} do
    assert Nutkin.Exmc.sample_stream(ir(), self(), %{"m" => 1.5}, num_samples: 30, worker: worker, seed: 5) ==
             :ok

    {trace, stats} = Nutkin.Exmc.sample(ir(), %{"m" => 1.5}, num_samples: 30, worker: worker, seed: 5)

    received =
      for i <- 1..30 do
        assert_received {:exmc_sample, ^i, point, step}
        {point, step}
      end

    assert_received {:exmc_done, 30}
    {points, steps} = Enum.unzip(received)
    assert Enum.map(points, &Tensor.to_number(Tensor.new(&1["m"]))) == list(trace["m"])
    assert points |> Enum.flat_map(&list(&1["a"])) == list(trace["a"])
    assert shape(hd(points)["a"]) == {2}
    assert steps == stats.sample_stats
  end

  test "other observed values compile nothing", %{worker: worker} do
    compilations = fn y ->
      nodes = [
        rv("m", :Normal, %{mu: 0.0, sigma: 1.0}),
        rv("y", :Normal, %{mu: "m", sigma: 1.0}),
        obs("o", "y", y)
      ]

      {_trace, _stats} =
        Nutkin.Exmc.sample(Nutkin.Test.ExmcTerms.ir(nodes), %{}, num_samples: 10, worker: worker)

      {:ok, %{compilations: compilations}} = Nutkin.ping(worker)
      compilations
    end

    assert compilations.(nx([1.0, 2.0, 4.0])) == compilations.(nx([5.0, 6.0, 7.5], {:f, 32}))
  end

  test "a model without free variables", %{worker: worker} do
    ir = Nutkin.Test.ExmcTerms.ir([rv("y", :Normal, %{mu: 0.0, sigma: 1.0}), obs("y_obs", "y", 1.0)])
    assert {%{} = trace, %{sample_stats: []}} = Nutkin.Exmc.sample(ir, %{}, worker: worker)
    assert trace == %{}
    assert Nutkin.Exmc.sample_stream(ir, self(), %{}, num_samples: 3, worker: worker) == :ok
    assert_received {:exmc_done, 3}
  end

  test "the translated model has all of Nutkin", %{worker: worker} do
    {model, data} = Nutkin.Exmc.model(ir())
    {:ok, fit} = Nutkin.sample(model, data: data, worker: worker, draws: 100)
    {:ok, predicted} = Nutkin.predict(model, fit, data: data, worker: worker)
    assert Nutkin.Fit.tensor(predicted, :y_obs).shape == {4, 100, 3}
    {:ok, likelihood} = Nutkin.log_likelihood(model, fit, data: data, worker: worker)
    assert Nutkin.Fit.tensor(likelihood, :y_obs).shape == {4, 100, 3}
  end

  test "warnings are logged, and with the statistics", %{worker: worker} do
    ir =
      Nutkin.Test.ExmcTerms.ir([
        rv("p", :Beta, %{alpha: 1.0, beta: 1.0}),
        rv("y", :Bernoulli, %{p: "p"}),
        obs("y_obs", "y", nx([1.0, 0.0, 1.0]))
      ])

    log =
      capture_log(fn ->
        {trace, stats} = Nutkin.Exmc.sample(ir, %{}, num_samples: 400, worker: worker)
        assert [warning] = stats.warnings
        assert warning =~ "y_obs: eXMC takes the logit"
        assert_in_delta Enum.sum(list(trace["p"])) / 400, 3 / 5, 0.1
      end)

    assert log =~ "y_obs: eXMC takes the logit"
  end

  test "a free truncated variable stays between its limits", %{worker: worker} do
    params = %{mu: 0.0, sigma: 1.0, lower: 1.0, upper: 2.0}
    ir = Nutkin.Test.ExmcTerms.ir([rv("x", :TruncatedNormal, params)])
    {trace, _stats} = Nutkin.Exmc.sample(ir, %{}, num_samples: 100, worker: worker)
    assert Enum.all?(list(trace["x"]), &(&1 >= 1 and &1 <= 2))
  end

  test "a run whose time is up has the draws until then", %{worker: worker} do
    # Compiled before, so that there are some.
    Nutkin.Exmc.sample(ir(), %{}, num_samples: 1, worker: worker)
    {trace, stats} = Nutkin.Exmc.sample(ir(), %{}, num_samples: 1_000_000_000, timeout: 5_000, worker: worker)
    assert shape(trace["m"]) == {stats.num_samples}
    assert [warning] = stats.warnings
    assert warning =~ "the run ended early (timeout)"
  end

  test "wrong options are called as eXMC calls them", %{worker: worker} do
    for {opts, error} <- [
          {[num_sample: 1], ~r/unknown option :num_sample; .*did you mean :num_samples/},
          {[num_samples: 0], ~r/invalid value of option :num_samples; expected an integer from 1/},
          {[num_warmup: -1], ~r/invalid value of option :num_warmup/},
          {[ncp: :yes], ~r/invalid value of option :ncp; expected true or false or :auto; found :yes/},
          {[dense_mass: 1], ~r/invalid value of option :dense_mass/},
          {[seed: :one], ~r/invalid value of option :seed/},
          {[init_values: [a: 1]], ~r/invalid values to start at/},
          {[init_values: %{"m" => :one}], ~r/invalid value of option :init_values/},
          {[1], ~r/expected a keyword list/}
        ] do
      opts = if Keyword.keyword?(opts), do: [worker: worker] ++ opts, else: opts
      assert_raise Error.InvalidOption, error, fn -> Nutkin.Exmc.sample(ir(), %{}, opts) end
    end

    assert_raise Error.InvalidOption, ~r/y has a value to start at, and is no free variable.*a, m/, fn ->
      Nutkin.Exmc.sample(ir(), %{"y" => 1.0}, worker: worker)
    end
  end
end
