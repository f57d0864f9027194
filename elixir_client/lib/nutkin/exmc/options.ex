defmodule Nutkin.Exmc.Options do
  @moduledoc false
  # The options of eXMC's sampler as those of Nutkin.

  alias Nutkin.Error.{InvalidOption, Suggestion}
  alias Nutkin.Exmc.Value

  @defaults [
    num_warmup: 1000,
    num_samples: 1000,
    max_tree_depth: 10,
    target_accept: 0.8,
    seed: 0,
    dense_mass: false,
    ncp: true,
    init_values: nil,
    worker: Nutkin,
    timeout: :infinity
  ]

  @without_meaning [:device, :supervised, :vectorized, :parallel, :max_concurrency, :warm_start]

  # Those that only have another name, which errors are to call by that of eXMC.
  @renamed [num_warmup: :warmup, num_samples: :draws, dense_mass: :mass_matrix, init_values: :init]
  @same [:max_tree_depth, :target_accept, :seed, :worker, :timeout]

  @type t :: %{required(atom()) => term()}

  @doc "The options that are accepted, and without meaning."
  @spec without_meaning() :: [atom()]
  def without_meaning, do: @without_meaning

  @doc "The options with their defaults. Raises `Nutkin.Error.InvalidOption`."
  @spec validate!(term()) :: t()
  def validate!(opts) do
    unless Keyword.keyword?(opts) do
      raise InvalidOption,
        message: "invalid options",
        expected: "a keyword list",
        found: inspect(opts, limit: 5, printable_limit: 100)
    end

    known = Keyword.keys(@defaults)

    for name <- Keyword.keys(opts), name not in known, name not in @without_meaning do
      raise InvalidOption,
        message: "unknown option #{inspect(name)}",
        path: Atom.to_string(name),
        expected: "one of #{Enum.map_join(known ++ @without_meaning, ", ", &inspect/1)}",
        hint: Suggestion.closest(name, known)
    end

    options = @defaults |> Keyword.merge(Keyword.take(opts, known)) |> Map.new()
    one_of!(options, :dense_mass, [true, false])
    one_of!(options, :ncp, [true, false, :auto])
    options
  end

  defp one_of!(options, name, allowed) do
    if options[name] not in allowed do
      raise InvalidOption,
        message: "invalid value of option #{inspect(name)}",
        path: Atom.to_string(name),
        expected: Enum.map_join(allowed, " or ", &inspect/1),
        found: inspect(options[name], limit: 5)
    end
  end

  @doc "The options of `Nutkin.sample/2`, for values of the free variables to start at."
  @spec sampling(t(), map(), [String.t()]) :: keyword()
  def sampling(options, init, free) do
    renamed = [
      warmup: options.num_warmup,
      draws: options.num_samples,
      mass_matrix: if(options.dense_mass, do: :dense, else: :diagonal)
    ]

    renamed ++ for(name <- @same, do: {name, options[name]}) ++ init(init, free)
  end

  defp init(init, _free) when init in [nil, %{}], do: []

  defp init(init, free) when is_map(init) and not is_struct(init) do
    case Enum.find(Map.keys(init), &(to_string(&1) not in free)) do
      nil ->
        [init: Map.new(init, fn {id, value} -> {to_string(id), Value.tensor(value)} end)]

      id ->
        raise InvalidOption,
          message: "#{id} has a value to start at, and is no free variable of the model",
          node: to_string(id),
          expected: "values of #{Enum.join(free, ", ")}, some or all"
    end
  end

  defp init(other, _free) do
    raise InvalidOption,
      message: "invalid values to start at",
      expected: "a map of values by the ids of free variables",
      found: inspect(other, limit: 5, printable_limit: 100)
  end

  @doc "The error of `Nutkin.sample/2`, about the options as eXMC calls them."
  @spec renamed(Exception.t()) :: Exception.t()
  def renamed(%InvalidOption{message: message, path: path} = error) when is_binary(path) do
    [name | rest] = String.split(path, ".", parts: 2)

    case Enum.find(@renamed, fn {_theirs, ours} -> Atom.to_string(ours) == name end) do
      {theirs, ours} ->
        message = String.replace(message, inspect(ours), inspect(theirs))
        %{error | message: message, path: Enum.join([theirs | rest], ".")}

      nil ->
        error
    end
  end

  def renamed(error), do: error
end
