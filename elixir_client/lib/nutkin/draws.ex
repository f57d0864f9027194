defmodule Nutkin.Draws do
  @moduledoc """
  A chunk of the draws of one chain, as a run sends them.

    * `:chain` - the number of the chain, from 0
    * `:phase` - `:warmup` (with `keep_warmup: true` only) or `:sample`
    * `:start` - the index of the first draw in its phase
    * `:count` - how many draws
    * `:variables` - by name, a `Nutkin.Tensor` of shape `{count, ...}` for each parameter and deterministic value
    * `:stats` - by name, a `Nutkin.Tensor` of shape `{count}`: `"lp"`, `"energy"`, `"diverging"`, `"tree_depth"`,
      `"n_steps"`, `"acceptance_rate"`, `"step_size"`
  """

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
end
