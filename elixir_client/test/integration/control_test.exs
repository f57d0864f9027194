defmodule Nutkin.ControlTest do
  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.{Checkpoint, Draws, Fit, Run, Tensor}
  alias Nutkin.Error.{Cancelled, InvalidCheckpoint, WorkerExit}
  alias Nutkin.Test.Models

  @moduletag :port
  @moduletag :capture_log

  # More than can be drawn in the time of a test.
  @endless 1_000_000_000

  # What the sampler may take to heed a message, in milliseconds.
  @heed 200

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    {:ok, _} = Nutkin.compile(Models.mean(), data: [y: [1.0]], worker: name)
    %{worker: name}
  end

  defp start!(worker, opts) do
    {:ok, run} = Nutkin.start_run(Models.mean(), [data: [y: [1.0]], worker: worker] ++ opts)
    run
  end

  defp fit!(worker, opts) do
    {:ok, fit} = Nutkin.sample(Models.mean(), [data: [y: [1.0]], worker: worker] ++ opts)
    fit
  end

  defp draws(fit), do: {Fit.tensor(fit, :mu), Fit.tensor(fit, :mu).shape, Fit.stats(fit, :n_steps)}

  defp next_draws(%{ref: ref}) do
    assert_receive {^ref, {:draws, draws}}, 60_000
    draws
  end

  defp now, do: System.monotonic_time(:millisecond)

  describe "a run that goes on" do
    test "is paused and goes on again, and its draws are the same", %{worker: worker} do
      run = start!(worker, draws: 20_000, credit: 1_000_000)
      next_draws(run)
      :ok = Run.pause(run)
      Process.sleep(@heed)
      {:ok, %{stage: :running, paused: true, chains: before}} = Run.info(run)
      Process.sleep(@heed)
      {:ok, %{paused: true, chains: ^before}} = Run.info(run)
      assert Enum.any?(before, &(&1.draws < 20_000))
      :ok = Run.resume(run)
      {:ok, %{paused: false}} = Run.info(run)
      ref = run.ref
      assert_receive {^ref, {:done, %{status: :complete}}}, 60_000
      Run.close(run)
      paused = start!(worker, draws: 500)
      :ok = Run.pause(paused)
      :ok = Run.resume(paused)
      {:ok, fit} = Nutkin.await(paused)
      assert draws(fit) == draws(fit!(worker, draws: 500))
    end

    test "tells how far it is, also to others", %{worker: worker} do
      run = start!(worker, draws: @endless)
      next_draws(run)
      {:ok, info} = Task.await(Task.async(fn -> Run.info(run) end))
      assert %{stage: :running, paused: false, seconds: seconds, chains: chains} = info
      assert seconds > 0
      assert [0, 1, 2, 3] = Enum.map(chains, & &1.chain)
      assert %{phase: :sample, gradients_per_second: speed, seconds_left: left} = hd(chains)
      assert speed > 0 and left > 0
      Run.close(run)
      eventually(fn -> Run.info(run) == {:ok, :ended} end)
      assert_raise ArgumentError, ~r/this run has ended/, fn -> Run.checkpoint(run) end
    end

    test "keeps what it has drawn when it is cancelled, or drops it, within #{@heed} ms", %{worker: worker} do
      run = start!(worker, draws: @endless)
      next_draws(run)
      started = now()
      :ok = Nutkin.cancel(run)
      assert {:ok, %Fit{status: :cancelled}} = Nutkin.await(run)
      assert now() - started < @heed

      run = start!(worker, draws: @endless)
      next_draws(run)
      started = now()
      :ok = Nutkin.cancel(run, :drop)
      assert {:error, %Cancelled{}} = Nutkin.await(run)
      assert now() - started < @heed
      eventually(fn -> match?({:ok, [%{requests: 0}]}, Nutkin.info(worker)) end)
    end

    test "ends when its time is up, or when it has converged", %{worker: worker} do
      started = now()
      assert %Fit{status: :max_time} = fit = fit!(worker, draws: @endless, max_time: 300, credit: 100)
      assert (now() - started) in 300..1_500
      assert Enum.min(Fit.lengths(fit)) > 0

      assert %Fit{status: :converged} = fit = fit!(worker, draws: @endless, target_ess: 500, max_rhat: 1.01)
      assert [row] = Fit.summary(fit).rows
      assert row.ess_bulk >= 500 and row.ess_tail >= 500 and row.r_hat <= 1.01
      assert draws(fit) == draws(fit!(worker, draws: @endless, target_ess: 500, max_rhat: 1.01, credit: 1))
    end
  end

  describe "a checkpoint" do
    test "of a fit makes the draws that are missing, and more of them", %{worker: worker} do
      whole = draws(fit!(worker, draws: 700))
      half = fit!(worker, draws: 400)

      assert {:ok, %Fit{status: :complete, options: %{draws: 700}} = fit} =
               Nutkin.resume(half, more: 300, worker: worker)

      assert draws(fit) == whole

      run = start!(worker, draws: 700, credit: 3)
      :ok = Nutkin.cancel(run)
      {:ok, early} = Nutkin.await(run)
      assert {:ok, fit} = Nutkin.resume(early, worker: worker)
      assert draws(fit) == whole
    end

    test "goes through bytes to another worker, and to a stream", %{worker: worker} do
      run = start!(worker, draws: 700, credit: 0)
      Run.ack(run, 2)
      seen = [next_draws(run), next_draws(run)]
      :ok = Run.pause(run)
      {:ok, checkpoint} = Run.checkpoint(run)
      Run.close(run)
      {:ok, checkpoint} = checkpoint |> Checkpoint.to_binary() |> Checkpoint.from_binary()
      other = start_worker!(port_options())
      rest = checkpoint |> Nutkin.stream(worker: other) |> Enum.to_list()
      whole = Fit.tensor(fit!(worker, draws: 700), :mu)
      {:ok, wanted} = Tensor.cast(joined(seen ++ rest))
      assert wanted.data == whole.data
    end

    # Chunks of all chains, in the order of the draws: without a gap, and without a draw that comes twice.
    defp joined(chunks) do
      for {_chain, chunks} <- chunks |> Enum.group_by(& &1.chain) |> Enum.sort() do
        chunks
        |> Enum.sort_by(& &1.start)
        |> Enum.reduce({0, []}, fn draws, {upto, values} ->
          assert draws.start == upto
          {upto + draws.count, values ++ Tensor.to_list(draws.variables["mu"])}
        end)
        |> elem(1)
      end
    end

    test "of another model is refused", %{worker: worker} do
      %Checkpoint{} = checkpoint = fit!(worker, draws: 10).checkpoint

      schools =
        Nutkin.sample!(Models.eight_schools(), data: Models.eight_schools_data(), draws: 10, worker: worker)

      mixed = %{checkpoint | state: schools.checkpoint.state}
      assert {:error, %InvalidCheckpoint{}} = Nutkin.resume(mixed, worker: worker)
      assert {:error, %InvalidCheckpoint{}} = Nutkin.resume(%{checkpoint | state: "abc"}, worker: worker)
      predicted = Nutkin.predict!(Models.mean(), fit!(worker, draws: 10), data: [y: [1.0]], worker: worker)
      assert {:error, %InvalidCheckpoint{message: "the fit has no checkpoint"}} = Nutkin.resume(predicted)
    end
  end

  describe "a program that ends under a run" do
    setup do
      %{worker: start_worker!(port_options())}
    end

    test "is replaced, and the consumer sees neither a gap nor a repeated draw", %{worker: worker} do
      run = start!(worker, draws: 2000, credit: 2, checkpoint_every: 50)
      ref = run.ref
      first = next_draws(run)
      kill!(os_pid(worker))
      assert_receive {^ref, {:resumed, %WorkerExit{status: 137}}}, 5_000
      Run.ack(run)
      assert {:ok, %Fit{status: :complete} = fit} = Nutkin.await(run)
      chunks = for {chain, chunks} <- fit.draws.sample, chunk <- chunks, do: %Draws{chunk | chain: chain}
      {:ok, tensor} = Tensor.cast(joined([first | chunks]))
      assert tensor.data == Fit.tensor(fit!(worker, draws: 2000), :mu).data
    end

    test "is replaced under predictions too", %{worker: worker} do
      fit = fit!(worker, draws: 20_000)
      opts = [data: [y: List.duplicate(1.0, 50)], worker: worker, seed: 3]
      whole = Models.mean() |> Nutkin.predict!(fit, opts) |> Fit.tensor(:obs)

      stream = Nutkin.stream_predictions(Models.mean(), fit, [credit: 1] ++ opts)

      chunks =
        stream
        |> Stream.with_index()
        |> Enum.map(fn {chunk, i} ->
          if i == 3, do: kill!(os_pid(worker))
          chunk
        end)

      parts =
        for {_chain, chunks} <- chunks |> Enum.group_by(& &1.chain) |> Enum.sort(),
            chunk <- Enum.sort_by(chunks, & &1.start),
            into: <<>>,
            do: chunk.variables["obs"].data

      assert parts == whole.data
    end

    test "is replaced under a compilation as well", %{worker: worker} do
      compiling = Task.async(fn -> Nutkin.compile(Models.slow_to_compile(), worker: worker) end)
      eventually(fn -> match?({:ok, [%{requests: 1, phase: :ready}]}, Nutkin.info(worker)) end)
      first = os_pid(worker)
      kill!(first)
      eventually(fn -> os_pid(worker) not in [first, nil] end)
      assert {:ok, [%{requests: 1}]} = Nutkin.info(worker)
      Task.shutdown(compiling, :brutal_kill)
    end
  end

  test "a program that is too large or too old is replaced, and its runs go on" do
    for limit <- [[max_resident: 1_000_000], [max_age: 300]] do
      worker = start_worker!(port_options([heartbeat: 1_000] ++ limit))
      run = start!(worker, draws: @endless)
      next_draws(run)
      first = os_pid(worker)
      eventually(fn -> os_pid(worker) not in [first, nil] end, 10_000)
      eventually(fn -> not alive?(first) end)
      :ok = Nutkin.cancel(run)
      assert {:ok, %Fit{status: :cancelled, resumed: resumed}} = Nutkin.await(run)
      assert resumed >= 1
      stop_supervised!(worker)
    end
  end
end
