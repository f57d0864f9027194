defmodule Nutkin.Worker.Options do
  @schema [
    name: [
      type: :name,
      default: Nutkin,
      doc: "What it is registered as. The other functions take it as their option `:worker`."
    ],
    workers: [
      type: :count,
      default: 1,
      doc:
        "How many workers, each with a program of its own. A request goes to the one with the fewest; a run uses all " <>
          "cores already, so more pay for a crash that must not touch others, and for compilations at the same time."
    ],
    python: [
      type: :program,
      default: nil,
      doc:
        "The Python to run, which has the package nutkin: a path or a name on the PATH. Default: the environment " <>
          "variable NUTKIN_PYTHON, else `\"python3\"`."
    ],
    python_path: [type: :strings, default: [], doc: "Directories to put in front of PYTHONPATH."],
    env: [
      type: :env,
      default: %{},
      doc: "Environment variables for it: a map or list of pairs, of names (strings or atoms) and strings."
    ],
    args: [type: :strings, default: [], doc: "Further arguments of `python -m nutkin_port`."],
    start_timeout: [
      type: :milliseconds,
      default: 60_000,
      doc: "Milliseconds that it may take to be ready."
    ],
    heartbeat: [
      type: :milliseconds,
      default: 30_000,
      doc:
        "Milliseconds: so often it is asked for a sign of life, and killed if it has not said anything since it was " <>
          "last asked."
    ],
    shutdown_timeout: [
      type: :milliseconds,
      default: 2_000,
      doc:
        "Milliseconds that it may take to end when it is asked to; then it gets SIGTERM, and a second later SIGKILL."
    ],
    max_age: [
      type: :optional_milliseconds,
      default: nil,
      doc:
        "Milliseconds after which a program is replaced by a new one. Its runs go on there. Default: it is not."
    ],
    max_resident: [
      type: :optional_bytes,
      default: nil,
      doc:
        "Bytes of memory at which it is replaced in the same way, looked at with each heartbeat. Default: none."
    ],
    limits: [
      type: :limits,
      default: %{},
      doc:
        "Limits of the program by name, such as `%{runs: 8, compile_seconds: 60}`: those of \"Limits\" in the protocol."
    ]
  ]

  @moduledoc false
  # The options of a worker: one schema, which is both checked and shown in the docs of `Nutkin.start_link/1`.

  alias Nutkin.Error.Suggestion

  @typedoc "Options that were checked: all are there, names of environment variables are strings."
  @type valid :: %{required(atom()) => term()}

  @doc "The list of options for the docs."
  @spec docs() :: String.t()
  def docs do
    Enum.map_join(@schema, "\n", fn {name, option} ->
      # What is nil says in words what it stands for.
      default = if option[:default] == nil, do: "", else: " Default: `#{inspect(option[:default])}`."
      "  * `:#{name}` - #{option[:doc]}#{default}"
    end)
  end

  @doc "The checked options, with the defaults filled in. Raises `ArgumentError` for a wrong one."
  @spec validate!(keyword()) :: valid()
  def validate!(opts) do
    check_names!(opts)

    Map.new(@schema, fn {name, option} ->
      {name, check!(name, option[:type], Keyword.get(opts, name, option[:default]))}
    end)
  end

  defp check_names!(opts) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "invalid options of a worker; expected a keyword list; found #{show(opts)}"
    end

    known = Keyword.keys(@schema)

    for name <- Keyword.keys(opts), name not in known do
      hint = if closest = Suggestion.closest(name, known), do: "; " <> closest, else: ""

      raise ArgumentError,
            "unknown option #{inspect(name)} of a worker; expected one of #{Enum.map_join(known, ", ", &inspect/1)}#{hint}"
    end
  end

  defp check!(name, type, value) do
    case check(type, value) do
      {:ok, value} ->
        value

      {:error, expected} ->
        raise ArgumentError,
              "invalid value of option #{inspect(name)} of a worker; expected #{expected}; found #{show(value)}"
    end
  end

  defp check(:name, value) when is_atom(value) and value not in [nil, true, false], do: {:ok, value}
  defp check(:name, {:global, _} = value), do: {:ok, value}
  defp check(:name, {:via, module, _} = value) when is_atom(module), do: {:ok, value}
  defp check(:name, _), do: {:error, "an atom, {:global, term} or {:via, module, term}"}

  defp check(:program, nil), do: {:ok, nil}

  defp check(:program, value) do
    if text?(value) and value != "", do: {:ok, value}, else: {:error, "a path or name, as a string"}
  end

  defp check(:strings, value) do
    if is_list(value) and Enum.all?(value, &text?/1), do: {:ok, value}, else: {:error, "a list of strings"}
  end

  defp check(:env, value) do
    if (is_map(value) and not is_struct(value)) or (is_list(value) and Enum.all?(value, &is_tuple/1)) do
      value |> Enum.map(&variable/1) |> variables()
    else
      {:error, "a map or list of pairs of strings"}
    end
  end

  # What the runtime can wait for.
  defp check(:milliseconds, value) when value in 1..0xFFFFFFFF, do: {:ok, value}
  defp check(:milliseconds, _), do: {:error, "a positive number of milliseconds, an integer"}
  defp check(:optional_milliseconds, nil), do: {:ok, nil}
  defp check(:optional_milliseconds, value), do: check(:milliseconds, value)
  defp check(:count, value) when value in 1..1024, do: {:ok, value}
  defp check(:count, _), do: {:error, "an integer from 1 to 1024"}
  defp check(:optional_bytes, nil), do: {:ok, nil}
  defp check(:optional_bytes, value) when is_integer(value) and value > 0, do: {:ok, value}
  defp check(:optional_bytes, _), do: {:error, "a positive number of bytes, an integer"}

  defp check(:limits, value) do
    if (is_map(value) and not is_struct(value)) or Keyword.keyword?(value) do
      value |> Enum.map(&limit/1) |> limits()
    else
      {:error, "a map or keyword list of limits"}
    end
  end

  # Which there are, the program knows, and says at its start.
  defp limit({name, value}) when (is_atom(name) or is_binary(name)) and is_integer(value) and value > 0 do
    {to_string(name), value}
  end

  defp limit(_), do: nil

  defp limits(pairs) do
    if Enum.all?(pairs), do: {:ok, Map.new(pairs)}, else: {:error, "names of limits with positive integers"}
  end

  defp variable({name, value}) when is_atom(name) and name not in [nil, true, false] do
    variable({Atom.to_string(name), value})
  end

  defp variable({name, value}) do
    if text?(name) and name != "" and not String.contains?(name, "=") and text?(value), do: {name, value}
  end

  defp variable(_), do: nil

  defp variables(pairs) do
    if Enum.all?(pairs),
      do: {:ok, Map.new(pairs)},
      else: {:error, "names (strings or atoms) with strings as values"}
  end

  # The operating system ends a text at its first null byte.
  defp text?(value), do: is_binary(value) and String.valid?(value) and not String.contains?(value, <<0>>)

  defp show(value), do: inspect(value, limit: 10, printable_limit: 100)
end
