defmodule Nutkin.Model.Node do
  @moduledoc """
  A value inside a model: what `data/1`, `<~` and every operation of `Nutkin.Model.Language` give.

  It stands for a tensor that exists only when the model runs, and belongs to the model in which it was made.

  ## Indexing

  A node is indexed as in Nx, axis by axis from the first; axes that are not named stay whole:

    * `x[2]` - the entry 2 of the first axis, which is dropped; `x[-1]` is the last one
    * `x[0..2]`, `x[1..-1//1]`, `x[..]` - a range of it, both ends included, also with another step, `x[0..-1//2]`
    * `x[[.., 1]]` - an index or a range for each axis
    * `x[index]` with an integer node - `take(x, index)`, for one entry or many. A list or tensor of indices is given to
      `take/2` itself, as a list in brackets is an index for each axis

  Sizes are not known while a model is written: an index outside its axis is an error of the model when it is compiled.
  """

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.Builder

  @enforce_keys [:model, :index]
  defstruct [:model, :index, :name, :op]

  @typedoc "A node by its place in its model, its name if it has one, and what it computes."
  @type t :: %__MODULE__{
          model: reference(),
          index: non_neg_integer(),
          name: String.t() | nil,
          op: String.t() | nil
        }

  @behaviour Access

  @impl true
  def fetch(%__MODULE__{} = node, %__MODULE__{} = index), do: {:ok, Builder.call("take", [node, index], %{})}
  def fetch(%__MODULE__{} = node, keys) when is_list(keys) and keys != [], do: {:ok, index(node, keys)}
  def fetch(%__MODULE__{} = node, key), do: {:ok, index(node, [key])}

  @impl true
  def get_and_update(_node, _key, _fun), do: raise(InvalidModel, "a node cannot be changed; make a new one")

  @impl true
  def pop(_node, _key), do: raise(InvalidModel, "a node cannot be changed; make a new one")

  # One slice for all axes, after which the axes with a single index go. The sizes of the axes are not known here: what
  # counts from the end is sent as it is.
  defp index(node, keys) do
    {starts, lengths, strides} = keys |> Enum.map(&bounds/1) |> unzip3()
    sliced = Builder.call("slice", [node], slice_opts(starts, lengths, strides))

    case for({key, axis} <- Enum.with_index(keys), is_integer(key), do: axis) do
      [] -> sliced
      axes -> Builder.call("squeeze", [sliced], %{"axes" => axes})
    end
  end

  defp slice_opts(starts, lengths, strides) do
    opts = %{"starts" => starts, "lengths" => lengths}
    if Enum.all?(strides, &(&1 == 1)), do: opts, else: Map.put(opts, "strides", strides)
  end

  defp unzip3(triples) do
    {Enum.map(triples, &elem(&1, 0)), Enum.map(triples, &elem(&1, 1)), Enum.map(triples, &elem(&1, 2))}
  end

  # A length of -n leaves out the last n, so that 0 goes to the end.
  defp bounds(index) when is_integer(index), do: {index, 1, 1}

  # Elixir reads 1..-1 as a range that goes down.
  defp bounds(first..last//-1) when first >= 0 and last < 0, do: {first, last + 1, 1}

  defp bounds(first..last//step) when step > 0 and first >= 0 and last < 0, do: {first, last + 1, step}

  defp bounds(first..last//step) when step > 0 and first >= 0 == last >= 0 and first <= last do
    {first, last - first + 1, step}
  end

  defp bounds(key) do
    raise InvalidModel,
      message: "a node cannot be indexed so",
      expected:
        "an integer, a range that goes up (such as 0..2 or 1..-1//1), a list with one of these for each axis, or a node",
      found: inspect(key, limit: 5),
      hint: "take(x, indices) takes the entries at the indices of a list or tensor"
  end

  # What the functions of Elixir ask of a list or a text, which a node is not.

  defimpl Enumerable do
    def reduce(node, _acc, _fun),
      do: raise(Nutkin.Model.Node.not_yet(node, "a list", "sum/2, take/2, x[0..2]"))

    def count(node),
      do: raise(Nutkin.Model.Node.not_yet(node, "a list", "the sizes that you have from your data"))

    def member?(node, _value), do: raise(Nutkin.Model.Node.not_yet(node, "a list", "any(x == value)"))
    def slice(node), do: raise(Nutkin.Model.Node.not_yet(node, "a list", "x[0..2]"))
  end

  defimpl String.Chars do
    def to_string(node), do: raise(Nutkin.Model.Node.not_yet(node, "a text", "deterministic(name, x)"))
  end

  @doc false
  def not_yet(node, wanted, instead) do
    InvalidModel.exception(
      message: "#{node.name || "a node"} is a value that exists only when the model runs, not #{wanted}",
      node: node.name,
      hint: "use #{instead}"
    )
  end

  @doc false
  # What Nx raises of a node, told as that. Nx may be missing, so that a node has no implementation of its protocols.
  @spec explained(Exception.t()) :: Exception.t()
  def explained(%Protocol.UndefinedError{protocol: protocol, value: %__MODULE__{} = node})
      when protocol in [Nx.LazyContainer, Nx.Container],
      do: not_yet(node, "a tensor of Nx", "nx(fn x -> … end, [x]) to give it to a function over Nx")

  def explained(error), do: error

  defimpl Inspect do
    def inspect(node, _opts), do: "#Nutkin.Model.Node<#{node.name || "#{node.op}(…)"}>"
  end
end
