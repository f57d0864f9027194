defmodule Nutkin.Test.Fits do
  @moduledoc """
  Fits for tests, made of the events of a run that draws known numbers.
  """

  alias Nutkin.{Draws, Fit, Tensor}

  @doc """
  A fit with the variables `mu` (scalar) and `theta` ({2, 2}), whose chain c has the chunks of `chunks[c]`: lists of
  numbers. mu is the number, theta four multiples of it.
  """
  @spec fit([[[number()]]], keyword()) :: Fit.t()
  def fit(chunks, opts \\ []) do
    options = Map.merge(%{chains: length(chunks), variables: nil}, Map.new(opts))

    for {chain_chunks, chain} <- Enum.with_index(chunks),
        {numbers, index} <- Enum.with_index(chain_chunks),
        reduce: Fit.put(Fit.new(options), {:compiled, compiled()}) do
      fit -> Fit.put(fit, {:draws, draws(chain, index, numbers)})
    end
  end

  defp compiled do
    %{
      parameters: [
        %{name: "theta", shape: {2, 2}, type: "f64", size: 4},
        %{name: "mu", shape: {}, type: "f64", size: 1}
      ],
      deterministic: [],
      observed: ["y"],
      predicted: [],
      dimension: 5,
      cached: false,
      seconds: 1.25
    }
  end

  @doc "A chunk of draws."
  @spec draws(non_neg_integer(), non_neg_integer(), [number()], Draws.phase()) :: Draws.t()
  def draws(chain, start, numbers, phase \\ :sample) do
    %Draws{
      chain: chain,
      phase: phase,
      start: start,
      count: length(numbers),
      variables: %{
        "mu" => Tensor.new(numbers, type: :f64),
        "theta" => Tensor.new(Enum.map(numbers, &[[&1, 10 * &1], [100 * &1, 1000 * &1]]), type: :f64)
      },
      stats: %{
        "lp" => Tensor.new(Enum.map(numbers, &(-&1)), type: :f64),
        "diverging" => Tensor.new(Enum.map(numbers, &if(&1 > 5, do: 1, else: 0)), type: :u8)
      }
    }
  end

  @doc "The last event of a complete run."
  @spec done(pos_integer(), Fit.status()) :: {:done, Nutkin.Protocol.done()}
  def done(chains, status \\ :complete) do
    chain = fn i ->
      %{
        chain: i,
        draws: 3,
        warmup: 190,
        divergences: 0,
        step_size: 0.5,
        inverse_mass: Tensor.new([1.0]),
        gradients: 9
      }
    end

    {:done,
     %{
       status: status,
       chains: Enum.map(0..(chains - 1), chain),
       seconds: %{compile: 1.25, warmup: 0.25, sample: 0.5}
     }}
  end
end
