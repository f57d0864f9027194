defmodule Nutkin.Progress do
  @moduledoc """
  How far one chain of a run is. Sent at most ten times a second for a run, and
  not sooner after the last one than after a hundredth of the time that it has taken.

    * `:chain` - the number of the chain, from 0
    * `:phase` - `:warmup` or `:sample`
    * `:iteration` - iterations done, of `:total` (warmup and draws together; it grows when the warmup takes
      longer than planned)
    * `:divergences` - divergent transitions of this phase so far. Those of the warmup are no reason for worry: there the
      step size is still sought
    * `:step_size` - the current step size
    * `:tree_depth` - the mean of the last chunk of iterations
    * `:gradients` - evaluations of the log density's gradient so far
    * `:draws` - draws kept so far in this phase
    * `:gradients_per_second` - of this chain, of late
    * `:seconds_left` - until it is finished, at that speed; nil while nothing is known

  A consumer that does not look at its messages gets few of them: in a run of an hour less than 700.
  """

  @enforce_keys [
    :chain,
    :phase,
    :iteration,
    :total,
    :divergences,
    :step_size,
    :tree_depth,
    :gradients,
    :draws,
    :gradients_per_second,
    :seconds_left
  ]
  defstruct @enforce_keys

  @type t :: %__MODULE__{
          chain: non_neg_integer(),
          phase: Nutkin.Draws.phase(),
          iteration: non_neg_integer(),
          total: non_neg_integer(),
          divergences: non_neg_integer(),
          step_size: number(),
          tree_depth: number(),
          gradients: non_neg_integer(),
          draws: non_neg_integer(),
          gradients_per_second: number(),
          seconds_left: number() | nil
        }
end
