defmodule Nutkin.Exmc do
  @moduledoc """
  Models that were written for eXMC, sampled by a worker.

      {trace, stats} = Exmc.NUTS.Sampler.sample(ir, init, num_samples: 2000)

  becomes

      {trace, stats} = Nutkin.Exmc.sample(ir, init, num_samples: 2000)

  The model is the `Exmc.IR` that `Exmc.Builder` makes; of eXMC nothing is called, and neither it nor EXLA need be there.
  Nx is needed where a distribution is a function over Nx, as `Exmc.Dist.Custom` has one. `docs/exmc.md` tells what is the
  same, and what is not.

  A model is translated to a `Nutkin.Model` and its data, by `model/2`, with which everything else of Nutkin works too. Observed
  values that have axes, and what `Exmc.Builder.data` was given, are data: others of the same shapes compile nothing anew.

  Errors are raised, as eXMC raises them: those of `Nutkin.Error`, with the id of the node in `:node`.

  ## Options

    * `:num_warmup` - the most iterations of warmup, 1000 by default; it ends before where all is well
    * `:num_samples` - draws a chain, 1000 by default
    * `:max_tree_depth` - 10 by default
    * `:target_accept` - 0.8 by default
    * `:seed` - 0 by default. The draws are not those that eXMC has for a seed
    * `:dense_mass` - whether the mass matrix is dense, false by default
    * `:ncp` - how a free `Normal` is sampled whose `mu` and `sigma` are variables: `true`, the default, not centered, `false`
      centered, `:auto` as a pilot run finds better, which is the safe choice; it also decides where only `sigma` is a variable
    * `:init_values` - as the argument `init` where there is one: the constrained values of some or all variables, by their ids.
      `sample_chains/3` also takes a list of these, one for each chain
    * `:worker` - the worker, `Nutkin` by default
    * `:timeout` - milliseconds, `:infinity` by default. What was drawn until then is the result

  #{Enum.map_join(Nutkin.Exmc.Options.without_meaning(), ", ", &"`#{inspect(&1)}`")} are accepted, and change nothing. Other options are
  an error.

  ## Results

  A trace is a map of the free variables by their ids: tensors of type f64 and of shape `{num_samples, ...}`, of Nx where Nx is loaded,
  else `Nutkin.Tensor`. The statistics of a chain are a map with

    * `:step_size`, and `:inv_mass_diag` of shape `{d}`, in the order of the ids
    * `:divergences` - after warmup
    * `:num_warmup`, `:num_samples`
    * `:sample_stats` - for each draw a map with `:tree_depth`, `:n_steps`, `:divergent`, `:accept_prob`, `:energy` and `:recovered`,
      which is false
    * `:recoveries` - 0
    * `:warnings` - where eXMC computes something else than the model says, and Nutkin does not; they are logged too
  """

  require Logger

  alias Nutkin.{Error, Fit, Model}
  alias Nutkin.Exmc.{Differences, Graph, Options, Trace, Translation}

  @typedoc "An `Exmc.IR`."
  @type ir :: struct()
  @type trace :: %{String.t() => Nutkin.Tensor.t() | struct()}
  @type stats :: %{atom() => term()}

  @doc """
  The model as one of Nutkin, and its data: `Nutkin.sample/2` and all other functions take them, and the model prints in
  Nutkin's language.

      {model, data} = Nutkin.Exmc.model(ir)
      {:ok, fit} = Nutkin.sample(model, data: data)

  The slot of an observed value has the id of the observed variable, or of the observation and `_value` where that variable is observed
  several times. Option: `:ncp`. Raises `Nutkin.Error.InvalidModel`.
  """
  @spec model(ir(), keyword()) :: {Model.t(), %{String.t() => term()}}
  def model(ir, opts \\ []) do
    options = Options.validate!(opts)
    ir |> Graph.read!() |> Translation.model(options.ncp)
  end

  @doc """
  Where eXMC computes something else than the model says, and Nutkin does not, in words.
  """
  @spec warnings(ir()) :: [String.t()]
  def warnings(ir), do: ir |> Graph.read!() |> Differences.warnings()

  @doc """
  Samples one chain, from values of some or all variables, and waits for it.
  """
  @spec sample(ir(), map(), keyword()) :: {trace(), stats()}
  def sample(ir, init \\ %{}, opts \\ []) do
    options = Options.validate!(opts)
    {[trace], [stats]} = run(ir, start(init, options), 1, options)
    {trace, stats}
  end

  @doc """
  Samples several chains, which learn their warmup from each other. Returns their traces, and their statistics.

  Where `:init_values` is a list, each chain starts at its own values, with a seed of its own, and learns alone.
  """
  @spec sample_chains(ir(), pos_integer(), keyword()) :: {[trace()], [stats()]}
  def sample_chains(ir, chains, opts \\ []) do
    options = Options.validate!(opts)

    case options.init_values do
      values when is_list(values) -> each_alone(ir, chains, values, options)
      init -> run(ir, init, chains, options)
    end
  end

  defp each_alone(ir, chains, values, options) do
    if length(values) != chains do
      raise Error.InvalidOption,
        message: "invalid value of option :init_values",
        path: "init_values",
        expected: "a map, or a list of #{chains} maps, one for each chain",
        found: "a list of #{length(values)}"
    end

    {traces, stats} =
      for {init, chain} <- Enum.with_index(values) do
        {[trace], [stats]} = run(ir, init, 1, %{options | seed: options.seed + chain})
        {trace, stats}
      end
      |> Enum.unzip()

    {traces, stats}
  end

  @doc """
  Samples one chain and sends its draws to a process while they come: `{:exmc_sample, i, point_map, step_stat}` with i from 1,
  the values of a draw by id, and its statistics; at the end `{:exmc_done, num_samples}`. Returns `:ok` then.

  Raises `Nutkin.Error.Timeout` when the time is up before.

  The messages do not say of which run they are, and wait for nobody: `Nutkin.start_run/2` has others that do.
  """
  @spec sample_stream(ir(), pid(), map(), keyword()) :: :ok
  def sample_stream(ir, pid, init \\ %{}, opts \\ []) when is_pid(pid) do
    options = Options.validate!(opts)
    {{model, data}, ids, _warnings} = prepared(ir, options)
    opts = [chains: 1, data: data] ++ Options.sampling(options, start(init, options), ids)

    if ids != [] do
      raising_as_exmc(fn -> model |> Nutkin.stream(opts) |> Enum.each(&send_draws(&1, ids, pid)) end)
    end

    send(pid, {:exmc_done, options.num_samples})
    :ok
  end

  defp send_draws(draws, ids, pid) do
    for {{point, step}, place} <-
          draws
          |> Trace.points(ids)
          |> Enum.zip(Trace.step_stats(draws))
          |> Enum.with_index(draws.start + 1),
        do: send(pid, {:exmc_sample, place, point, step})
  end

  defp start(init, options) when init in [nil, %{}], do: options.init_values
  defp start(init, _options), do: init

  defp run(ir, init, chains, options) do
    {{model, data}, ids, warnings} = prepared(ir, options)
    opts = [chains: chains, data: data] ++ Options.sampling(options, init, ids)

    if ids == [] do
      {List.duplicate(%{}, chains), List.duplicate(Trace.empty_stats(options, warnings), chains)}
    else
      fit = raising_as_exmc(fn -> Nutkin.sample!(model, opts) end)
      collected(fit, ids, options, warnings)
    end
  end

  defp collected(%Fit{} = fit, ids, options, warnings) do
    for chain <- 0..(fit.options.chains - 1) do
      {Trace.draws(fit, chain, ids), Trace.stats(fit, chain, options, warnings)}
    end
    |> Enum.unzip()
  end

  defp prepared(ir, options) do
    graph = Graph.read!(ir)
    warnings = Differences.warnings(graph)
    Enum.each(warnings, &Logger.warning/1)
    {Translation.model(graph, options.ncp), graph.free |> Enum.map(& &1.id) |> Enum.sort(), warnings}
  end

  defp raising_as_exmc(fun) do
    fun.()
  rescue
    error in Error.InvalidOption -> reraise Options.renamed(error), __STACKTRACE__
  end
end
