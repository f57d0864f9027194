defmodule Nutkin.Draws do
  @moduledoc """
  A chunk: some successive draws of one chain, as a run sends them.

    * `:chain` - the number of the chain, from 0
    * `:phase` - `:warmup` (with `keep_warmup: true` only) or `:sample`
    * `:start` - the index of the first draw in its phase
    * `:count` - how many draws
    * `:variables` - by name, a `Nutkin.Tensor` of shape `{count, ...}` for each parameter and deterministic value
    * `:stats` - by name, a `Nutkin.Tensor` of shape `{count}`: `"lp"`, `"energy"`, `"diverging"`, `"tree_depth"`,
      `"n_steps"`, `"acceptance_rate"`, `"step_size"`

  The names are strings; `fetch!/2` and `stat!/2` take atoms too, and say so where there is no such name.
  """

  alias Nutkin.Tensor

  @enforce_keys [:chain, :phase, :start, :count, :variables, :stats]
  defstruct @enforce_keys

  @type phase :: :warmup | :sample

  @type t :: %__MODULE__{
          chain: non_neg_integer(),
          phase: phase(),
          start: non_neg_integer(),
          count: pos_integer(),
          variables: %{String.t() => Nutkin.Tensor.t()},
          stats: %{String.t() => Nutkin.Tensor.t()}
        }

  @doc """
  The draws of a variable, of shape `{count, ...}`: an `Nx.Tensor` where Nx is loaded, else a `Nutkin.Tensor`.

  Raises `ArgumentError` for a name that is not among them.

      model |> Nutkin.stream(data: data) |> Enum.map(&Nutkin.Draws.fetch!(&1, :mu))
  """
  @spec fetch!(t(), atom() | String.t()) :: Tensor.t() | struct()
  def fetch!(%__MODULE__{} = draws, name), do: draws |> tensor!(:variables, name) |> for_user()

  @doc """
  A statistic of the sampler, such as `:lp` or `:diverging`, of shape `{count}`: as `fetch!/2`.
  """
  @spec stat!(t(), atom() | String.t()) :: Tensor.t() | struct()
  def stat!(%__MODULE__{} = draws, name), do: draws |> tensor!(:stats, name) |> for_user()

  @doc false
  @spec tensor!(t(), :variables | :stats, atom() | String.t()) :: Tensor.t()
  def tensor!(draws, field, name) do
    tensors = Map.fetch!(draws, field)

    case Map.fetch(tensors, to_string(name)) do
      {:ok, tensor} ->
        tensor

      :error ->
        names = tensors |> Map.keys() |> Enum.join(", ")
        raise ArgumentError, "nothing was drawn as #{name}: there are #{names}"
    end
  end

  @doc false
  @spec for_user(Tensor.t()) :: Tensor.t() | struct()
  def for_user(tensor), do: if(Code.ensure_loaded?(Nx), do: Tensor.to_nx(tensor), else: tensor)
end
