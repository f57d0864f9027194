defmodule Nutkin.Fit do
  @moduledoc """
  What a run has drawn: the result of `Nutkin.sample/2`, and of `Nutkin.predict/3`, which has no statistics, and no `:chains`.

    * `:status` - `:complete`; `:converged`, where `:target_ess` or `:max_rhat` was reached before; or `:max_time`, `:cancelled` or
      `:timeout`: then it holds the draws that there were
    * `:checkpoint` - from which `Nutkin.resume/2` goes on; nil for predictions, and for a run that had to be left without its last word
    * `:resumed` - how often the run went on with another program because the one before it had ended
    * `:compiled` - what was compiled, see `t:Nutkin.Protocol.compiled/0`
    * `:chains` - one map a chain, with `:draws`, `:warmup` (the iterations it took), `:divergences`, `:step_size`,
      `:inverse_mass` (the diagonal) and `:gradients`, see `t:Nutkin.Protocol.done/0`; empty for a run that had to be left without its last word
    * `:seconds` - wall time of `:compile`, of `:warmup`, until the last chain had ended it, and of `:sample` since then;
      nil where it is not known
    * `:pilot` - nil, or of a model with `centered: :auto` what was before the run: the `:centering` of each such parameter, a
      `Nutkin.Tensor` of its shape with 0 where it was not centered and 1 where it was, the `:gradients` and `:seconds` spent
    * `:options` - the options of sampling, with their defaults

  It prints as a table of at most 30 rows, and fewer where there are very many draws; `summary/2` has all. Names are atoms
  or strings.

  The draws are kept in the binaries in which they came, and joined when they are asked for.
  """

  alias Nutkin.{Draws, Protocol, Summary, Tensor}

  @enforce_keys [:options]
  defstruct [
    :options,
    status: nil,
    checkpoint: nil,
    resumed: 0,
    compiled: nil,
    chains: [],
    pilot: nil,
    seconds: %{compile: nil, warmup: nil, sample: nil},
    draws: %{sample: %{}, warmup: %{}}
  ]

  @type status :: :complete | :converged | :max_time | :cancelled | :timeout

  @type t :: %__MODULE__{
          options: Nutkin.Options.valid(),
          status: status() | nil,
          checkpoint: Nutkin.Checkpoint.t() | nil,
          resumed: non_neg_integer(),
          compiled: Protocol.compiled() | nil,
          chains: [map()],
          pilot: map() | nil,
          seconds: %{compile: number() | nil, warmup: number() | nil, sample: number() | nil},
          draws: %{Draws.phase() => %{non_neg_integer() => [Draws.t()]}}
        }

  @type name :: atom() | String.t()

  # What says how a run is handed over, not what is drawn. Data can be large, and a closure cannot be stored.
  @not_kept [:data, :worker, :on_progress, :progress, :timeout, :more]

  @doc false
  @spec new(Nutkin.Options.valid()) :: t()
  def new(options), do: %__MODULE__{options: Map.drop(options, @not_kept)}

  @doc false
  # The fit to which the draws of a run that goes on from its checkpoint are added.
  @spec continued(t(), Nutkin.Options.valid()) :: t()
  def continued(fit, options), do: %{fit | options: Map.drop(options, @not_kept), status: nil}

  # The chunks of a chain are kept latest first.
  @doc false
  @spec put(t(), Protocol.event()) :: t()
  def put(%__MODULE__{} = fit, {:compiling, _}), do: %{fit | status: :compiling}

  def put(fit, {:compiled, compiled}) do
    %{fit | status: nil, compiled: compiled, seconds: %{fit.seconds | compile: compiled.seconds}}
  end

  def put(fit, {:draws, %Draws{phase: phase, chain: chain} = draws}) do
    %{
      fit
      | draws:
          Map.update!(fit.draws, phase, &Map.update(&1, chain, [draws], fn chunks -> [draws | chunks] end))
    }
  end

  def put(fit, {:resumed, _error}), do: %{fit | resumed: fit.resumed + 1}

  def put(fit, {:done, done}) do
    struct!(fit, Map.take(done, [:status, :checkpoint, :chains, :pilot, :seconds]))
  end

  @doc """
  Whether there is no draw at all.
  """
  @spec empty?(t()) :: boolean()
  def empty?(%__MODULE__{} = fit), do: fit.draws == %{sample: %{}, warmup: %{}}

  @doc """
  The names of the variables that were drawn: parameters, then deterministic values, in the order of the model.
  """
  @spec names(t()) :: [String.t()]
  # The event was received by someone else: what was drawn says it too, but for the order.
  def names(%__MODULE__{compiled: nil} = fit) do
    case any_chunk(fit) do
      nil -> []
      draws -> draws.variables |> Map.keys() |> Enum.sort()
    end
  end

  def names(%__MODULE__{compiled: compiled, options: options}) do
    names = Enum.map(compiled.parameters ++ compiled.deterministic ++ compiled.predicted, & &1.name)

    case options[:variables] do
      nil -> names
      wanted -> Enum.filter(names, &(&1 in wanted))
    end
  end

  defp any_chunk(fit) do
    fit.draws |> Map.values() |> Enum.flat_map(&Map.values/1) |> Enum.map(&hd/1) |> List.first()
  end

  @doc """
  The number of draws of each chain, after warmup. They differ only where the run did not complete.
  """
  @spec lengths(t()) :: [non_neg_integer()]
  def lengths(%__MODULE__{} = fit),
    do: for(chain <- chains(fit), do: fit.draws.sample |> Map.get(chain, []) |> count())

  defp count(chunks), do: chunks |> Enum.map(& &1.count) |> Enum.sum()

  defp chains(fit), do: Enum.to_list(0..(fit.options.chains - 1))

  @doc """
  The draws of a variable, of shape `{chains, draws, ...}`: an `Nx.Tensor` where Nx is loaded, else a `Nutkin.Tensor`.

  Chains of different lengths are cut to the shortest. The options:

    * `:phase` - `:sample` (the default) or `:warmup`, which is there with `keep_warmup: true`
    * `:chains` - a list of chains to take, all by default

  Raises `ArgumentError` for a name that was not drawn, and where there are no draws.
  """
  @spec draws(t(), name(), keyword()) :: Tensor.t() | struct()
  def draws(%__MODULE__{} = fit, name, opts \\ []), do: fit |> tensor(name, opts) |> Draws.for_user()

  @doc """
  A statistic of the sampler, of shape `{chains, draws}`: `lp`, `energy`, `diverging`, `tree_depth`, `n_steps`,
  `acceptance_rate` or `step_size`. The options and the result are those of `draws/3`.
  """
  @spec stats(t(), name(), keyword()) :: Tensor.t() | struct()
  def stats(%__MODULE__{} = fit, name, opts \\ []), do: fit |> join(:stats, name, opts) |> Draws.for_user()

  @doc """
  As `draws/3`, but always a `Nutkin.Tensor`.
  """
  @spec tensor(t(), name(), keyword()) :: Tensor.t()
  def tensor(%__MODULE__{} = fit, name, opts \\ []), do: join(fit, :variables, name, opts)

  defp join(fit, field, name, opts) do
    opts = Keyword.validate!(opts, phase: :sample, chains: chains(fit))
    phase = check_phase!(opts[:phase])
    chosen = check_chains!(fit, opts[:chains])
    chunks = Enum.map(chosen, &chunks(fit, phase, &1))
    length = chunks |> Enum.map(&count/1) |> Enum.min()

    if length == 0 do
      raise ArgumentError,
            "no draws: the chains #{inspect(chosen)} have #{inspect(Enum.map(chunks, &count/1))} draws in the " <>
              "phase #{inspect(phase)}" <>
              if(phase == :warmup and not fit.options.keep_warmup,
                do: "; keep_warmup: true keeps them",
                else: ""
              )
    end

    chunks
    |> Enum.map(fn chain -> chain |> Enum.map(&Draws.tensor!(&1, field, name)) |> Tensor.concatenate() end)
    |> Enum.map(&Tensor.slice(&1, 0, length))
    |> Tensor.stack()
  end

  defp check_phase!(phase) when phase in [:sample, :warmup], do: phase

  defp check_phase!(other) do
    raise ArgumentError, "expected phase: to be :sample or :warmup, found: #{inspect(other)}"
  end

  defp check_chains!(fit, chosen) do
    unless is_list(chosen) and chosen != [] do
      raise ArgumentError, "expected chains: to be a list of chains, such as [0], found: #{inspect(chosen)}"
    end

    for chain <- chosen, chain not in chains(fit) do
      raise ArgumentError, "no chain #{inspect(chain)}: they are numbered from 0 to #{fit.options.chains - 1}"
    end

    chosen
  end

  defp chunks(fit, phase, chain), do: fit.draws |> Map.fetch!(phase) |> Map.get(chain, []) |> Enum.reverse()

  @doc false
  # Type and shape of one draw of a variable.
  @spec form(t(), name()) :: {Tensor.Type.t(), tuple()}
  def form(fit, name) do
    %Tensor{type: type, shape: shape} = fit |> any_chunk() |> Draws.tensor!(:variables, name)
    {type, Tuple.delete_at(shape, 0)}
  end

  @doc false
  # The draws of one scalar, the element at `place` of a variable, in each chain, cut to the shortest: only their bytes, so
  # that a large variable is not joined and read as a whole for each of its elements.
  @spec column(t(), name(), non_neg_integer()) :: [binary()]
  def column(fit, name, place) do
    {type, shape} = form(fit, name)
    size = Tensor.Type.byte_size(type, 1)
    length = size * Enum.min(lengths(fit))
    before = place * size
    behind = size * Tuple.product(shape) - before - size

    for chain <- chains(fit) do
      column =
        for chunk <- chunks(fit, :sample, chain),
            tensor = Draws.tensor!(chunk, :variables, name),
            <<_::binary-size(before), element::binary-size(size), _::binary-size(behind) <- tensor.data>>,
            into: <<>>,
            do: element

      binary_part(column, 0, length)
    end
  end

  @doc """
  The number of divergent transitions after warmup, in all chains.
  """
  @spec divergences(t()) :: non_neg_integer()
  def divergences(%__MODULE__{} = fit) do
    for chunks <- Map.values(fit.draws.sample), chunk <- chunks, reduce: 0 do
      count -> count + divergent(chunk.stats)
    end
  end

  @doc false
  # The chains of which every draw ends a divergent transition.
  @spec lost_chains(t()) :: [non_neg_integer()]
  def lost_chains(%__MODULE__{} = fit) do
    for {chain, chunks} <- Enum.sort(fit.draws.sample),
        Enum.all?(chunks, &(divergent(&1.stats) == &1.count)),
        do: chain
  end

  # Of type u8, and 1 or 0. Predictions have no statistics.
  defp divergent(%{"diverging" => diverging}), do: length(:binary.matches(diverging.data, <<1>>))
  defp divergent(_stats), do: 0

  @doc """
  Means, quantiles and diagnostics of every scalar: a `Nutkin.Summary`, which prints as a table.

  The options are those of `Nutkin.Summary.new/2`.
  """
  @spec summary(t(), keyword()) :: Summary.t()
  def summary(%__MODULE__{} = fit, opts \\ []), do: Summary.new(fit, opts)

  defimpl Inspect do
    def inspect(fit, opts), do: Nutkin.Summary.brief(fit, opts.limit)
  end
end
