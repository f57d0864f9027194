defmodule Nutkin.SamplingTest do
  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Model

  alias Nutkin.{Draws, Fit, Progress, Summary, Tensor}
  alias Nutkin.Error.{InvalidOption, Timeout}
  alias Nutkin.Test.Models

  @moduletag :port
  @moduletag :capture_log

  # More than can be drawn in the time of a test.
  @endless 1_000_000_000

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    {:ok, _} = Nutkin.compile(Models.eight_schools(), data: Models.eight_schools_data(), worker: name)
    %{worker: name}
  end

  # Whatever a test starts, it leaves nothing open behind.
  setup %{worker: worker} do
    on_exit(fn -> eventually(fn -> open_requests(worker) == 0 end) end)
  end

  defp schools(worker, opts) do
    [data: Models.eight_schools_data(), worker: worker] |> Keyword.merge(opts)
  end

  defp open_requests(worker) do
    {:ok, %{requests: open}} = Nutkin.ping(worker)
    open
  end

  test "the eight schools have their posterior", %{worker: worker} do
    assert {:ok, fit} = Nutkin.sample(Models.eight_schools(), schools(worker, seed: 1, draws: 2000))
    assert %Fit{status: :complete} = fit
    assert Fit.names(fit) == ["mu", "tau", "theta"]
    assert Fit.lengths(fit) == [2000, 2000, 2000, 2000]
    assert Fit.tensor(fit, :theta).shape == {4, 2000, 8}
    assert Fit.stats(fit, :n_steps).shape == {4, 2000}
    rows = Map.new(Summary.new(fit).rows, &{&1.name, &1})

    # The reference: 10000 draws of posteriordb's eight_schools_noncentered.
    for {name, mean, sd} <- [{"mu", 4.411, 3.309}, {"theta[0]", 6.151, 5.616}, {"theta[7]", 4.884, 5.318}] do
      row = rows[name]
      assert row.r_hat < 1.01
      assert row.ess_bulk > 400
      assert abs(row.mean - mean) < 4 * (row.mcse_mean + sd / 100)
      assert_in_delta row.sd, sd, 0.1 * sd
    end

    assert_in_delta rows["tau"].mean, 3.6, 0.3
    assert inspect(fit) =~ "#Nutkin.Fit<4 chains x 2000 draws, complete"
  end

  test "a pilot decides how far the elements of a hierarchy are centered", %{worker: worker} do
    import Nutkin.Model

    groups =
      model do
        mu <~ normal(0, 5)
        tau <~ half_normal(2)
        theta <~ normal(mu, tau, shape: {10}, centered: :auto)
        observe(:obs, normal(theta, data(:error)), data(:mean))
      end

    assert inspect(groups) =~ "centered: :auto"
    # The means of eight groups are known well, of two hardly: only there is z what the prior says.
    means = for i <- 1..10, do: :math.sin(i * 1.0) * 3
    data = %{mean: means, error: [9.0, 9.0 | List.duplicate(0.1, 8)]}
    assert {:ok, fit} = Nutkin.sample(groups, data: data, draws: 100, worker: worker)
    assert %{centering: %{"theta" => weights}, gradients: gradients, seconds: seconds} = fit.pilot
    assert [few, _ | many] = Tensor.to_list(weights)
    assert Enum.all?(many, &(&1 > few + 0.2))
    assert gradients > 0 and seconds > 0
    assert {:ok, %{pilot: nil}} = Nutkin.sample(Models.eight_schools(), schools(worker, draws: 10, chains: 1))
  end

  test "the same seed gives the same draws, another one others", %{worker: worker} do
    draws = fn seed ->
      {:ok, fit} = Nutkin.sample(Models.eight_schools(), schools(worker, seed: seed, draws: 50, chains: 2))
      Fit.tensor(fit, :theta)
    end

    assert draws.(7) == draws.(7)
    assert draws.(7) != draws.(8)
  end

  test "new data of the same shapes compile nothing", %{worker: worker} do
    model = Models.mean()
    {:ok, first} = Nutkin.sample(model, data: [y: [1.0, 2.0, 3.0]], draws: 500, worker: worker)
    {:ok, %{compilations: before}} = Nutkin.ping(worker)
    {:ok, second} = Nutkin.sample(model, data: [y: [11.0, 12.0, 13.0]], draws: 500, worker: worker)
    assert {:ok, %{compilations: ^before}} = Nutkin.ping(worker)
    assert second.compiled.cached
    mean = fn fit -> hd(Summary.new(fit).rows).mean end
    # With the prior Normal(0, 10): 2 and 12 times 3 / 3.01.
    assert_in_delta mean.(first), 1.99, 0.15
    assert_in_delta mean.(second), 11.96, 0.15
  end

  @tag timeout: 300_000
  test "data that grow from 100 to 100,000 rows compile twelve times at most", %{worker: worker} do
    write = fn opts ->
      model do
        x = data(:x, [type: :f64] ++ opts)
        y = data(:y, [type: :f64] ++ opts)
        alpha <~ normal(0, 1)
        beta <~ normal(0, 1)
        sigma <~ half_normal(1)
        observe(:obs, normal(alpha + beta * x, sigma), y)
        deterministic(:largest, reduce_max(x) * beta)
      end
    end

    rows = fn n ->
      x = for i <- 1..n, do: :math.sin(i / 1)
      %{x: x, y: for({x, i} <- Enum.with_index(x), do: 0.5 - x + 0.3 * :math.cos(7.0 * i))}
    end

    growing = write.(grows: :rows)
    options = [worker: worker, seed: 3, draws: 500, chains: 2]
    {:ok, %{compilations: before}} = Nutkin.ping(worker)

    # Two lengths for each program.
    lengths = [100, 128, 130, 256, 300, 512, 700, 1000, 1100, 2048, 2500, 4000, 5000, 8192]
    lengths = lengths ++ [9000, 16_000, 20_000, 32_768, 40_000, 65_000, 80_000, 100_000]

    fits =
      for n <- lengths, into: %{} do
        {:ok, fit} = Nutkin.sample(growing, [data: rows.(n)] ++ options)
        {n, fit}
      end

    {:ok, %{compilations: compiled}} = Nutkin.ping(worker)
    assert compiled - before <= 12

    for n <- [300, 100_000] do
      {:ok, plain} = Nutkin.sample(write.([]), [data: rows.(n)] ++ options)
      assert fits[n].compiled.rewrites == plain.compiled.rewrites

      for {left, right} <- Enum.zip(Summary.new(fits[n]).rows, Summary.new(plain).rows) do
        assert left.name == right.name
        assert_in_delta left.mean, right.mean, 4 * (left.mcse_mean + right.mcse_mean)
        assert_in_delta left.sd, right.sd, 0.2 * right.sd
      end
    end
  end

  test "options are kept: thinning, warmup draws, chosen variables, f32", %{worker: worker} do
    options = [
      draws: 40,
      warmup: 60,
      thin: 2,
      keep_warmup: true,
      variables: [:tau],
      precision: :f32,
      chains: 2
    ]

    assert {:ok, fit} = Nutkin.sample(Models.eight_schools(), schools(worker, options))
    assert Fit.names(fit) == ["tau"]
    assert %Tensor{shape: {2, 40}, type: {:f, 32}} = Fit.tensor(fit, :tau)
    assert {2, 60} = Fit.tensor(fit, :tau, phase: :warmup).shape
    assert_raise ArgumentError, ~r/nothing was drawn as mu/, fn -> Fit.tensor(fit, :mu) end
  end

  test "the warmup is pooled and short, or as long as it is told", %{worker: worker} do
    assert {:ok, pooled} = Nutkin.sample(Models.eight_schools(), schools(worker, draws: 10, seed: 3))
    assert Enum.map(pooled.chains, & &1.warmup) == [190, 190, 190, 190]
    assert %{compile: _, warmup: warmup, sample: sample} = pooled.seconds
    assert warmup > 0 and sample > 0
    options = [draws: 10, adaptation: :windowed, warmup: 60, mass_matrix: :dense]
    assert {:ok, windowed} = Nutkin.sample(Models.eight_schools(), schools(worker, options))
    assert Enum.map(windowed.chains, & &1.warmup) == [60, 60, 60, 60]
    assert windowed.chains |> Enum.map(& &1.step_size) |> Enum.uniq() |> length() == 4
  end

  test "progress comes while it samples", %{worker: worker} do
    me = self()

    {:ok, _} =
      Nutkin.sample(
        Models.eight_schools(),
        schools(worker, draws: 20_000, on_progress: &send(me, {:progress, &1}))
      )

    assert_received {:progress, %Progress{total: 20_190, chain: chain}} when chain in 0..3
  end

  test "a fit is compiled, and a point has its density and gradient", %{worker: worker} do
    assert {:ok, compiled} = Nutkin.compile(Models.mean(), data: %{y: [1.0, 2.0]}, worker: worker)
    assert %{dimension: 1, parameters: [%{name: "mu", shape: {}}], observed: ["obs"]} = compiled
    opts = [data: %{y: [1.0, 2.0]}, worker: worker]
    assert compiled.rewrites == [%{name: "normal_sufficient_statistics", node: "obs"}]
    assert {:ok, %{rewrites: []}} = Nutkin.compile(Models.mean(), [rewrites: []] ++ opts)
    assert {:ok, %{rewrites: []}} = Nutkin.compile(Models.mean(), [rewrites: [:parameter_free]] ++ opts)
    assert {:error, %InvalidOption{}} = Nutkin.compile(Models.mean(), [rewrites: [:other]] ++ opts)
    assert {:ok, at_position} = Nutkin.log_density(Models.mean(), [0.5], opts)
    assert {:ok, ^at_position} = Nutkin.log_density(Models.mean(), %{mu: 0.5}, opts)

    log_normal = fn x, mu, sigma ->
      -0.5 * ((x - mu) / sigma) ** 2 - :math.log(sigma) - 0.5 * :math.log(2 * :math.pi())
    end

    expected = log_normal.(0.5, 0, 10) + log_normal.(1.0, 0.5, 1) + log_normal.(2.0, 0.5, 1)
    assert_in_delta at_position.value, expected, 1.0e-12
    assert [gradient] = Tensor.to_list(at_position.gradient)
    assert_in_delta gradient, -0.5 / 100 + 0.5 + 1.5, 1.0e-12
    assert Nutkin.log_density!(Models.mean(), [mu: 0.5], opts) == at_position
  end

  test "a cancelled run keeps its draws", %{worker: worker} do
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: @endless))
    ref = run.ref
    assert_receive {^ref, {:draws, %Draws{}}}, 30_000
    # From another process, while this one waits.
    spawn_link(fn -> Nutkin.cancel(run) end)
    assert {:ok, %Fit{status: :cancelled} = fit} = Nutkin.await(run)
    assert Enum.sum(Fit.lengths(fit)) > 0
    assert [_, _, _, _] = fit.chains
    refute_received {^ref, _}
  end

  test "a timeout keeps the draws that there are", %{worker: worker} do
    assert {:ok, %Fit{status: :timeout} = fit} =
             Nutkin.sample(Models.eight_schools(), schools(worker, draws: @endless, timeout: 1_000))

    assert Enum.min(Fit.lengths(fit)) > 0
    assert inspect(Fit.summary(fit, variables: [])) =~ "draws, timeout, "
  end

  test "a timeout without any draw is an error", %{worker: worker} do
    assert {:error, %Timeout{timeout: 0}} =
             Nutkin.sample(
               Models.eight_schools(),
               schools(worker, timeout: 0, adaptation: :windowed, warmup: @endless)
             )

    assert_raise Timeout, "no result within 0 ms", fn ->
      Nutkin.sample!(
        Models.eight_schools(),
        schools(worker, timeout: 0, adaptation: :windowed, warmup: @endless)
      )
    end
  end

  test "a stream has all draws", %{worker: worker} do
    chunks =
      Models.eight_schools()
      |> Nutkin.stream(schools(worker, draws: 300, chains: 2, credit: 1))
      |> Enum.to_list()

    assert chunks |> Enum.map(& &1.count) |> Enum.sum() == 600
    starts = for %Draws{chain: 0} = draws <- chunks, do: {draws.start, draws.count}

    assert Enum.reduce(starts, 0, fn {start, count}, next -> assert(start == next) && start + count end) ==
             300
  end

  for {credit, take} <- [{0, 3}, {1, 40}] do
    @tag credit: credit, take: take
    test "a stream goes on with a credit of #{credit}", %{worker: worker, credit: credit, take: take} do
      stream = Nutkin.stream(Models.eight_schools(), schools(worker, draws: @endless, credit: credit))
      assert stream |> Enum.take(take) |> length() == take
    end
  end

  test "a run without credit is awaited", %{worker: worker} do
    assert {:ok, %Fit{status: :complete} = fit} =
             Nutkin.sample(Models.eight_schools(), schools(worker, draws: 100, credit: 0, timeout: 60_000))

    assert Fit.lengths(fit) == [100, 100, 100, 100]
  end

  test "chunks that were received and not acknowledged do not hold up await", %{worker: worker} do
    options = schools(worker, draws: 20_000, credit: 2)
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), options)
    ref = run.ref
    for _ <- 1..2, do: assert_receive({^ref, {:draws, _}}, 30_000)
    assert {:ok, %Fit{status: :complete} = fit} = Nutkin.await(run, 120_000)
    assert Enum.sum(Fit.lengths(fit)) < 80_000
  end

  describe "a run that has ended" do
    setup %{worker: worker} do
      {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: 10))
      %{run: run}
    end

    @ended ~r/this run has ended or was closed/

    test "is not awaited twice", %{run: run} do
      assert {:ok, %Fit{status: :complete}} = Nutkin.await(run)
      assert_raise ArgumentError, @ended, fn -> Nutkin.await(run) end
      refute_received _
    end

    test "is not awaited after it was closed", %{run: run} do
      :ok = Nutkin.Run.close(run)
      assert_raise ArgumentError, @ended, fn -> Nutkin.await(run) end
      refute_received _
    end

    test "is not awaited after its last event was received", %{run: run} do
      ref = run.ref
      assert_receive {^ref, {:done, _}}, 30_000
      assert_raise ArgumentError, @ended, fn -> Nutkin.await(run) end
      refute_received _
    end

    test "has its fit while its last event is in the mailbox", %{run: run, worker: worker} do
      eventually(fn -> open_requests(worker) == 0 end, 30_000)
      assert {:ok, %Fit{status: :complete, options: options} = fit} = Nutkin.await(run)
      assert Fit.lengths(fit) == [10, 10, 10, 10]
      assert Map.take(options, [:data, :worker]) == %{}
      refute_received _
    end
  end

  test "a run whose worker has died is not awaited after that was received" do
    worker = start_worker!(port_options())
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: @endless))
    ref = run.ref
    :ok = stop_supervised(worker)
    assert_receive {:DOWN, ^ref, :process, _, _}
    assert_raise ArgumentError, @ended, fn -> Nutkin.await(run) end
    refute_received _
  end

  test "a fit has its rows though the compilation was heard of before", %{worker: worker} do
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: 10))
    ref = run.ref
    assert_receive {^ref, {:compiled, _}}, 30_000
    assert {:ok, %Fit{compiled: nil} = fit} = Nutkin.await(run)
    assert Fit.names(fit) == ["mu", "tau", "theta"]
    assert length(Summary.new(fit).rows) == 10
  end

  for timeout <- [-5, "5", [timeout: 5], 1.5] do
    @tag timeout_of_await: timeout
    test "await with a timeout of #{inspect(timeout)}", %{worker: worker, timeout_of_await: timeout} do
      {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: 10))
      assert {:error, %InvalidOption{path: "timeout"} = error} = Nutkin.await(run, timeout)
      assert Exception.message(error) =~ "or :infinity; found #{inspect(timeout)}"
      assert {:error, %InvalidOption{}} = Nutkin.ping(worker, timeout)
      assert {:ok, %Fit{status: :complete}} = Nutkin.await(run)
    end
  end

  test "a stream that is left early cancels its run", %{worker: worker} do
    assert [%Draws{}] =
             Models.eight_schools() |> Nutkin.stream(schools(worker, draws: @endless)) |> Enum.take(1)

    eventually(fn -> open_requests(worker) == 0 end)
    refute_received _
  end

  test "a stream raises its timeout, and the run ends", %{worker: worker} do
    stream = Nutkin.stream(Models.eight_schools(), schools(worker, draws: @endless, timeout: 300))
    assert_raise Timeout, "the stream was not at its end after 300 ms", fn -> Stream.run(stream) end
    eventually(fn -> open_requests(worker) == 0 end)
  end

  test "a stream raises its timeout also when its consumer is the slow one", %{worker: worker} do
    stream = Nutkin.stream(Models.eight_schools(), schools(worker, draws: @endless, timeout: 300))
    # It waits for what never comes, a little longer for each chunk than a chunk takes.
    slow = fn _chunk -> receive(do: (:never -> :ok), after: (50 -> :ok)) end
    started = System.monotonic_time(:millisecond)
    assert_raise Timeout, fn -> Enum.each(stream, slow) end
    assert System.monotonic_time(:millisecond) - started < 5_000
  end

  test "a consumer that does not acknowledge stops the sampler, not the worker", %{worker: worker} do
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: @endless, credit: 3))
    ref = run.ref
    for _ <- 1..3, do: assert_receive({^ref, {:draws, _}}, 30_000)
    {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
    eventually(fn -> idle?(os_pid) end)
    refute_received {^ref, {:draws, _}}
    assert {:ok, fit} = Nutkin.sample(Models.mean(), data: [y: [1.0]], draws: 10, worker: worker)
    assert fit.status == :complete
    Nutkin.Run.ack(run, 2)
    for _ <- 1..2, do: assert_receive({^ref, {:draws, _}}, 30_000)
    eventually(fn -> idle?(os_pid) end)
    refute_received {^ref, {:draws, _}}
    Nutkin.Run.close(run)
    eventually(fn -> open_requests(worker) == 0 end)
    refute_received {^ref, _}
    assert {:monitors, []} = Process.info(self(), :monitors)
  end

  test "a consumer that dies takes its run with it", %{worker: worker} do
    me = self()

    consumer =
      spawn(fn ->
        {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: @endless))
        ref = run.ref
        receive(do: ({^ref, {:draws, _}} -> send(me, :sampling)))
        receive(do: (:never -> :ok))
      end)

    assert_receive :sampling, 30_000
    assert open_requests(worker) == 1
    Process.exit(consumer, :kill)
    eventually(fn -> open_requests(worker) == 0 end)
  end

  test "a run belongs to the process that started it", %{worker: worker} do
    {:ok, run} = Nutkin.start_run(Models.eight_schools(), schools(worker, draws: 10))

    task =
      Task.async(fn ->
        assert_raise ArgumentError, ~r/by the process that started it/, fn -> Nutkin.await(run) end
      end)

    Task.await(task)
    assert {:ok, %Fit{status: :complete}} = Nutkin.await(run)
  end

  test "runs of several processes go on at the same time", %{worker: worker} do
    fits =
      for seed <- 1..4,
          do:
            Task.async(fn ->
              Nutkin.sample!(Models.eight_schools(), schools(worker, seed: seed, draws: 100))
            end)

    fits = Task.await_many(fits, 60_000)
    assert fits |> Enum.map(&Fit.tensor(&1, :mu)) |> Enum.uniq() |> length() == 4
  end

  # Whether the process used no processor time for a tenth of a second.
  defp idle?(os_pid) do
    before = cpu_ticks(os_pid)
    receive(do: (:never -> :ok), after: (100 -> cpu_ticks(os_pid) == before))
  end

  defp cpu_ticks(os_pid) do
    fields = "/proc/#{os_pid}/stat" |> File.read!() |> String.split(") ") |> List.last() |> String.split()
    String.to_integer(Enum.at(fields, 11)) + String.to_integer(Enum.at(fields, 12))
  end
end
