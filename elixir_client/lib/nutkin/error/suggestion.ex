defmodule Nutkin.Error.Suggestion do
  @moduledoc false
  # The hint of an error about an unknown name: the known name that it is most like.

  @doc """
  The hint, or nil where no known name is like the one given.

      iex> Nutkin.Error.Suggestion.closest(:weights, [:weight, :mask])
      "did you mean :weight?"
      iex> Nutkin.Error.Suggestion.closest(:zzz, [:weight, :mask])
      nil
  """
  @spec closest(atom() | String.t(), [atom()]) :: String.t() | nil
  def closest(name, known) do
    closest = Enum.max_by(known, &similarity(&1, name), fn -> nil end)
    if closest && similarity(closest, name) > 0.8, do: "did you mean #{inspect(closest)}?"
  end

  defp similarity(one, other), do: String.jaro_distance(to_string(one), to_string(other))
end
