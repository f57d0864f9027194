defmodule Nutkin.Fit do
  @moduledoc """
  What a run has drawn: the result of `Nutkin.sample/2`.

    * `:status` - `:complete`, or `:cancelled` or `:timeout`: then it holds the draws that there were
    * `:compiled` - what was compiled, see `t:Nutkin.Protocol.compiled/0`
    * `:chains` - one map a chain, with `:draws`, `:divergences`, `:step_size`, `:inverse_mass` (the diagonal) and
      `:gradients`, see `t:Nutkin.Protocol.done/0`; empty for a run that had to be left without its last word
    * `:seconds` - `:compile` and `:sample` (warmup and draws together, wall time), nil where it is not known
    * `:options` - the options of the run, with their defaults

  It prints as a table, of the first 30 rows; `summary/2` has all. Names are atoms or strings.

  The draws are kept in the binaries in which they came, and joined when they are asked for.
  """

  alias Nutkin.{Draws, Protocol, Summary, Tensor}

  @enforce_keys [:options]
  defstruct [
    :options,
    status: nil,
    compiled: nil,
    chains: [],
    seconds: %{compile: nil, sample: nil},
    draws: %{sample: %{}, warmup: %{}}
  ]

  @type status :: :complete | :cancelled | :timeout

  @type t :: %__MODULE__{
          options: Nutkin.Options.valid(),
          status: status() | nil,
          compiled: Protocol.compiled() | nil,
          chains: [map()],
          seconds: %{compile: number() | nil, sample: number() | nil},
          draws: %{Draws.phase() => %{non_neg_integer() => [Draws.t()]}}
        }

  @type name :: atom() | String.t()

  @doc false
  @spec new(Nutkin.Options.valid()) :: t()
  def new(options), do: %__MODULE__{options: options}

  # The chunks of a chain are kept latest first.
  @doc false
  @spec put(t(), Protocol.event()) :: t()
  def put(%__MODULE__{} = fit, {:compiled, compiled}) do
    %{fit | compiled: compiled, seconds: %{fit.seconds | compile: compiled.seconds}}
  end

  def put(fit, {:draws, %Draws{phase: phase, chain: chain} = draws}) do
    %{
      fit
      | draws:
          Map.update!(fit.draws, phase, &Map.update(&1, chain, [draws], fn chunks -> [draws | chunks] end))
    }
  end

  def put(fit, {:done, done}), do: %{fit | status: done.status, chains: done.chains, seconds: done.seconds}

  @doc """
  Whether there is no draw at all.
  """
  @spec empty?(t()) :: boolean()
  def empty?(fit), do: fit.draws == %{sample: %{}, warmup: %{}}

  @doc """
  The names of the variables that were drawn: parameters, then deterministic values, in the order of the model.
  """
  @spec names(t()) :: [String.t()]
  def names(%__MODULE__{compiled: nil}), do: []

  def names(%__MODULE__{compiled: compiled, options: options}) do
    names = Enum.map(compiled.parameters ++ compiled.deterministic, & &1.name)

    case options[:variables] do
      nil -> names
      wanted -> Enum.filter(names, &(&1 in wanted))
    end
  end

  @doc """
  The number of draws of each chain, after warmup. They differ only where the run did not complete.
  """
  @spec lengths(t()) :: [non_neg_integer()]
  def lengths(fit), do: lengths(fit, :sample)

  defp lengths(fit, phase) do
    for chain <- chains(fit), do: fit.draws[phase] |> Map.get(chain, []) |> Enum.map(& &1.count) |> Enum.sum()
  end

  defp chains(fit), do: Enum.to_list(0..(fit.options.chains - 1))

  @doc """
  The draws of a variable, of shape `{chains, draws, ...}`: an `Nx.Tensor` where Nx is loaded, else a `Nutkin.Tensor`.

  Chains of different lengths are cut to the shortest. The options:

    * `:phase` - `:sample` (the default) or `:warmup`, which is there with `keep_warmup: true`
    * `:chains` - a list of chains to take, all by default

  Raises `ArgumentError` for a name that was not drawn, and where there are no draws.
  """
  @spec draws(t(), name(), keyword()) :: Tensor.t() | struct()
  def draws(fit, name, opts \\ []), do: fit |> tensor(name, opts) |> for_user()

  @doc """
  A statistic of the sampler, of shape `{chains, draws}`: `lp`, `energy`, `diverging`, `tree_depth`, `n_steps`,
  `acceptance_rate` or `step_size`. The options and the result are those of `draws/3`.
  """
  @spec stats(t(), name(), keyword()) :: Tensor.t() | struct()
  def stats(fit, name, opts \\ []), do: fit |> join(:stats, to_string(name), opts) |> for_user()

  defp for_user(tensor), do: if(Code.ensure_loaded?(Nx), do: Tensor.to_nx(tensor), else: tensor)

  @doc """
  As `draws/3`, but always a `Nutkin.Tensor`.
  """
  @spec tensor(t(), name(), keyword()) :: Tensor.t()
  def tensor(fit, name, opts \\ []), do: join(fit, :variables, to_string(name), opts)

  defp join(fit, field, name, opts) do
    opts = Keyword.validate!(opts, phase: :sample, chains: chains(fit))
    chunks = Enum.map(opts[:chains], &chunks(fit, opts[:phase], &1))
    length = chunks |> Enum.map(fn chain -> chain |> Enum.map(& &1.count) |> Enum.sum() end) |> Enum.min()

    if length == 0 do
      raise ArgumentError,
            "no draws: the chains #{inspect(opts[:chains])} have #{inspect(lengths(fit, opts[:phase]))} draws in the " <>
              "phase #{inspect(opts[:phase])}"
    end

    chunks
    |> Enum.map(fn chain ->
      chain |> Enum.map(&fetch!(Map.fetch!(&1, field), name)) |> Tensor.concatenate()
    end)
    |> Enum.map(&Tensor.slice(&1, 0, length))
    |> Tensor.stack()
  end

  defp chunks(fit, phase, chain) do
    if chain not in chains(fit) do
      raise ArgumentError, "no chain #{inspect(chain)}: they are numbered from 0 to #{fit.options.chains - 1}"
    end

    fit.draws |> Map.fetch!(phase) |> Map.get(chain, []) |> Enum.reverse()
  end

  defp fetch!(tensors, name) do
    case tensors do
      %{^name => tensor} ->
        tensor

      _ ->
        raise ArgumentError, "nothing was drawn as #{name}: there are #{Enum.join(Map.keys(tensors), ", ")}"
    end
  end

  @doc """
  The number of divergent transitions after warmup, in all chains.
  """
  @spec divergences(t()) :: non_neg_integer()
  def divergences(fit) do
    fit.draws.sample
    |> Map.values()
    |> Enum.concat()
    |> Enum.map(fn draws -> draws.stats |> fetch!("diverging") |> Tensor.to_flat_list() |> Enum.sum() end)
    |> Enum.sum()
  end

  @doc """
  Means, quantiles and diagnostics of every scalar: a `Nutkin.Summary`, which prints as a table.

  The options are those of `Nutkin.Summary.new/2`.
  """
  @spec summary(t(), keyword()) :: Summary.t()
  def summary(fit, opts \\ []), do: Summary.new(fit, opts)

  defimpl Inspect do
    def inspect(fit, _opts), do: fit |> Nutkin.Summary.new(limit: 30) |> Nutkin.Summary.to_text("Nutkin.Fit")
  end
end
