defmodule Nutkin.Options.Unknown do
  @moduledoc false
  # What to do about an option that a function does not have.

  alias Nutkin.Error.Suggestion

  # What other samplers call them.
  @synonyms %{
    tune: :warmup,
    num_warmup: :warmup,
    iter_warmup: :warmup,
    burn_in: :warmup,
    iter: :draws,
    samples: :draws,
    num_samples: :draws,
    iter_sampling: :draws,
    num_chains: :chains,
    random_seed: :seed,
    adapt_delta: :target_accept,
    target_accept_prob: :target_accept,
    max_treedepth: :max_tree_depth,
    initvals: :init,
    inits: :init
  }

  @doc "A hint about `name`, which is not among the `allowed` options of a function; `names` are those of all functions."
  @spec hint(atom(), [atom()], [atom()]) :: String.t() | nil
  def hint(name, allowed, names) do
    synonym = @synonyms[name]

    cond do
      synonym in allowed -> "it is called #{inspect(synonym)} here"
      name == :timeout -> "Nutkin.await/2 takes a timeout for a run"
      name in names -> "it is an option of other functions only"
      hint = Suggestion.closest(name, allowed) -> hint
      :data in allowed -> "values of data slots belong into :data, as in data: %{#{name}: ...}"
      true -> nil
    end
  end
end
