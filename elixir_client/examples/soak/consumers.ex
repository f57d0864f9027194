defmodule Soak.Consumers do
  @moduledoc """
  What consumers do: each kind is one use of the client, with what may come of it. Anything else is raised, and is a fault.

  The place of a consumer has two servers. Whoever may leave a compilation behind, for which the program is replaced, goes to
  the `rough` one; everyone else to the pool.
  """

  import Nutkin.Model, only: [model: 1]

  alias Nutkin.Error.{Cancelled, InvalidData, InvalidModel, InvalidOption, Timeout, WorkerExit}
  alias Nutkin.{Checkpoint, Fit, Run}
  alias Soak.{Chunks, Models}

  @typedoc "Where requests go, and the draws of the fixed run."
  @type place :: %{pool: Nutkin.Worker.t(), rough: Nutkin.Worker.t(), fixed: map()}

  # How often each is chosen.
  @kinds [
    sample: 6,
    stream: 3,
    messages: 6,
    cancel: 4,
    checkpoint: 3,
    death: 3,
    predict: 3,
    compile: 2,
    log_density: 2,
    timeout: 2,
    wrong: 3,
    fixed: 3
  ]

  # More than can be drawn in the time of a soak, also of every third iteration.
  @endless 500_000_000

  # Milliseconds. A program that is replaced compiles again, beside others, before it answers.
  @patience 60_000

  @doc "The names of the kinds."
  @spec kinds() :: [atom()]
  def kinds, do: Keyword.keys(@kinds)

  @doc "One of the kinds."
  @spec random() :: atom()
  def random,
    do: @kinds |> Enum.flat_map(fn {kind, weight} -> List.duplicate(kind, weight) end) |> Enum.random()

  @doc """
  Does what the kind does, and says how it ended. `:given_up` is a request whose programs were killed too often.
  """
  @spec run(atom(), place()) :: atom()
  def run(kind, place) do
    consume(kind, place)
  rescue
    _error in WorkerExit -> :given_up
  end

  defp consume(:sample, place) do
    {model, data} = Models.random()
    opts = Models.stop_rule() ++ Models.options()
    fit = ok!(Nutkin.sample(model, [data: data, worker: place.pool] ++ opts))
    true = fit.status in [:complete, :converged, :max_time]
    if fit.status == :complete, do: true = Enum.all?(Fit.lengths(fit), &(&1 == opts[:draws]))
    Chunks.joined(Chunks.of_fit(fit))
    fit.status
  end

  defp consume(:stream, place) do
    {model, data} = Models.random()
    opts = [data: data, draws: @endless, worker: place.pool] ++ Keyword.delete(Models.options(), :draws)
    model |> Nutkin.stream(opts) |> Enum.take(Enum.random(1..20)) |> Chunks.joined()
    :left_early
  end

  # Reads slowly, and pauses, asks and grants in between.
  defp consume(:messages, place) do
    {model, data} = Models.random()
    opts = [data: data, draws: @endless, worker: place.pool] ++ Keyword.delete(Models.options(), :draws)
    run = ok!(Nutkin.start_run(model, opts))
    Run.ack(run)
    chunks = for _ <- 1..Enum.random(1..20), do: read_slowly(run)
    Chunks.joined(chunks)
    Run.close(run)
    :closed
  end

  defp consume(:cancel, place) do
    {model, data} = Models.random()
    opts = [data: data, worker: place.pool] ++ Models.options()
    run = ok!(Nutkin.start_run(model, opts))
    Run.ack(run)
    wait_for_sampling(run)
    Process.sleep(Enum.random([0, 10, 200]))
    how = Enum.random([:keep, :drop])
    Nutkin.cancel(run, how)

    case {how, Nutkin.await(run)} do
      {_how, {:ok, %Fit{status: status}}} when status in [:complete, :cancelled] -> status
      {:drop, {:error, %Cancelled{}}} -> :dropped
      {_how, result} -> ok!(result)
    end
  end

  # Three chains at least, of which not all have a chunk among the first two.
  defp consume(:checkpoint, place) do
    {model, data} = Models.random()
    opts = [data: data, draws: 1000, chains: Enum.random(3..4), credit: 0] ++ Models.options()
    opts = Enum.uniq_by([{:worker, place.pool} | opts], &elem(&1, 0))
    run = ok!(Nutkin.start_run(model, opts))
    Run.ack(run, 2)
    seen = [next_draws(run), next_draws(run)]
    if Enum.random([true, false]), do: Run.pause(run)
    checkpoint = ok!(Run.checkpoint(run, @patience))
    Run.close(run)
    checkpoint = checkpoint |> Checkpoint.to_binary() |> Checkpoint.from_binary() |> ok!()
    rest = checkpoint |> Nutkin.stream(worker: other(place.pool, run.worker)) |> Enum.to_list()
    whole = ok!(Nutkin.sample(model, opts))
    same!(Chunks.joined(seen ++ rest), Chunks.joined(Chunks.of_fit(whole)))
    :resumed_elsewhere
  end

  # A consumer that dies with its run: before anything came, or in the midst of its draws.
  defp consume(:death, place) do
    {model, data} = Models.random()
    early? = Enum.random([true, false])
    opts = [data: data, draws: @endless] ++ Keyword.delete(Models.options(), :draws)
    server = if early?, do: place.rough, else: place.pool

    {_pid, monitor} =
      spawn_monitor(fn ->
        run = ok!(Nutkin.start_run(model, [worker: server] ++ opts))
        Run.ack(run)
        if early?, do: Process.sleep(Enum.random([0, 50, 500])), else: next_draws(run)
        Process.exit(self(), :kill)
      end)

    receive do
      {:DOWN, ^monitor, :process, _pid, :killed} -> :died
      {:DOWN, ^monitor, :process, _pid, {%WorkerExit{} = error, _stack}} -> raise error
    end
  end

  defp consume(:predict, place) do
    {model, data, new} = Models.random_pair()
    opts = [data: data, draws: 200, chains: 2, worker: place.pool]
    from = if Enum.random([true, false]), do: ok!(Nutkin.sample(model, opts)), else: :prior
    opts = [data: new, seed: :rand.uniform(1000), worker: place.pool]

    case Enum.random([:predict, :log_likelihood, :stream]) do
      :predict -> ok!(Nutkin.predict(model, from, opts))
      :log_likelihood -> ok!(Nutkin.log_likelihood(model, from, opts))
      :stream -> [_ | _] = model |> Nutkin.stream_predictions(from, [credit: 1] ++ opts) |> Enum.take(2)
    end

    if from == :prior, do: :of_prior, else: :of_fit
  end

  defp consume(:compile, place) do
    {model, data} = Models.random()
    %{dimension: _} = ok!(Nutkin.compile(model, data: data, worker: place.pool))
    :compiled
  end

  defp consume(:log_density, place) do
    {model, data} = Models.random()
    opts = [data: data, worker: place.pool]
    %{dimension: dimension} = ok!(Nutkin.compile(model, opts))
    point = for _ <- 1..dimension, do: :rand.normal()
    ask = Enum.random([&Nutkin.log_density/3, &Nutkin.debug/3])
    ok!(ask.(model, point, opts))
    :answered
  end

  defp consume(:timeout, place) do
    {model, data} = Models.random()
    opts = [data: data, draws: @endless, worker: place.rough] ++ Keyword.delete(Models.options(), :draws)

    case Nutkin.sample(model, [timeout: Enum.random([0, 10, 100, 1000])] ++ opts) do
      {:ok, %Fit{status: :timeout}} -> :with_draws
      {:error, %Timeout{}} -> :without_draws
      {:ok, fit} -> raise "a run without end has the status #{fit.status}"
      {:error, error} -> raise error
    end
  end

  defp consume(:wrong, place) do
    {kind, {:error, %error{}}} = wrong(place.pool)
    true = error in [InvalidData, InvalidModel, InvalidOption, WorkerExit]
    if error == WorkerExit, do: :given_up, else: kind
  end

  defp consume(:fixed, place) do
    {model, opts} = Models.fixed()
    credit = Enum.random([0, 1, 3, 64])
    fit = ok!(Nutkin.sample(model, [credit: credit, worker: place.pool] ++ opts))
    same!(Chunks.joined(Chunks.of_fit(fit)), place.fixed)
    :identical
  end

  defp wrong(pool) do
    {model, opts} = Models.fixed()
    data = opts[:data]

    Enum.random([
      {:data_of_other_length, &Nutkin.sample(model, [data: %{data | y: [1, 2, 3]}] ++ &1)},
      {:data_that_lack, &Nutkin.sample(model, [data: Map.delete(data, :y)] ++ &1)},
      {:data_that_are_none, &Nutkin.sample(model, [data: %{data | y: ["a"]}] ++ &1)},
      {:option, &Nutkin.sample(model, [data: data, init: %{theta: [1.0]}] ++ &1)},
      {:model, &Nutkin.sample(wrong_model(), &1)}
    ])
    |> then(fn {kind, ask} -> {kind, ask.(worker: pool)} end)
  end

  defp wrong_model do
    model do
      x <~ normal(0, 1, shape: {2})
      factor(:f, sum(x * stack([1, 2, 3])))
    end
  end

  defp ok!({:ok, result}), do: result
  defp ok!({:error, error}), do: raise(error)

  defp same!(draws, draws), do: :ok
  defp same!(_draws, _others), do: raise("draws that are to be the same are not")

  defp other(pool, worker) do
    workers = for %{pid: pid} <- ok!(Nutkin.info(pool)), pid != worker, do: pid
    Enum.random(workers)
  end

  defp read_slowly(run) do
    draws = next_draws(run)

    case Enum.random([:wait, :wait, :pause, :info, :checkpoint, :nothing]) do
      :wait -> Process.sleep(Enum.random(1..200))
      :pause -> pause(run)
      :info -> %{} = ok!(Run.info(run, @patience))
      :checkpoint -> %Checkpoint{} = ok!(Run.checkpoint(run, @patience))
      :nothing -> :ok
    end

    Run.ack(run)
    draws
  end

  defp pause(run) do
    Run.pause(run)
    Process.sleep(Enum.random(1..200))
    Run.resume(run)
  end

  defp next_draws(%{ref: ref} = run) do
    receive do
      {^ref, {:draws, draws}} -> draws
      {^ref, {:error, error}} -> raise error
      {^ref, {:done, done}} -> raise "a run without end has the status #{done.status}"
      {^ref, {name, _}} when name in [:compiling, :compiled, :progress, :resumed] -> next_draws(run)
    end
  end

  # Without the draws, which stay for whoever awaits the run; it may have none, and be at its end.
  defp wait_for_sampling(%{ref: ref}) do
    receive do
      {^ref, {:compiled, _}} -> :ok
      {^ref, {:error, error}} -> raise error
    end
  end
end
