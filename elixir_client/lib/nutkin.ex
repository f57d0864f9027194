defmodule Nutkin do
  # Of a run, whether it begins or goes on.
  @resuming ~w(more variables max_time target_ess max_rhat checkpoint_every resume credit worker)a

  @sampling [
    :data,
    :chains,
    :draws,
    :warmup,
    :adaptation,
    :seed,
    :target_accept,
    :max_tree_depth,
    :init,
    :mass_matrix,
    :thin,
    :keep_warmup,
    :precision,
    :rewrites | @resuming -- [:more]
  ]

  # Of functions that wait.
  @waiting [:timeout, :on_progress, :progress]

  @predicting [:data, :redraw, :variables, :seed, :precision, :resume, :credit, :worker, :timeout]
  @prior [:chains, :draws | @predicting -- [:redraw]]

  @moduledoc """
  Bayesian sampling for the BEAM: models in Elixir, NUTS draws from XLA.

  Workers own Python programs that compile and sample. Put a pool of them, of one by default, into your supervision tree:

      children = [
        {Nutkin, python: "/opt/nutkin/bin/python"}
      ]

  write a model (see `Nutkin.Model`), and sample:

      import Nutkin.Model

      schools =
        model do
          y = data(:y)
          sigma = data(:sigma)
          mu <~ normal(0, 5)
          tau <~ half_cauchy(5)
          theta <~ normal(mu, tau, shape: {8}, centered: false)
          observe(:obs, normal(theta, sigma), y)
        end

      data = %{y: [28, 8, -3, 7, -1, 1, 18, 12], sigma: [15, 10, 16, 11, 9, 11, 10, 18]}
      {:ok, fit} = Nutkin.sample(schools, data: data)
      Nutkin.Fit.draws(fit, :theta)

  Functions return `{:ok, result}` or `{:error, exception}`, see `t:Nutkin.Error.t/0`; their bang versions raise.
  A model is compiled once for the shapes of its data: new numbers of the same shapes compile nothing.
  """

  alias Nutkin.{
    Checkpoint,
    Data,
    Diagnosis,
    Error,
    Fit,
    Model,
    Options,
    Point,
    Prediction,
    Resolution,
    Run,
    Tensor,
    Worker
  }

  alias Nutkin.Worker.{Client, Request}

  @doc """
  Starts a pool of workers. The options:

  #{Nutkin.Worker.Options.docs()}

  It returns at once; requests wait until the program is ready. Where it cannot be started, requests are answered with
  a `Nutkin.Error.WorkerExit` that says why, and it is tried again after a while. A wrong option raises `ArgumentError`.
  """
  @spec start_link(keyword()) :: Supervisor.on_start()
  defdelegate start_link(opts \\ []), to: Nutkin.Supervisor

  @doc """
  The child specification of a pool, with the options of `start_link/1`.

      iex> Nutkin.child_spec(name: MyApp.Sampler).id
      MyApp.Sampler
  """
  @spec child_spec(keyword()) :: Supervisor.child_spec()
  defdelegate child_spec(opts), to: Nutkin.Supervisor

  @doc """
  Samples from the posterior of a model, and waits for it.

  Takes the options #{Enum.map_join(@sampling ++ @waiting, ", ", &"`#{inspect(&1)}`")} of `Nutkin.Options`.

  When `:timeout` milliseconds are over, the run is cancelled and what it has drawn is the result, with the status
  `:timeout`; without any draw it is a `Nutkin.Error.Timeout`. A compilation cannot be interrupted: after a timeout during
  one it goes on for ten seconds, so that whoever asks again may find it done; then, or as soon as another model needs
  the compiler, the program is replaced, and its other runs go on in the next one.

  When the program ends under a run, the run goes on with the next one, from its last checkpoint (see `:checkpoint_every`):
  no draw is missing, and none comes twice. `resume: false` makes it a `Nutkin.Error.WorkerExit` instead.

  The default of `:seed` is 0, so a run that is repeated gives the same draws; give another seed for others.
  """
  @spec sample(Model.t(), keyword()) :: {:ok, Fit.t()} | {:error, Error.t()}
  def sample(model, opts \\ []) do
    with {:ok, options} <- Options.validate(opts, @sampling ++ @waiting) do
      deadline = Client.deadline(options.timeout)
      with {:ok, run} <- start(model, options), do: Run.await(run, deadline, options.timeout)
    end
  end

  @doc """
  As `sample/2`, but returns the fit or raises the error.
  """
  @spec sample!(Model.t(), keyword()) :: Fit.t()
  def sample!(model, opts \\ []), do: bang!(sample(model, opts))

  @doc """
  The draws of a run as a lazy enumerable of chunks, each some draws of one chain: `Nutkin.Draws`, in the order in which
  they come.

  Sampling starts when it is enumerated, goes as far ahead as the option `:credit` says, and is cancelled when the
  enumeration stops early. Errors are raised in the process that enumerates; so is `Nutkin.Error.Timeout` when
  `:timeout` milliseconds are over. Takes the options of `sample/2` but `:on_progress` and `:progress`, and raises where they are wrong.

      model |> Nutkin.stream(data: data) |> Stream.map(&Nutkin.Draws.fetch!(&1, :mu)) |> Enum.take(10)
  """
  @spec stream(Model.t() | Checkpoint.t(), keyword()) :: Enumerable.t()
  def stream(model, opts \\ []) do
    options = bang!(options(model, opts, [:timeout]))
    Run.stream(fn -> start(model, options) end, options.timeout)
  end

  @doc """
  Starts a run whose events come to the calling process as messages, see `Nutkin.Run`.

  Takes the options of `sample/2` but `:timeout`, `:on_progress` and `:progress`; with a checkpoint in the place of the model, as
  `stream/2` too, those of `resume/2`.
  """
  @spec start_run(Model.t() | Checkpoint.t(), keyword()) :: {:ok, Run.t()} | {:error, Error.t()}
  def start_run(model, opts \\ []) do
    with {:ok, options} <- options(model, opts, []), do: start(model, options)
  end

  defp options(%Checkpoint{} = checkpoint, opts, others) do
    with {:ok, given} <- Options.validate(opts, @resuming ++ others),
         do: {:ok, Checkpoint.options(checkpoint, given, Keyword.keys(opts))}
  end

  defp options(_model, opts, others), do: Options.validate(opts, @sampling ++ others)

  defp start(%Checkpoint{} = checkpoint, options),
    do: Run.start(Checkpoint.request(checkpoint, options), options)

  defp start(model, options) do
    with {:ok, request} <- request(:sample, model, options), do: Run.start(request, options)
  end

  @doc """
  Goes on with a run from a checkpoint, or from the one in a fit, and waits for its end: with the draws that it had still to make,
  and `:more` of each chain beyond these. They are those that the run would have made if it had not ended, to the last
  bit.

  From a fit the result has its draws and the new ones; from a checkpoint those that come after it.

  Takes the options #{Enum.map_join(@resuming ++ @waiting, ", ", &"`#{inspect(&1)}`")} of `Nutkin.Options`.
  Of what ends a run early (`:max_time`, `:target_ess`, `:max_rhat`), only what is given here counts. What is not given otherwise is as
  it was. A checkpoint of other versions or another machine is a `Nutkin.Error.InvalidCheckpoint`.
  """
  @spec resume(Fit.t() | Checkpoint.t(), keyword()) :: {:ok, Fit.t()} | {:error, Error.t()}
  def resume(from, opts \\ [])

  def resume(%Fit{checkpoint: nil}, _opts) do
    {:error,
     Error.InvalidCheckpoint.exception(
       message: "the fit has no checkpoint",
       expected: "a fit of Nutkin.sample/2 whose run has said its last word"
     )}
  end

  def resume(%Fit{checkpoint: checkpoint} = fit, opts), do: resume(checkpoint, fit, opts)
  def resume(%Checkpoint{} = checkpoint, opts), do: resume(checkpoint, nil, opts)

  defp resume(checkpoint, fit, opts) do
    with {:ok, options} <- options(checkpoint, opts, @waiting) do
      deadline = Client.deadline(options.timeout)

      with {:ok, run} <- start(checkpoint, options),
           do: Run.await(run, deadline, options.timeout, fit && Fit.continued(fit, options))
    end
  end

  @doc """
  As `resume/2`, but returns the fit or raises the error.
  """
  @spec resume!(Fit.t() | Checkpoint.t(), keyword()) :: Fit.t()
  def resume!(from, opts \\ []), do: bang!(resume(from, opts))

  @doc """
  Waits for the end of a run that this process started, and collects its draws. Events that were received as messages
  before are not part of the fit; chunks that were not acknowledged do not hold it up.

  After `timeout` milliseconds it is cancelled, as by the option `:timeout` of `sample/2`, and has a second more to hand
  over what it has drawn. A run is awaited once: raises
  `ArgumentError` where it was closed, or its last event was received, before.
  """
  @spec await(Run.t(), timeout()) :: {:ok, Fit.t()} | {:error, Error.t()}
  def await(%Run{} = run, timeout \\ :infinity) do
    with {:ok, %{timeout: timeout}} <- Options.validate([timeout: timeout], [:timeout]) do
      Run.await(run, Client.deadline(timeout), timeout)
    end
  end

  @doc """
  Cancels a run, from any process. `await/2` then gives `{:ok, %Nutkin.Fit{status: :cancelled}}`, with what was drawn; with
  `:drop` it gives a `Nutkin.Error.Cancelled`.
  """
  @spec cancel(Run.t(), :keep | :drop) :: :ok
  defdelegate cancel(run, draws \\ :keep), to: Run

  @doc """
  Compiles a model for the shapes of the data, so that the first run need not, and says what it is:
  its parameters with their shapes, the dimension, what was rewritten, the seconds; see
  `t:Nutkin.Protocol.compiled/0`.

  Takes the options `:data`, `:precision`, `:max_tree_depth`, `:mass_matrix`, `:rewrites`, `:timeout` and `:worker` of `Nutkin.Options`.
  """
  @spec compile(Model.t(), keyword()) :: {:ok, Nutkin.Protocol.compiled()} | {:error, Error.t()}
  def compile(model, opts \\ []) do
    allowed = [:data, :precision, :max_tree_depth, :mass_matrix, :rewrites, :timeout, :worker]

    with {:ok, options} <- Options.validate(opts, allowed),
         {:ok, request} <- request(:compile, model, options),
         {:compiled, compiled} <- Client.call(options.worker, request, options.timeout) do
      {:ok, compiled}
    end
  end

  @doc """
  As `compile/2`, but raises the error.
  """
  @spec compile!(Model.t(), keyword()) :: Nutkin.Protocol.compiled()
  def compile!(model, opts \\ []), do: bang!(compile(model, opts))

  @doc """
  The log density of a model and its gradient at a point: on the unconstrained scale, so with the log-Jacobians of the
  transforms.

  The point is a list or tensor of all unconstrained coordinates, or a map (or keyword list) with the constrained value
  of every parameter. The result has `:value` (a float, or `:nan`, `:infinity`, `:neg_infinity`), `:gradient` and
  `:position` (flat tensors). Takes the options `:data`, `:precision`, `:timeout` and `:worker` of `Nutkin.Options`.
  """
  @spec log_density(Model.t(), Tensor.source() | map() | keyword(), keyword()) ::
          {:ok, %{value: Tensor.Type.element(), gradient: Tensor.t(), position: Tensor.t()}}
          | {:error, Error.t()}
  def log_density(model, point, opts \\ []) do
    with {:ok, options} <- Options.validate(opts, [:data, :precision, :timeout, :worker]),
         {:ok, point} <- Point.encode(point),
         {:ok, request} <- request(:log_density, model, options, point),
         {:value, value} <- Client.call(options.worker, request, options.timeout) do
      {:ok, value}
    end
  end

  @doc """
  As `log_density/3`, but raises the error.
  """
  @spec log_density!(Model.t(), Tensor.source() | map() | keyword(), keyword()) :: map()
  def log_density!(model, point, opts \\ []), do: bang!(log_density(model, point, opts))

  @doc """
  Says why a model does not work at a point: runs it as it is written, operation by operation, and gives the first node
  that is NaN or infinite, with what went into it. See `Nutkin.Diagnosis`.

  The point and the options are those of `log_density/3`. A run that finds no starting point does the same by itself, at
  points that it tried: its `Nutkin.Error.InitFailed` is the report.

      import Nutkin.Model

      growth =
        model do
          y = data(:y)
          rate <~ normal(0, 1)
          observe(:obs, normal(0, sqrt(rate * y)), y)
        end

      IO.puts(Nutkin.debug!(growth, [rate: -0.5], data: %{y: [1.0, 2.0]}))

  prints

      sqrt(multiply(rate, y)) is NaN at [0], and with it obs
        multiply(rate, y) = f64 {2}, -0.5 at [0], from -1 to -0.5
      at rate = -0.5
      the root needs a number of at least 0: see that its operand cannot become negative
  """
  @spec debug(Model.t(), Tensor.source() | map() | keyword(), keyword()) ::
          {:ok, Diagnosis.t()} | {:error, Error.t()}
  def debug(model, point, opts \\ []) do
    with {:ok, options} <- Options.validate(opts, [:data, :precision, :timeout, :worker]),
         {:ok, point} <- Point.encode(point),
         {:ok, request} <- request(:debug, model, options, point),
         {:diagnosis, diagnosis} <- Client.call(options.worker, request, options.timeout) do
      {:ok, diagnosis}
    end
  end

  @doc """
  As `debug/3`, but raises the error.
  """
  @spec debug!(Model.t(), Tensor.source() | map() | keyword(), keyword()) :: Diagnosis.t()
  def debug!(model, point, opts \\ []), do: bang!(debug(model, point, opts))

  @doc """
  Random values of what a model predicts: for each draw of the parameters, a value of every observation from its
  distribution, and every deterministic value.

  The draws are those of a fit, a map of tensors `{chains, draws, ...}` by the names of the parameters, or `:prior` for
  random values of all parameters from their distributions, which are then part of the result.

  Data are those to predict for, of any length: slots that hold observed values only may be left out, and an observation
  then has the shape to which the parameters of its distribution broadcast. Weights and masks have no part in it. Counts
  are integers. The result is a `Nutkin.Fit`, without statistics of a sampler:

      new = %{x: [70.0, 80.0, 90.0]}
      {:ok, predicted} = Nutkin.predict(model, fit, data: new)
      Nutkin.Fit.draws(predicted, :obs)

  Takes the options #{Enum.map_join(@predicting, ", ", &"`#{inspect(&1)}`")} of `Nutkin.Options`, and for `:prior`
  `:chains` and `:draws` instead of `:redraw`. Random values follow from the seed and the place of a draw and of a node;
  with the same seed as the fit they are independent of it.
  """
  @spec predict(Model.t(), Prediction.source(), keyword()) :: {:ok, Fit.t()} | {:error, Error.t()}
  def predict(model, draws, opts \\ []), do: predicted(model, draws, :predictions, opts)

  @doc """
  As `predict/3`, but returns the predictions or raises the error.
  """
  @spec predict!(Model.t(), Prediction.source(), keyword()) :: Fit.t()
  def predict!(model, draws, opts \\ []), do: bang!(predict(model, draws, opts))

  @doc """
  The predictions of `predict/3` as a lazy enumerable of chunks, as `stream/2` has them: for more than fits into memory.
  """
  @spec stream_predictions(Model.t(), Prediction.source(), keyword()) :: Enumerable.t()
  def stream_predictions(model, draws, opts \\ []) do
    options = bang!(Options.validate(opts, prediction_options(draws)))
    Run.stream(fn -> start_prediction(model, draws, :predictions, options) end, options.timeout)
  end

  @doc """
  The log likelihood of each observed value, weighted and masked as in the model, for each draw of the parameters: what
  cross-validation and information criteria are computed from.

  A `Nutkin.Fit` with a variable for each observation, of the shape of its values without the axes of vectors and
  matrices. The draws and the options are those of `predict/3`.
  """
  @spec log_likelihood(Model.t(), Prediction.source(), keyword()) :: {:ok, Fit.t()} | {:error, Error.t()}
  def log_likelihood(model, draws, opts \\ []), do: predicted(model, draws, :log_likelihood, opts)

  @doc """
  As `log_likelihood/3`, but raises the error.
  """
  @spec log_likelihood!(Model.t(), Prediction.source(), keyword()) :: Fit.t()
  def log_likelihood!(model, draws, opts \\ []), do: bang!(log_likelihood(model, draws, opts))

  defp predicted(model, draws, of, opts) do
    with {:ok, options} <- Options.validate(opts, prediction_options(draws)) do
      deadline = Client.deadline(options.timeout)

      with {:ok, run} <- start_prediction(model, draws, of, options),
           do: Run.await(run, deadline, options.timeout)
    end
  end

  defp prediction_options(:prior), do: @prior
  defp prediction_options(_draws), do: @predicting

  defp start_prediction(model, draws, of, options) do
    with :ok <- check_model(model),
         {:ok, request, options} <- Prediction.request(model, draws, of, options),
         do: Run.start(request, options)
  end

  @doc """
  Asks the program of a worker how it is: `:requests` open, `:blobs` kept (`:count` and `:bytes`), `:resident` bytes
  of memory, `:compilations` and `:seconds` since its start, and the `:devices` of XLA.
  """
  @spec ping(Worker.t(), timeout()) :: {:ok, map()} | {:error, Error.t()}
  def ping(worker \\ __MODULE__, timeout \\ 60_000) do
    with {:ok, %{timeout: timeout}} <- Options.validate([timeout: timeout], [:timeout]),
         {:pong, pong} <- Client.call(worker, Request.new(:ping, %{}), timeout) do
      {:ok, pong}
    end
  end

  @doc """
  The states of the workers of a pool, each a map: the `:pid` of the worker, its `:phase` (`:starting`, `:ready` or `:down`),
  the `:os_pid` of its program, the `:error` that keeps it down, how many `:requests` it has, how many `:seconds` the program has
  run, its `:resident` bytes at the last heartbeat (nil before), and, once it is ready, the `:versions` and
  `:limits` that it reports. A `Nutkin.Error.Timeout` if a worker is too busy to answer.
  """
  @spec info(Worker.t()) :: {:ok, [map()]} | {:error, Error.t()}
  def info(worker \\ __MODULE__), do: Client.info(worker)

  defp request(type, model, options, point \\ %{}) do
    with :ok <- check_model(model),
         {:ok, data} <- Data.encode(model, options.data),
         {:ok, model, data} <- Resolution.resolve(model, data, options) do
      body = %{model: Model.to_ir(model), data: data.addresses, options: Options.to_wire(options)}
      {:ok, new_request(type, Map.merge(body, point), data.blobs, options)}
    end
  end

  defp new_request(:sample, body, blobs, options), do: Request.new_run(:sample, body, blobs, options)
  defp new_request(type, body, blobs, _options), do: Request.new(type, body, blobs)

  defp check_model(%Model{}), do: :ok

  defp check_model(other) do
    found = inspect(other, limit: 5, printable_limit: 100)
    {:error, Error.InvalidModel.exception(message: "not a model", expected: "a Nutkin.Model", found: found)}
  end

  defp bang!({:ok, result}), do: result
  defp bang!({:error, error}), do: raise(error)
end
