defmodule Nutkin.Options do
  @schema [
    data: [
      type: :values,
      default: %{},
      doc: "The values of the model's data slots, by name: numbers, nested lists, tensors of Nutkin or Nx."
    ],
    chains: [type: {:integer, 1, 1024}, default: 4, wire: true, doc: "How many chains to run."],
    draws: [
      type: {:integer, 1, 1_000_000_000},
      default: 1000,
      wire: true,
      doc: "Draws to keep a chain, after warmup and thinning."
    ],
    warmup: [
      type: {:integer, 0, 1_000_000_000},
      default: 1000,
      wire: true,
      doc:
        "Iterations a chain in which step size and mass matrix are adapted: the most there may be with " <>
          "`adaptation: :pooled`, their number with `:windowed`."
    ],
    adaptation: [
      type: {:in, [:pooled, :windowed]},
      default: :pooled,
      wire: true,
      doc:
        "How the warmup learns: `:pooled` from all chains together, for as long as they need, 190 iterations where " <>
          "all goes well (a single chain 380); `:windowed` as Stan, each chain alone and for all of `:warmup`."
    ],
    seed: [
      type: {:integer, 0, 18_446_744_073_709_551_615},
      default: 0,
      wire: true,
      doc: "The same seed, model, data and options give the same draws."
    ],
    target_accept: [
      type: {:between, 0, 1},
      default: 0.8,
      wire: true,
      doc: "The mean acceptance statistic that the step size is adapted to."
    ],
    max_tree_depth: [
      type: {:integer, 1, 15},
      default: 10,
      wire: true,
      doc: "A trajectory has at most 2 to this power leapfrog steps."
    ],
    init: [
      type: :init,
      default: [radius: 2],
      wire: true,
      doc:
        "Where chains start: uniform in (-radius, radius) on the unconstrained scale. A number is the radius, " <>
          "a map the constrained values of some or all parameters; `[radius: r, values: map]` says both."
    ],
    mass_matrix: [
      type: {:in, [:diagonal, :dense]},
      default: :diagonal,
      wire: true,
      doc:
        "The form of the mass matrix. `:dense` pays where parameters are strongly correlated and are no more than " <>
          "some hundreds: a leapfrog step then costs products with a square matrix."
    ],
    thin: [type: {:integer, 1, 1_000_000_000}, default: 1, wire: true, doc: "Keep every n-th draw."],
    keep_warmup: [
      type: :boolean,
      default: false,
      wire: true,
      doc: "Whether to receive the warmup iterations too."
    ],
    variables: [
      type: :names,
      default: nil,
      wire: true,
      doc: "Names of the parameters and deterministic values to receive; nil for all."
    ],
    precision: [
      type: {:in, [:f64, :f32]},
      default: :f64,
      wire: true,
      doc: "The type of the computation and of the draws."
    ],
    redraw: [
      type: :names,
      default: [],
      wire: true,
      doc:
        "Names of parameters that are drawn anew from their distributions, given the draws of the others: such as the " <>
          "effects of groups that were not observed."
    ],
    rewrites: [
      type: :names,
      default: nil,
      wire: true,
      doc:
        "Names of the rewrites that may make the model faster to sample; `[]` samples it as it is written, nil allows all. " <>
          "Which were applied, `Nutkin.compile/2` and the field `:compiled` of a fit say."
    ],
    credit: [
      type: {:integer, 0, 1_000_000},
      default: 16,
      wire: true,
      doc: "Chunks of draws that may be sent before the first is acknowledged."
    ],
    max_time: [
      type: :duration,
      default: nil,
      wire: true,
      doc:
        "Milliseconds after which sampling ends with the draws that there are, and the status `:max_time`; nil: never. " <>
          "Compilation is not counted."
    ],
    target_ess: [
      type: {:above, 0},
      default: nil,
      wire: true,
      doc:
        "Sampling ends, with the status `:converged`, as soon as the bulk and the tail ESS of every scalar are at least " <>
          "this many; looked at when a chain has 100 draws, and then after half as many again."
    ],
    max_rhat: [
      type: {:above, 1},
      default: nil,
      wire: true,
      doc:
        "The same for the R-hat of every scalar, which must be at most this. With both options, both must hold."
    ],
    checkpoint_every: [
      type: :duration,
      default: 1_000,
      wire: true,
      doc:
        "Milliseconds between the checkpoints from which a run goes on when its program has ended; nil: none."
    ],
    resume: [
      type: :boolean,
      default: true,
      doc:
        "Whether a run whose program has ended goes on with the next one. Without, it ends with a " <>
          "`Nutkin.Error.WorkerExit`."
    ],
    more: [
      type: {:integer, 0, 1_000_000_000},
      default: 0,
      doc: "Draws of each chain beyond those that the run was to make."
    ],
    timeout: [type: :timeout, default: :infinity, doc: "Milliseconds for the whole call, or `:infinity`."],
    on_progress: [
      type: {:function, 1},
      default: nil,
      doc: "A function that is called with each progress event."
    ],
    progress: [
      type: :device,
      default: false,
      doc:
        "Whether to show how far the chains are: `true`, or a device such as `:stderr`. A terminal shows a table, anything else gets a " <>
          "line every ten seconds, and a run that samples for less than half a second nothing."
    ],
    worker: [type: :server, default: Nutkin, doc: "The worker: the name it was started under, or its pid."]
  ]

  @moduledoc """
  The options of requests: one schema, which is both checked and shown here.

  #{Enum.map_join(@schema, "\n", fn {name, option} -> "  * `:#{name}` - #{option[:doc]} Default: `#{inspect(option[:default])}`.\n" end)}
  """

  alias Nutkin.Error.{InvalidData, InvalidOption}
  alias Nutkin.Options.Unknown
  alias Nutkin.Tensor

  @typedoc "Options that were checked: every one asked for is there, in one form."
  @type valid :: %{optional(atom()) => term()}

  @doc false
  @spec names() :: [atom()]
  def names, do: Keyword.keys(@schema)

  @doc """
  Checks the options of a function that takes those in `allowed`, and fills in the defaults.

  Names of parameters become strings, the values of `:init` tensors, in `%{radius: number, values: map}`.

  ## Examples

      iex> Nutkin.Options.validate([chains: 2], [:chains, :draws])
      {:ok, %{chains: 2, draws: 1000}}
      iex> {:error, error} = Nutkin.Options.validate([chain: 2], [:chains, :draws])
      iex> Exception.message(error)
      "unknown option :chain; expected one of :chains, :draws; did you mean :chains?"
      iex> {:error, error} = Nutkin.Options.validate([draws: 0], [:chains, :draws])
      iex> Exception.message(error)
      "invalid value of option :draws; expected an integer from 1 to 1000000000; found 0"

  """
  @spec validate(keyword(), [atom()]) :: {:ok, valid()} | {:error, InvalidOption.t()}
  def validate(opts, allowed) do
    with :ok <- check_form(opts),
         :ok <- check_names(opts, allowed) do
      Enum.reduce_while(allowed, {:ok, %{}}, fn name, {:ok, valid} ->
        schema = Keyword.fetch!(@schema, name)

        case check(schema[:type], Keyword.get(opts, name, schema[:default]), schema[:default]) do
          {:ok, value} -> {:cont, {:ok, Map.put(valid, name, value)}}
          {:error, reason} -> {:halt, {:error, invalid(name, reason)}}
        end
      end)
    end
  end

  @doc """
  The `options` map of a message: those of the checked options that travel.

  ## Examples

      iex> {:ok, options} = Nutkin.Options.validate([variables: [:mu]], [:variables, :timeout])
      iex> Nutkin.Options.to_wire(options)
      %{"variables" => ["mu"]}

  """
  @spec to_wire(valid()) :: %{String.t() => Nutkin.Msgpack.encodable()}
  def to_wire(valid) do
    for {name, value} <- valid, @schema[name][:wire], into: %{} do
      {Atom.to_string(name), to_wire(@schema[name][:type], value)}
    end
  end

  # Durations are seconds on the wire.
  defp to_wire(:duration, value) when is_integer(value), do: value / 1000
  defp to_wire(_type, value), do: value

  @doc """
  The checked options of an `options` map that `to_wire/1` has made.

  ## Examples

      iex> {:ok, options} = Nutkin.Options.from_wire(%{"adaptation" => "windowed", "max_time" => 1.5})
      iex> options
      %{adaptation: :windowed, max_time: 1500}

  """
  @spec from_wire(map()) :: {:ok, valid()} | {:error, InvalidOption.t()}
  def from_wire(wire) do
    opts =
      for {name, option} <- @schema, option[:wire], {:ok, value} <- [Map.fetch(wire, Atom.to_string(name))] do
        {name, from_wire(option[:type], value)}
      end

    validate(opts, Keyword.keys(opts))
  end

  defp from_wire(:duration, seconds) when is_number(seconds), do: round(seconds * 1000)
  defp from_wire({:in, atoms}, text), do: Enum.find(atoms, text, &(Atom.to_string(&1) == text))
  defp from_wire(:init, %{"radius" => radius, "values" => values}), do: [radius: radius, values: values]
  defp from_wire(_type, value), do: value

  defp check_form(opts) do
    if Keyword.keyword?(opts) do
      case Keyword.keys(opts) -- Enum.uniq(Keyword.keys(opts)) do
        [] -> :ok
        [name | _] -> {:error, InvalidOption.exception("option #{inspect(name)} is given twice")}
      end
    else
      {:error,
       InvalidOption.exception(message: "invalid options", expected: "a keyword list", found: show(opts))}
    end
  end

  defp check_names(opts, allowed) do
    case Keyword.keys(opts) -- allowed do
      [] ->
        :ok

      [name | _] ->
        {:error,
         InvalidOption.exception(
           message: "unknown option #{inspect(name)}",
           path: Atom.to_string(name),
           expected: "one of #{Enum.map_join(allowed, ", ", &inspect/1)}",
           hint: Unknown.hint(name, allowed, names())
         )}
    end
  end

  # The error of one of its values, which has that value's name.
  defp invalid(name, %InvalidData{node: node} = error) do
    InvalidOption.exception(
      message: "invalid value of option #{inspect(name)}: #{error.message}",
      node: node,
      path: "#{name}.#{node}#{error.path}",
      expected: error.expected,
      found: error.found,
      hint: error.hint
    )
  end

  defp invalid(name, fields) do
    InvalidOption.exception(
      [message: "invalid value of option #{inspect(name)}", path: Atom.to_string(name)] ++ fields
    )
  end

  defp check(_type, default, default) when is_nil(default), do: {:ok, nil}

  defp check({:integer, low, high}, value, _default) do
    if is_integer(value) and value in low..high do
      {:ok, value}
    else
      expected("an integer from #{low} to #{high}", value)
    end
  end

  defp check({:above, low}, value, _default) do
    if is_number(value) and value > low, do: {:ok, value}, else: expected("a number above #{low}", value)
  end

  defp check(:duration, nil, _default), do: {:ok, nil}

  defp check(:duration, value, _default) do
    if value in 1..0xFFFFFFFF,
      do: {:ok, value},
      else: expected("a positive number of milliseconds, an integer", value)
  end

  defp check({:between, low, high}, value, _default) do
    if is_number(value) and value > low and value < high do
      {:ok, value}
    else
      expected("a number between #{low} and #{high}, both excluded", value)
    end
  end

  defp check(:boolean, value, _default) do
    if is_boolean(value), do: {:ok, value}, else: expected("true or false", value)
  end

  defp check({:in, allowed}, value, _default) do
    if value in allowed, do: {:ok, value}, else: expected(Enum.map_join(allowed, " or ", &inspect/1), value)
  end

  defp check(:timeout, value, _default) do
    # What the runtime can wait for.
    if value == :infinity or value in 0..0xFFFFFFFF do
      {:ok, value}
    else
      expected("milliseconds, an integer from 0 to #{0xFFFFFFFF}, or :infinity", value)
    end
  end

  defp check({:function, arity}, value, _default) do
    if is_function(value, arity),
      do: {:ok, value},
      else: expected("a function of #{arity} argument(s)", value)
  end

  defp check(:device, false, _default), do: {:ok, nil}
  defp check(:device, true, _default), do: {:ok, :stdio}

  defp check(:device, value, _default) do
    if (is_atom(value) and value != nil) or is_pid(value),
      do: {:ok, value},
      else: expected("true, false, or a device such as :stderr", value)
  end

  defp check(:server, value, _default) do
    named? = is_atom(value) and value not in [nil, true, false]

    if is_pid(value) or named? or match?({:via, _, _}, value) or match?({:global, _}, value) or
         match?({name, node} when is_atom(name) and is_atom(node), value) do
      {:ok, value}
    else
      expected("the name of a worker, or its pid", value)
    end
  end

  defp check(:names, value, _default) do
    if is_list(value) and Enum.all?(value, &name?/1) do
      {:ok, Enum.map(value, &to_string/1)}
    else
      expected("a list of names, or nil", value)
    end
  end

  defp check(:values, value, _default),
    do: named_values(value, "a map or keyword list of values by name", &{:ok, &1})

  @init "a radius, a map of values by name, or [radius: radius, values: map]"

  defp check(:init, value, default) when is_number(value), do: check(:init, [radius: value], default)

  # A map has values by the names of parameters, and none of these values is a map.
  defp check(:init, %{values: values} = init, _default) when is_map(values) and not is_struct(values) do
    {:error, fields} = expected(@init, init)
    {:error, fields ++ [hint: "in a map every key is the name of a parameter; :values is a key of the list"]}
  end

  defp check(:init, value, default) when is_map(value), do: check(:init, [values: value], default)

  defp check(:init, value, default) do
    with true <- Keyword.keyword?(value) and Keyword.keys(value) -- [:radius, :values] == [],
         radius when is_number(radius) and radius >= 0 <- Keyword.get(value, :radius, default[:radius]),
         {:ok, values} <- named_values(Keyword.get(value, :values, %{}), @init, &Tensor.cast/1) do
      {:ok, %{radius: radius, values: values}}
    else
      {:error, reason} -> {:error, reason}
      _other -> expected(@init, value)
    end
  end

  defp named_values(values, expected, cast) do
    if (is_map(values) and not is_struct(values)) or Keyword.keyword?(values) do
      Enum.reduce_while(values, {:ok, %{}}, fn {name, value}, {:ok, done} ->
        with {:name, true} <- {:name, name?(name)},
             {:new, true} <- {:new, not is_map_key(done, to_string(name))},
             {:ok, value} <- cast.(value) do
          {:cont, {:ok, Map.put(done, to_string(name), value)}}
        else
          {:name, false} -> {:halt, expected("names that are atoms or strings", name)}
          {:new, false} -> {:halt, expected("every name once", name)}
          {:error, error} -> {:halt, {:error, %{error | node: to_string(name)}}}
        end
      end)
    else
      expected(expected, values)
    end
  end

  defp name?(name), do: (is_atom(name) and name not in [nil, true, false]) or (is_binary(name) and name != "")

  defp expected(expected, found), do: {:error, expected: expected, found: show(found)}

  defp show(value), do: inspect(value, limit: 5, printable_limit: 100)
end
