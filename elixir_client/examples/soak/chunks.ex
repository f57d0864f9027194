defmodule Soak.Chunks do
  @moduledoc """
  Chunks of draws, in the order in which they came: without a gap and without a draw that comes twice, or an error says so.
  """

  alias Nutkin.{Draws, Fit}

  @doc """
  The bytes of each variable of each chain in each phase.
  """
  @spec joined([Draws.t()]) :: %{{Draws.phase(), non_neg_integer(), String.t()} => binary()}
  def joined(chunks) do
    for {{phase, chain}, chunks} <- Enum.group_by(chunks, &{&1.phase, &1.chain}),
        check!(chunks),
        name <- Map.keys(hd(chunks).variables),
        into: %{} do
      {{phase, chain, name}, for(chunk <- chunks, into: <<>>, do: chunk.variables[name].data)}
    end
  end

  @doc """
  Those of a fit.
  """
  @spec of_fit(Fit.t()) :: [Draws.t()]
  def of_fit(fit) do
    for {_phase, chains} <- fit.draws, {_chain, chunks} <- chains, chunk <- Enum.reverse(chunks), do: chunk
  end

  defp check!(chunks) do
    Enum.reduce(chunks, 0, fn chunk, upto ->
      if chunk.start != upto do
        raise "chain #{chunk.chain}: the chunk after draw #{upto} begins at #{chunk.start}"
      end

      upto + chunk.count
    end)
  end
end
