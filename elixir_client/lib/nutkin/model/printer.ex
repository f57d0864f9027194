defmodule Nutkin.Model.Printer do
  @moduledoc false
  # A model as the lines of the language that make it. A node without a name is written where it is used, or in a line of
  # its own where it is used more than once or long.

  alias Nutkin.Model
  alias Nutkin.Model.References

  @longest_inline 60

  # `letter` begins the variables of a body, `arguments` counts those of the bodies around.
  defstruct [:blobs, letter: ?v, arguments: 0]

  @spec lines(Model.t()) :: [String.t()]
  def lines(%Model{nodes: nodes, blobs: blobs}) do
    {lines, _texts} = block(nodes, %{}, [], %__MODULE__{blobs: blobs})
    lines
  end

  # The lines of nodes, and their texts, given those of a body's arguments. `results` are used once more than it seems.
  defp block(nodes, arguments, results, scope) do
    uses = nodes |> Enum.flat_map(&References.of/1) |> Enum.concat(results) |> Enum.frequencies()

    nodes
    |> Enum.with_index()
    |> Enum.flat_map_reduce(%{}, fn {node, index}, texts ->
      case {write(node, texts, nodes, index, arguments, scope), uses[index]} do
        {{:term, line}, _uses} ->
          {[line], texts}

        {{:binding, text}, _uses} ->
          bind(variable(node, index, scope), text, index, texts)

        {{:literal, text}, _uses} ->
          {[], Map.put(texts, index, text)}

        {{:value, text}, 1} when byte_size(text) <= @longest_inline ->
          {[], Map.put(texts, index, text)}

        {{:value, text}, _uses} ->
          bind(unnamed(index, scope), " = " <> text, index, texts)

        {{:lines, lines}, _uses} ->
          {lines, texts}
      end
    end)
  end

  defp bind(variable, text, index, texts), do: {[variable <> text], Map.put(texts, index, variable)}

  defp variable(%{"name" => name}, index, scope),
    do: if(identifier?(name), do: name, else: unnamed(index, scope))

  defp unnamed(index, scope), do: <<scope.letter>> <> Integer.to_string(index)

  # What depends on the other nodes of its block.
  defp write(%{"kind" => "nx"} = node, texts, nodes, index, _arguments, scope) do
    given = node["args"] |> Enum.map(&texts[&1]) |> Enum.join(", ")
    {:lines, ["#{group(elements(nodes, index, scope))} = nx(#{inspect(node["function"])}, #{given})"]}
  end

  defp write(%{"kind" => "argument", "index" => index}, _texts, _nodes, _index, arguments, _scope) do
    {:literal, arguments[index]}
  end

  defp write(%{"kind" => "elem"}, _texts, _nodes, index, _arguments, scope),
    do: {:literal, unnamed(index, scope)}

  defp write(%{"kind" => "scan"} = node, texts, nodes, index, _arguments, scope) do
    {init, count} = {node["init"], length(node["init"])}
    {carried, rows} = scope |> names(count + length(node["xs"])) |> Enum.split(count)
    {last, collected} = nodes |> elements(index, scope) |> Enum.split(count)

    head = [
      "{#{optional(collected)}, #{group(last)}} = scan(#{group(texts, node["xs"])}, #{group(texts, init)}, ",
      "fn #{group(rows)}, #{group(carried)} ->"
    ]

    result = fn results ->
      {next, ys} = Enum.split(results, count)
      "{#{optional(ys)}, #{group(next)}}"
    end

    options = Enum.map(Map.take(node, ["reverse"]), &(", " <> option(&1)))

    {:lines,
     function(Enum.join(head), node["body"], carried ++ rows, result, "end#{options})", node, texts, scope)}
  end

  defp write(%{"kind" => "while"} = node, texts, nodes, index, _arguments, scope) do
    carried = names(scope, length(node["init"]))

    start =
      "#{group(elements(nodes, index, scope))} = while(#{group(texts, node["init"])}, fn #{group(carried)} ->"

    next = "end, fn #{group(carried)} ->"
    last = "end, #{option({"max_steps", node["max_steps"]})})"
    condition = function(start, node["condition"], carried, &group/1, next, node, texts, scope)
    [_repeated | body] = function(next, node["body"], carried, &group/1, last, node, texts, scope)
    {:lines, condition ++ body}
  end

  defp write(%{"kind" => "ode"} = node, texts, nodes, index, _arguments, scope) do
    [t | state] = names(scope, 1 + length(node["init"]))
    given = Enum.join([group(texts, node["init"]), texts[node["start"]], texts[node["times"]]], ", ")
    start = "#{group(elements(nodes, index, scope))} = ode(#{given}, fn #{t}, #{group(state)} ->"
    options = Enum.map(Map.take(node, ~w(method rtol atol max_steps)), &(", " <> option(&1)))
    {:lines, function(start, node["body"], [t | state], &group/1, "end#{options})", node, texts, scope)}
  end

  defp write(%{"kind" => "cond"} = node, texts, nodes, index, _arguments, scope) do
    start = "#{group(elements(nodes, index, scope))} = if #{texts[node["predicate"]]} do"
    on_true = function(start, node["on_true"], [], &group/1, "else", node, texts, scope)
    [_else | on_false] = function("else", node["on_false"], [], &group/1, "end", node, texts, scope)
    {:lines, on_true ++ on_false}
  end

  defp write(%{"kind" => "call", "op" => op} = node, texts, nodes, index, _arguments, scope) do
    written = {:value, text} = write(node, texts, scope.blobs)

    case Model.Operation.results(op) do
      [] -> written
      _several -> {:lines, ["#{group(elements(nodes, index, scope))} = #{text}"]}
    end
  end

  defp write(node, texts, _nodes, _index, _arguments, scope), do: write(node, texts, scope.blobs)

  # A function of these arguments, in one line if its body has no line of its own.
  defp function(head, body, names, result, last, node, texts, scope) do
    captured = Enum.map(node["captures"], &texts[&1])
    arguments = (names ++ captured) |> Enum.with_index() |> Map.new(fn {text, place} -> {place, text} end)
    inner = %{scope | letter: scope.letter - 1, arguments: scope.arguments + length(names)}
    {lines, texts} = block(body["nodes"], arguments, body["results"], inner)
    [head] ++ Enum.map(lines ++ [result.(Enum.map(body["results"], &texts[&1]))], &("  " <> &1)) ++ [last]
  end

  defp names(scope, count), do: for(place <- 0..(count - 1)//1, do: "a#{scope.arguments + place}")

  # The variables of the values of a node that gives several.
  defp elements(nodes, of, scope) do
    for {%{"kind" => "elem", "of" => ^of}, index} <- Enum.with_index(nodes), do: unnamed(index, scope)
  end

  defp group(texts, references), do: group(Enum.map(references, &texts[&1]))
  defp group([text]), do: text
  defp group(texts), do: "{#{Enum.join(texts, ", ")}}"

  defp optional([]), do: "nil"
  defp optional(texts), do: group(texts)

  defp write(%{"kind" => "constant", "value" => number}, _texts, _blobs), do: {:literal, inspect(number)}

  defp write(%{"kind" => "constant", "blob" => {:bin, sha}}, _texts, blobs) do
    {:literal, "tensor(#{blobs[sha].size} bytes)"}
  end

  defp write(%{"kind" => "data", "name" => name} = node, _texts, _blobs) do
    {:binding, " = " <> call("data", [label(name)], Map.take(node, ["shape", "type", "grows"]))}
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

  defp write(%{"kind" => "log_prob", "of" => of, "value" => value} = node, texts, _blobs) do
    name = %{"density" => "log_prob", "cdf" => "log_cdf", "sf" => "log_sf"}[of]
    {:value, call(name, [distribution(node, texts, %{}), texts[value]], [])}
  end

  defp write(%{"kind" => kind, "name" => name, "value" => value}, texts, _blobs)
       when kind in ["factor", "deterministic"] do
    {:term, call(kind, [label(name), texts[value]], [])}
  end

  defp write(%{"kind" => "call", "op" => op, "args" => args, "opts" => opts}, texts, _blobs) do
    {:value, operation(op, Enum.map(args, &texts[&1]), opts)}
  end

  defp operation("dynamic_slice", [x | starts], %{"lengths" => lengths} = opts) do
    args = [x, "[" <> Enum.join(starts, ", ") <> "]", value("lengths", lengths)]
    call("slice", args, Map.delete(opts, "lengths"))
  end

  defp operation("put_slice", [x | rest], _opts) do
    {starts, [update]} = Enum.split(rest, -1)
    call("put_slice", [x, "[" <> Enum.join(starts, ", ") <> "]", update], [])
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
    distribution(family, "", fn name -> texts[args[name]] end, opts)
  end

  defp distribution(%{"name" => name, "components" => components}, prefix, text, opts) do
    inner =
      for {component, place} <- Enum.with_index(components),
          do: distribution(component, "#{prefix}#{place}.", text, %{})

    own =
      for parameter <- Model.Combination.own()[String.to_existing_atom(name)], do: Atom.to_string(parameter)

    own = for parameter <- own, value = text.(prefix <> parameter), do: {parameter, {:text, value}}

    case {name, inner} do
      {"mixture", [_only]} -> call(name, [text.(prefix <> "weights") | inner], opts)
      {"mixture", _list} -> call(name, [text.(prefix <> "weights"), "[#{Enum.join(inner, ", ")}]"], opts)
      {limited, _} when limited in ["truncated", "censored"] -> call(name, inner, own ++ Enum.to_list(opts))
      _ -> call(name, inner ++ for({_name, {:text, value}} <- own, do: value), opts)
    end
  end

  defp distribution(family, prefix, text, opts) do
    call(family, Enum.map(parameters(family), &text.(prefix <> &1)), opts)
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

  defp value(name, sizes) when name in ["shape", "window"], do: inspect(List.to_tuple(sizes))
  defp value("padding" <> _, [_ | _] = rows), do: inspect(Enum.map(rows, &List.to_tuple/1))
  defp value("name", name), do: inspect(name)
  defp value(_name, text) when is_binary(text), do: label(text)
  defp value(_name, value), do: inspect(value, charlists: :as_lists)

  @doc "A name as an atom is written, without making one."
  @spec label(String.t()) :: String.t()
  def label(name), do: if(identifier?(name), do: ":#{name}", else: inspect(name))

  defp identifier?(name), do: name =~ ~r/\A[a-z_][A-Za-z0-9_]*\z/
end
