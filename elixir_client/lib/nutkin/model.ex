defmodule Nutkin.Model do
  @moduledoc """
  Models: written in Elixir, run by a worker.

      import Nutkin.Model

      schools =
        model do
          y = data(:y)
          sigma = data(:sigma)
          mu <~ normal(0, 5)
          tau <~ half_cauchy(5)
          theta <~ normal(mu, tau, shape: {8}, centered: false)
          observe(:obs, normal(theta, sigma), y)
        end

  The block is ordinary Elixir that runs once, and writes down what it is told: with variables and lists from around it,
  loops, and functions. What can be said in it is described in `Nutkin.Model.Language`, also how to choose by a value of
  the model: not by `if`, `case` or `cond`, which decide while it is written.

  The result is plain data: a list of nodes, which refer to each other by their place, and the tensors that the block
  captured, stored by their content. It may be kept, compared, and sent to other nodes; running it with new data of the
  same shape compiles nothing anew. (Functions over Nx stay in it as they are until it is run: they go where their code is.)

      iex> import Nutkin.Model
      iex> model do
      ...>   mu <~ normal(0, 5)
      ...>   observe(:y, normal(mu, 1.5), [1.0, 2.0, 4.5])
      ...> end
      #Nutkin.Model<
        mu <~ normal(0, 5)
        observe(:y, normal(mu, 1.5), tensor(37 bytes))
      >

  """

  alias Nutkin.Blob
  alias Nutkin.Model.{Builder, Node}

  @version 1

  @enforce_keys [:nodes, :blobs]
  defstruct [:nodes, :blobs]

  @typedoc "The nodes as they travel, and the captured tensors by their address."
  @type t :: %__MODULE__{nodes: [ir_node()], blobs: %{binary() => Blob.t()}}

  @type ir_node :: %{String.t() => term()}

  @doc """
  Makes a model of a block in the language of `Nutkin.Model.Language`.

  The language is there only inside the block. Raises `Nutkin.Error.InvalidModel` where the model is wrong.
  """
  defmacro model(do: block) do
    quote do
      Nutkin.Model.build(fn ->
        use Nutkin.Model.Language
        unquote(block)
      end)
    end
  end

  @doc """
  Makes a model of a function that calls those of `Nutkin.Model.Language`; `model/1` is this with the language imported.

  ## Examples

      iex> alias Nutkin.Model.Language
      iex> model = Nutkin.Model.build(fn -> Language.data(:y) end)
      iex> model.nodes
      [%{"kind" => "data", "name" => "y"}]

  """
  @spec build((() -> term())) :: t()
  def build(fun) when is_function(fun, 0) do
    {nodes, blobs, _given} = Builder.run(fun)
    %__MODULE__{nodes: nodes, blobs: blobs}
  rescue
    error in Protocol.UndefinedError -> reraise Node.explained(error), __STACKTRACE__
  end

  @doc """
  The model as it travels: the `model` of a request.

  ## Examples

      iex> Nutkin.Model.to_ir(Nutkin.Model.build(fn -> :ok end))
      %{"version" => 1, "nodes" => []}

  """
  @spec to_ir(t()) :: %{String.t() => term()}
  def to_ir(%__MODULE__{nodes: nodes}), do: %{"version" => @version, "nodes" => nodes}

  @doc """
  The names of the data slots, in the order of the model.

  ## Examples

      iex> import Nutkin.Model
      iex> Nutkin.Model.slots(model do data(:x); data(:y) end)
      ["x", "y"]

  """
  @spec slots(t()) :: [String.t()]
  def slots(%__MODULE__{nodes: nodes}), do: for(%{"kind" => "data", "name" => name} <- nodes, do: name)

  @doc """
  The names of the free variables, in the order of the model.

  ## Examples

      iex> import Nutkin.Model
      iex> Nutkin.Model.parameters(model do mu <~ normal(0, 1); observe(:y, normal(mu, 1), [0.5]) end)
      ["mu"]

  """
  @spec parameters(t()) :: [String.t()]
  def parameters(%__MODULE__{nodes: nodes}), do: for(%{"kind" => "rv", "name" => name} <- nodes, do: name)

  defimpl Inspect do
    import Inspect.Algebra

    def inspect(model, %{limit: limit}) do
      lines = Nutkin.Model.Printer.lines(model)
      {shown, left} = if limit == :infinity, do: {lines, []}, else: Enum.split(lines, limit)
      more = if left == [], do: [], else: ["... #{length(left)} more"]
      body = Enum.map(shown ++ more, &concat(line(), &1))
      force_unfit(concat(["#Nutkin.Model<", nest(concat(body), 2), line(), ">"]))
    end
  end
end
