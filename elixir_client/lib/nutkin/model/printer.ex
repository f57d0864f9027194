defmodule Nutkin.Model.Printer do
  @moduledoc false
  # A model as the lines of the language that make it. A node without a name is written where it is used, or in a line of
  # its own where it is used more than once or long.

  alias Nutkin.Model

  @longest_inline 60

  @spec lines(Model.t()) :: [String.t()]
  def lines(%Model{nodes: nodes, blobs: blobs}) do
    uses = nodes |> Enum.flat_map(&references/1) |> Enum.frequencies()

    {lines, _texts} =
      nodes
      |> Enum.with_index()
      |> Enum.flat_map_reduce(%{}, fn {node, index}, texts ->
        case {write(node, texts, blobs), uses[index]} do
          {{:term, line}, _uses} -> {[line], texts}
          {{:binding, text}, _uses} -> bind(variable(node, index), text, index, texts)
          {{:literal, text}, _uses} -> {[], Map.put(texts, index, text)}
          {{:value, text}, 1} when byte_size(text) <= @longest_inline -> {[], Map.put(texts, index, text)}
          {{:value, text}, _uses} -> bind("v#{index}", " = " <> text, index, texts)
        end
      end)

    lines
  end

  defp bind(variable, text, index, texts), do: {[variable <> text], Map.put(texts, index, variable)}

  defp variable(%{"name" => name}, index), do: if(identifier?(name), do: name, else: "v#{index}")

  defp references(%{"kind" => "call", "args" => args}), do: args
  defp references(%{"kind" => "constant"}), do: []

  defp references(node) do
    Map.values(node["args"] || %{}) ++ Map.values(Map.take(node, ["value", "weight", "mask"]))
  end

  defp write(%{"kind" => "constant", "value" => number}, _texts, _blobs), do: {:literal, inspect(number)}

  defp write(%{"kind" => "constant", "blob" => {:bin, sha}}, _texts, blobs) do
    {:literal, "tensor(#{blobs[sha].size} bytes)"}
  end

  defp write(%{"kind" => "data", "name" => name} = node, _texts, _blobs) do
    {:binding, " = " <> call("data", [label(name)], Map.take(node, ["shape", "type"]))}
  end

  defp write(%{"kind" => "rv", "name" => name} = node, texts, _blobs) do
    named = if identifier?(name), do: %{}, else: %{"name" => name}
    opts = Map.merge(named, Map.take(node, ["shape", "transform", "centered"]))
    {:binding, " <~ " <> distribution(node, texts, opts)}
  end

  defp write(%{"kind" => "observe", "name" => name} = node, texts, _blobs) do
    opts = for {field, index} <- Map.take(node, ["weight", "mask"]), do: {field, {:text, texts[index]}}
    args = [label(name), distribution(node, texts, %{}), texts[node["value"]]]
    {:term, call("observe", args, opts ++ Enum.to_list(Map.take(node, ["reduce"])))}
  end

  defp write(%{"kind" => kind, "name" => name, "value" => value}, texts, _blobs)
       when kind in ["factor", "deterministic"] do
    {:term, call(kind, [label(name), texts[value]], [])}
  end

  defp write(%{"kind" => "call", "op" => op, "args" => args, "opts" => opts}, texts, _blobs) do
    {:value, operation(op, Enum.map(args, &texts[&1]), opts)}
  end

  defp operation(op, args, opts) when op in ["stack", "concatenate"] do
    call(op, ["[" <> Enum.join(args, ", ") <> "]"], opts)
  end

  defp operation("dot", [left, right], %{"contract_a" => _} = opts) do
    [contract_left, batch_left, contract_right, batch_right] =
      for key <- ~w(contract_a batch_a contract_b batch_b), do: value(key, opts[key])

    call("dot", [left, contract_left, batch_left, right, contract_right, batch_right], [])
  end

  # What the function takes as arguments are no options there.
  defp operation(op, args, opts) do
    settings =
      Enum.find_value(Model.Operation.table(), [], fn {name, _values, settings, _options, _doc} ->
        if Atom.to_string(name) == op, do: Enum.map(Keyword.keys(settings), &Atom.to_string/1)
      end)

    call(op, args ++ Enum.map(settings, &value(&1, opts[&1])), Map.drop(opts, settings))
  end

  defp distribution(%{"dist" => family, "args" => args}, texts, opts) do
    call(family, Enum.map(parameters(family), &texts[args[&1]]), opts)
  end

  defp parameters(family) do
    Enum.find_value(Model.Distribution.table(), fn {name, parameters, _support, _note} ->
      if Atom.to_string(name) == family, do: Enum.map(parameters, &Atom.to_string/1)
    end)
  end

  defp call(name, args, opts) do
    "#{name}(#{Enum.join(args ++ Enum.map(opts, &option/1), ", ")})"
  end

  defp option({name, {:text, text}}), do: "#{name}: #{text}"
  defp option({name, value}), do: "#{name}: #{value(name, value)}"

  defp value("shape", sizes), do: inspect(List.to_tuple(sizes))
  defp value("name", name), do: inspect(name)
  defp value(_name, text) when is_binary(text), do: label(text)
  defp value(_name, value), do: inspect(value, charlists: :as_lists)

  @doc "A name as an atom is written, without making one."
  @spec label(String.t()) :: String.t()
  def label(name), do: if(identifier?(name), do: ":#{name}", else: inspect(name))

  defp identifier?(name), do: name =~ ~r/\A[a-z_][A-Za-z0-9_]*\z/
end
