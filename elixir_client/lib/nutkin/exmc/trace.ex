defmodule Nutkin.Exmc.Trace do
  @moduledoc false
  # Draws in the form that eXMC has for them: of one chain, without an axis for chains.

  alias Nutkin.{Draws, Fit, Tensor}

  @doc "The draws of a chain by the ids of the free variables."
  @spec draws(Fit.t(), non_neg_integer(), [String.t()]) :: %{String.t() => Tensor.t() | struct()}
  def draws(fit, chain, ids) do
    for id <- ids, into: %{} do
      tensor = Fit.tensor(fit, id, chains: [chain])
      {id, Draws.for_user(%{tensor | shape: Tuple.delete_at(tensor.shape, 0)})}
    end
  end

  @doc "The statistics of a chain."
  @spec stats(Fit.t(), non_neg_integer(), map(), [String.t()]) :: map()
  def stats(fit, chain, options, warnings) do
    steps = fit.draws.sample |> Map.get(chain, []) |> Enum.reverse() |> Enum.flat_map(&step_stats/1)
    told = Enum.find(fit.chains, %{}, &(&1.chain == chain))

    %{
      step_size: told[:step_size],
      inv_mass_diag: told[:inverse_mass] && inverse_mass(told.inverse_mass, fit.compiled.parameters),
      divergences: Enum.count(steps, & &1.divergent),
      recoveries: 0,
      num_warmup: options.num_warmup,
      num_samples: length(steps),
      sample_stats: steps,
      warnings: warnings ++ ended_early(fit, length(steps))
    }
  end

  defp ended_early(%{status: :complete}, _drawn), do: []
  defp ended_early(%{status: status}, drawn), do: ["the run ended early (#{status}), after #{drawn} draws"]

  @doc "The statistics of a model without free variables."
  @spec empty_stats(map(), [String.t()]) :: map()
  def empty_stats(options, warnings) do
    %{
      step_size: nil,
      inv_mass_diag: nil,
      divergences: 0,
      recoveries: 0,
      num_warmup: options.num_warmup,
      num_samples: options.num_samples,
      sample_stats: [],
      warnings: warnings
    }
  end

  @doc "One map for each draw of a chunk."
  @spec step_stats(Draws.t()) :: [map()]
  def step_stats(%Draws{} = draws) do
    ~w(tree_depth n_steps diverging acceptance_rate energy)
    |> Enum.map(&(draws |> Draws.tensor!(:stats, &1) |> Tensor.to_flat_list()))
    |> Enum.zip_with(fn [depth, steps, diverging, acceptance, energy] ->
      %{
        tree_depth: depth,
        n_steps: steps,
        divergent: diverging == 1,
        accept_prob: acceptance,
        energy: energy,
        recovered: false
      }
    end)
  end

  @doc "One map of the values of each draw of a chunk, by id."
  @spec points(Draws.t(), [String.t()]) :: [%{String.t() => Tensor.t() | struct()}]
  def points(%Draws{count: count} = draws, ids) do
    tensors = for id <- ids, do: {id, Draws.tensor!(draws, :variables, id)}
    for place <- 0..(count - 1), do: Map.new(tensors, fn {id, tensor} -> {id, point(tensor, place)} end)
  end

  defp point(tensor, place) do
    one = Tensor.slice(tensor, place, 1)
    Draws.for_user(%{one | shape: Tuple.delete_at(one.shape, 0)})
  end

  # In the order of the ids, as eXMC has its coordinates.
  defp inverse_mass(%Tensor{type: type} = tensor, parameters) do
    {parts, _start} =
      Enum.map_reduce(parameters, 0, fn %{name: name, size: size}, start ->
        {{name, if(size > 0, do: Tensor.slice(tensor, start, size).data, else: <<>>)}, start + size}
      end)

    data = parts |> Enum.sort() |> Enum.map(&elem(&1, 1)) |> IO.iodata_to_binary()
    Draws.for_user(Tensor.from_binary(data, type, tensor.shape))
  end
end
