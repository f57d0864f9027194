defmodule Nutkin.Diagnosis do
  @moduledoc """
  What `Nutkin.debug/3` finds: whether a model is finite at a point, and if not, the node at which that begins.

    * `:finite?` - whether the log density, its gradient and all deterministic values are finite
    * `:value` - the log density: a float, or `:nan`, `:infinity`, `:neg_infinity`
    * `:gradient`, `:position` - flat tensors, on the unconstrained scale
    * `:point` - the parameters, constrained: a map of tensors by name
    * `:cause` - a `t:cause/0`; nil where all is finite, and where every node by itself is
    * `:text` - all of it for a reader, which is also how it prints

  The model is run as it is written, operation by operation. An infinity that does no harm, such as that of a side that
  `select` does not take, is no cause.
  """

  alias Nutkin.Tensor

  @enforce_keys [:finite?, :value, :gradient, :position, :point, :cause, :text]
  defstruct @enforce_keys

  @typedoc """
  A node that is not finite:

    * `:node`, `:kind` - as errors write it, such as `"sqrt(variance)"`, and its kind
    * `:name`, `:index` - of the model's node that it is, or in whose body it is
    * `:within` - the loops and choices around it, such as `["step 3 of scan(x)"]`, counted from 0
    * `:what` - what of it is wrong: its `:value`, its `:log_density`, or the `:gradient` `:by` one of its operands
    * `:found`, `:place`, `:element` - such as `"NaN at [3]"`, `[3]` and `:nan`
    * `:affects` - the name of the node that is wrong because of it
    * `:expected`, `:hint` - what was expected, and what to do
    * `:inputs` - what went into it: `:place` and `:element` belong to the wrong element, `:least` and `:greatest` are
      those of the finite elements, `:nonfinite` counts the others

  Fields that do not apply are nil.
  """
  @type cause :: %{
          node: String.t(),
          kind: String.t(),
          name: String.t(),
          index: non_neg_integer(),
          within: [String.t()],
          what: :value | :log_density | :gradient,
          found: String.t(),
          place: [non_neg_integer()],
          element: Tensor.Type.element(),
          by: String.t() | nil,
          affects: String.t() | nil,
          expected: String.t() | nil,
          hint: String.t() | nil,
          inputs: [input()]
        }

  @type input :: %{
          node: String.t(),
          role: String.t(),
          type: String.t(),
          shape: tuple(),
          place: [non_neg_integer()] | nil,
          element: Tensor.Type.element() | nil,
          least: Tensor.Type.element() | nil,
          greatest: Tensor.Type.element() | nil,
          nonfinite: non_neg_integer()
        }

  @type t :: %__MODULE__{
          finite?: boolean(),
          value: Tensor.Type.element(),
          gradient: Tensor.t(),
          position: Tensor.t(),
          point: %{String.t() => Tensor.t()},
          cause: cause() | nil,
          text: String.t()
        }

  @doc false
  # From the fields of the message, whose scalars are tensors.
  @spec new(map()) :: t()
  def new(%{finite: finite?} = fields) do
    fields = fields |> Map.delete(:finite) |> Map.put(:finite?, finite?) |> numbers([:value])
    struct!(__MODULE__, %{fields | cause: fields.cause && cause(fields.cause)})
  end

  defp cause(cause) do
    inputs = Enum.map(cause.inputs, &numbers(&1, [:element, :least, :greatest]))
    numbers(%{cause | inputs: inputs}, [:element])
  end

  defp numbers(map, keys) do
    Enum.reduce(keys, map, fn key, map -> Map.update!(map, key, &(&1 && Tensor.to_number(&1))) end)
  end

  defimpl String.Chars do
    def to_string(diagnosis), do: diagnosis.text
  end

  defimpl Inspect do
    def inspect(diagnosis, _opts) do
      lines = diagnosis.text |> String.split("\n") |> Enum.map(&("  " <> &1))
      Enum.join(["#Nutkin.Diagnosis<" | lines] ++ [">"], "\n")
    end
  end
end
