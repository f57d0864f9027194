defmodule Nutkin.Model.Builder do
  @moduledoc false
  # The model that is being written: its nodes so far. It lives in the process dictionary for the time of `run/1`, so
  # that statements need not pass it on; models may be written inside each other.
  #
  # A body, such as that of a loop, is written by a builder of its own. What it uses of the nodes around it becomes an
  # argument, and is listed in its captures.

  import Nutkin.Nx.Expression, only: [is_expression: 1]

  alias Nutkin.Blob
  alias Nutkin.Error.{InvalidData, InvalidModel}
  alias Nutkin.Model.{Distribution, Node, Printer}

  @key __MODULE__

  @enforce_keys [:id]
  defstruct [
    :id,
    :around,
    count: 0,
    nodes: [],
    names: %{},
    constants: %{},
    blobs: %{},
    arguments: 0,
    captures: %{},
    known: %{}
  ]

  @kinds %{
    "data" => {"a", "data slot"},
    "rv" => {"a", "free variable"},
    "observe" => {"an", "observation"},
    "factor" => {"a", "factor"},
    "deterministic" => {"a", "deterministic value"}
  }

  @doc "Runs the function behind these nodes, which it gets by their index, as `run/1` does."
  @spec extend([map()], %{binary() => Blob.t()}, ((non_neg_integer() -> Node.t()) -> given)) ::
          {[map()], %{binary() => Blob.t()}, given}
        when given: term()
  def extend(nodes, blobs, fun) do
    builder = %__MODULE__{id: make_ref(), nodes: Enum.reverse(nodes), count: length(nodes), blobs: blobs}
    node = fn index -> %Node{model: builder.id, index: index} end
    within(builder, fn -> fun.(node) end)
  end

  @doc "Runs the function, and gives the nodes that it made, in order, the blobs that they name, and what it gave."
  @spec run((() -> given)) :: {nodes :: [map()], blobs :: %{binary() => Blob.t()}, given} when given: term()
  def run(fun), do: within(%__MODULE__{id: make_ref()}, fun)

  defp within(builder, fun) do
    outer = Process.put(@key, builder)

    try do
      given = fun.()
      builder = Process.get(@key)
      {Enum.reverse(builder.nodes), builder.blobs, given}
    after
      if outer, do: Process.put(@key, outer), else: Process.delete(@key)
    end
  end

  @doc """
  Writes a body of so many arguments: the function is given their nodes, and gives a list of values and whatever else.

  Returns the body as it travels, the references around it that it captures, and what else the function gave.
  """
  @spec body(pos_integer() | 0, String.t(), ([Node.t()] -> {[term()], other})) ::
          {map(), [non_neg_integer()], other}
        when other: term()
  def body(count, what, fun) do
    around = current!()
    Process.put(@key, %__MODULE__{id: make_ref(), around: around})

    try do
      {results, other} = fun.(for _ <- 1..count//1, do: argument())

      results =
        for {result, place} <- Enum.with_index(results, 1), do: reference(result, "value #{place} of #{what}")

      builder = current!()

      captures =
        for {index, _node} <- Enum.sort_by(builder.captures, fn {_index, {position, _node}} -> position end),
            do: index

      Process.put(@key, builder.around)
      nodes = Enum.reverse(builder.nodes)
      {%{"nodes" => nodes, "results" => results}, captures, other}
    rescue
      error ->
        Process.put(@key, around)
        reraise error, __STACKTRACE__
    end
  end

  @doc "Appends a node that gives several values, and the nodes that take each of them."
  @spec several(map(), non_neg_integer()) :: [Node.t()]
  def several(fields, count) do
    node = append(fields, nil)
    for place <- 0..(count - 1)//1, do: append(%{"kind" => "elem", "of" => node.index, "index" => place}, nil)
  end

  @doc "Appends a node of these fields, which gives one value."
  @spec value(map()) :: Node.t()
  def value(fields), do: append(fields, nil)

  @doc "Raises inside of a body, for what can only be in the model itself."
  @spec outermost!(String.t()) :: :ok
  def outermost!(what) do
    if current!().around do
      raise InvalidModel,
        message: "#{what} inside the body of a loop or of an `if`",
        expected: "operations of the model",
        hint: "use it outside, or write the loop over Nx too"
    end

    :ok
  end

  @doc "The names of the nodes of a kind, and these, in the order in which they were written."
  @spec all(String.t()) :: [{String.t(), Node.t()}]
  def all(kind) do
    builder = current!()

    for {%{"kind" => ^kind, "name" => name}, index} <- Enum.with_index(Enum.reverse(builder.nodes)) do
      {name, %Node{model: builder.id, index: index, name: name, op: kind}}
    end
  end

  @doc "Appends a node that has a name of its own."
  @spec named(String.t(), map()) :: Node.t()
  def named(name, %{"kind" => kind} = fields) do
    builder = current!()

    if builder.around do
      {article, statement} = @kinds[kind]

      raise InvalidModel,
        message: "#{name} is #{article} #{statement} inside the body of a loop or of an `if`",
        node: name,
        expected: "operations, and log_prob(distribution, x) for a log density",
        hint: "a body only computes values: use them outside of it, as in factor(name, sum(terms))"
    end

    case builder.names do
      %{^name => other} -> raise taken(name, kind, other)
      names -> Process.put(@key, %{builder | names: Map.put(names, name, kind)})
    end

    append(Map.put(fields, "name", name), name)
  end

  defp taken(name, kind, other) do
    {{_, new}, {article, old}} = {@kinds[kind], @kinds[other]}

    hint =
      case {kind, other} do
        {"data", "data"} -> "declare the slot once, and use the variable that it is bound to"
        {"rv", "rv"} -> "in a loop give the distribution a name: name: \"#{name}_\#{i}\""
        {same, same} -> "give each #{new} a name of its own, such as \"#{name}_\#{i}\" in a loop"
        {"observe", _} -> "give the observation a name of its own, such as #{Printer.label(name <> "_obs")}"
        {_, _} -> "give the #{new} a name of its own"
      end

    InvalidModel.exception(
      message: "#{name} is already the name of #{article} #{old}",
      node: name,
      hint: hint
    )
  end

  @doc "Appends the call of an operation."
  @spec call(String.t(), [term()], map()) :: Node.t()
  def call(op, args, opts), do: op |> call_fields(args, opts) |> append(nil)

  @doc "Appends the call of an operation that gives several values, and the nodes that take each of them."
  @spec call(String.t(), [term()], map(), pos_integer()) :: [Node.t()]
  def call(op, args, opts, count), do: op |> call_fields(args, opts) |> several(count)

  defp call_fields(op, args, opts) do
    references =
      for {arg, place} <- Enum.with_index(args, 1), do: reference(arg, "argument #{place} of #{op}")

    %{"kind" => "call", "op" => op, "args" => references, "opts" => opts}
  end

  @doc "What this key stands for in the model or body that is being written, or around it: at first what the function gives."
  @spec once(term(), (() -> value)) :: value when value: term()
  def once(key, fun) do
    with :error <- known(current!(), key) do
      value = fun.()
      Process.put(@key, put_in(current!().known[key], value))
      value
    else
      {:ok, value} -> value
    end
  end

  defp known(nil, _key), do: :error
  defp known(builder, key), do: with(:error <- Map.fetch(builder.known, key), do: known(builder.around, key))

  @doc "The node of a value: itself, or the constant that a number, list or tensor becomes."
  @spec node(term(), String.t()) :: Node.t()
  def node(%Node{} = node, what) do
    case captured(current!(), node) do
      {builder, node} ->
        Process.put(@key, builder)
        node

      :error ->
        raise InvalidModel,
          message: "#{what} belongs to another model",
          node: node.name,
          hint:
            "a node can be used only inside the block in which it was made, and not outside of its loop or `if`"
    end
  end

  def node(%Distribution{family: family}, what) do
    raise InvalidModel,
      message: "#{what} is a distribution, not a value",
      found: Distribution.label(family),
      hint: "give it a name first: x <~ #{Distribution.label(family)}(...)"
  end

  def node(float, _what) when is_float(float), do: constant({:number, <<float::float>>}, %{"value" => float})

  def node(integer, what) when is_integer(integer) do
    if integer in -(2 ** 63)..(2 ** 64 - 1) do
      constant({:number, integer}, %{"value" => integer})
    else
      raise InvalidModel, message: "#{what} is too large", expected: "at most 64 bits", found: "#{integer}"
    end
  end

  def node(traced, what) when is_expression(traced) do
    raise InvalidModel,
      message: "#{what} is what Nx traces, and not a value of the model",
      hint:
        "operators in the block of a model are the model's: a function over Nx has Nx.multiply/2 and so on, or calls a defn"
  end

  def node(value, what) do
    case Blob.cast(value) do
      {:ok, blob} ->
        {builder, node} = tensor(current!(), blob)
        Process.put(@key, builder)
        node

      {:error, error} ->
        raise not_a_value(error, value, what)
    end
  end

  @doc "The reference to a value, as a node has it: an index."
  @spec reference(term(), String.t()) :: non_neg_integer()
  def reference(value, what), do: node(value, what).index

  @doc "The text of a name that was given as an atom or a string, where `form` shows how the statement is written."
  @spec name!(term(), String.t()) :: String.t()
  def name!(name, form) when is_atom(name) and name not in [nil, true, false],
    do: name!(Atom.to_string(name), form)

  def name!(name, form) do
    if is_binary(name) and name != "" and String.valid?(name) do
      name
    else
      raise InvalidModel,
        message: "not a name, as #{form} needs",
        expected: "an atom or a string",
        found: inspect(name, limit: 5)
    end
  end

  # A constant that occurs twice is one node.
  defp constant(key, fields) do
    {builder, node} = constant(current!(), key, fields)
    Process.put(@key, builder)
    node
  end

  defp constant(builder, key, fields) do
    case builder.constants do
      %{^key => node} ->
        {builder, node}

      _new ->
        {builder, node} = append(builder, Map.put(fields, "kind", "constant"), nil)
        {put_in(builder.constants[key], node), node}
    end
  end

  # A body holds no tensors: it captures those of the model around it.
  defp tensor(%{around: nil} = builder, blob) do
    builder = %{builder | blobs: Map.put_new(builder.blobs, blob.sha, blob)}
    constant(builder, {:blob, blob.sha}, %{"blob" => {:bin, blob.sha}})
  end

  defp tensor(builder, blob) do
    {around, node} = tensor(builder.around, blob)
    captured(%{builder | around: around}, node)
  end

  # The node itself, or the argument that stands for it in a body.
  defp captured(%{id: id} = builder, %Node{model: id} = node), do: {builder, node}
  defp captured(%{around: nil}, _node), do: :error

  defp captured(builder, node) do
    with {around, %Node{index: index, name: name}} <- captured(builder.around, node) do
      builder = %{builder | around: around}

      case builder.captures do
        %{^index => {_position, argument}} ->
          {builder, argument}

        captures ->
          {builder, argument} = argument(builder, name)
          {%{builder | captures: Map.put(captures, index, {map_size(captures), argument})}, argument}
      end
    end
  end

  defp argument do
    {builder, node} = argument(current!(), nil)
    Process.put(@key, builder)
    node
  end

  defp argument(builder, name) do
    fields = %{"kind" => "argument", "index" => builder.arguments}
    fields = if name, do: Map.put(fields, "name", name), else: fields
    append(%{builder | arguments: builder.arguments + 1}, fields, name)
  end

  defp append(fields, name) do
    {builder, node} = append(current!(), fields, name)
    Process.put(@key, builder)
    node
  end

  defp append(builder, fields, name) do
    node = %Node{model: builder.id, index: builder.count, name: name, op: fields["op"] || fields["kind"]}
    {%{builder | nodes: [fields | builder.nodes], count: builder.count + 1}, node}
  end

  defp current! do
    with nil <- Process.get(@key) do
      raise InvalidModel,
        message: "no model is being written",
        hint: "statements and operations belong inside `model do ... end`, in the process that runs it"
    end
  end

  defp not_a_value(%InvalidData{} = error, value, what) do
    nodes? = is_list(value) and Enum.any?(List.flatten(value), &is_struct(&1, Node))

    InvalidModel.exception(
      message: "#{what} is not a value: #{error.message}",
      path: error.path,
      expected: error.expected,
      found: error.found,
      hint: if(nodes?, do: "stack([...]) joins nodes", else: error.hint)
    )
  end
end
