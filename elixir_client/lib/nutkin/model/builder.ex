defmodule Nutkin.Model.Builder do
  @moduledoc false
  # The model that is being written: its nodes so far. It lives in the process dictionary for the time of `run/1`, so
  # that statements need not pass it on; models may be written inside each other.

  alias Nutkin.Blob
  alias Nutkin.Error.{InvalidData, InvalidModel}
  alias Nutkin.Model.{Distribution, Node, Printer}

  @key __MODULE__

  @enforce_keys [:id]
  defstruct [:id, count: 0, nodes: [], names: %{}, constants: %{}, blobs: %{}]

  @type result :: {nodes :: [map()], blobs :: %{binary() => Blob.t()}}

  @doc "Runs the function, and gives the nodes that it made, in order, and the blobs that they name."
  @spec run((() -> term())) :: result()
  def run(fun) do
    outer = Process.put(@key, %__MODULE__{id: make_ref()})

    try do
      fun.()
      builder = Process.get(@key)
      {Enum.reverse(builder.nodes), builder.blobs}
    after
      if outer, do: Process.put(@key, outer), else: Process.delete(@key)
    end
  end

  @doc "Appends a node that has a name of its own."
  @spec named(String.t(), map()) :: Node.t()
  def named(name, %{"kind" => kind} = fields) do
    builder = current!()

    case builder.names do
      %{^name => other} -> raise taken(name, kind, other)
      names -> Process.put(@key, %{builder | names: Map.put(names, name, kind)})
    end

    append(Map.put(fields, "name", name), name)
  end

  @kinds %{
    "data" => {"a", "data slot"},
    "rv" => {"a", "free variable"},
    "observe" => {"an", "observation"},
    "factor" => {"a", "factor"},
    "deterministic" => {"a", "deterministic value"}
  }

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
  def call(op, args, opts) do
    references =
      for {arg, place} <- Enum.with_index(args, 1), do: reference(arg, "argument #{place} of #{op}")

    append(%{"kind" => "call", "op" => op, "args" => references, "opts" => opts}, nil)
  end

  @doc "The node of a value: itself, or the constant that a number, list or tensor becomes."
  @spec node(term(), String.t()) :: Node.t()
  def node(%Node{} = node, what) do
    if node.model != current!().id do
      raise InvalidModel,
        message: "#{what} belongs to another model",
        node: node.name,
        hint: "a node can be used only inside the block in which it was made"
    end

    node
  end

  def node(%Distribution{family: family}, what) do
    raise InvalidModel,
      message: "#{what} is a distribution, not a value",
      found: family,
      hint: "give it a name first: x <~ #{family}(...)"
  end

  def node(float, _what) when is_float(float), do: constant({:number, <<float::float>>}, %{"value" => float})

  def node(integer, what) when is_integer(integer) do
    if integer in -(2 ** 63)..(2 ** 64 - 1) do
      constant({:number, integer}, %{"value" => integer})
    else
      raise InvalidModel, message: "#{what} is too large", expected: "at most 64 bits", found: "#{integer}"
    end
  end

  def node(value, what) do
    case Blob.cast(value) do
      {:ok, blob} ->
        builder = current!()
        Process.put(@key, %{builder | blobs: Map.put_new(builder.blobs, blob.sha, blob)})
        constant({:blob, blob.sha}, %{"blob" => {:bin, blob.sha}})

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
    builder = current!()

    case builder.constants do
      %{^key => node} ->
        node

      _new ->
        node = append(Map.put(fields, "kind", "constant"), nil)
        Process.put(@key, put_in(Process.get(@key).constants[key], node))
        node
    end
  end

  defp append(fields, name) do
    builder = current!()
    Process.put(@key, %{builder | nodes: [fields | builder.nodes], count: builder.count + 1})
    %Node{model: builder.id, index: builder.count, name: name}
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
