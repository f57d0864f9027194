defmodule Nutkin.Nx.Function do
  @moduledoc """
  A function that Nx has traced, as plain data: what the worker computes of its arguments.

  It may be kept, and sent to other processes and nodes, which a traced function may not: there each use of a value would
  become a copy of it.
  """

  alias Nutkin.{Data, Error, Model, Tensor}
  alias Nutkin.Model.Builder
  alias Nutkin.Nx.{Containers, Translation}
  alias Nutkin.Worker.{Client, Request}

  @enforce_keys [:model, :results, :arity, :container]
  defstruct @enforce_keys

  @typedoc "The nodes, those of them that are the results, the container of these, and the number of tensors that it takes."
  @type t :: %__MODULE__{
          model: Model.t(),
          results: [non_neg_integer()],
          container: term(),
          arity: non_neg_integer()
        }

  @doc """
  The function of a graph, `Nx.Defn.Expr` in any container, whose parameters have these types and flat shapes: the sizes of
  vectorized axes, then the others.

  Raises `Nutkin.Error.InvalidModel` for what the worker has no operation for.
  """
  @spec new(term(), [{type :: String.t(), shape :: [pos_integer()]}]) :: t()
  def new(graph, parameters) do
    {nodes, blobs, results} =
      Builder.run(fn ->
        slots =
          for {{type, shape}, place} <- Enum.with_index(parameters) do
            {Builder.named(slot(place), %{"kind" => "data", "shape" => shape, "type" => type}), shape}
          end

        for {node, _shape} <- Translation.write(graph, slots, types: :nx),
            do: Builder.reference(node, "a result")
      end)

    %__MODULE__{
      model: %Model{nodes: nodes, blobs: blobs},
      results: results,
      arity: length(parameters),
      container: Containers.results(graph)
    }
  end

  @doc """
  The values of the results, in the order in which the leaves of the graph's container are, computed by a worker.
  """
  @spec call(t(), [Tensor.source()], GenServer.server(), timeout()) ::
          {:ok, [Tensor.t()]} | {:error, Error.t()}
  def call(%__MODULE__{} = function, arguments, worker, timeout \\ :infinity) do
    named = Map.new(Enum.with_index(arguments), fn {argument, place} -> {slot(place), argument} end)

    with :ok <- check_number(function, arguments),
         {:ok, data} <- Data.encode(function.model, named) do
      body = %{model: Model.to_ir(function.model), data: data.addresses, results: function.results}
      request = Request.new(:evaluate, body, data.blobs)

      case Client.call(worker, request, timeout, [], &collect/2) do
        {{:evaluated, %{values: forms}}, parts} -> {:ok, tensors(forms, parts)}
        {{:error, error}, _parts} -> {:error, error}
      end
    end
  end

  # What errors call an argument.
  defp slot(place), do: "tensor #{place + 1}"

  defp check_number(%{arity: arity}, arguments) do
    if length(arguments) == arity do
      :ok
    else
      error = [
        message: "the function takes another number of tensors",
        expected: "#{arity}",
        found: "#{length(arguments)}"
      ]

      {:error, Error.InvalidData.exception(error)}
    end
  end

  defp collect({:part, part}, parts), do: [part | parts]
  defp collect(_other, parts), do: parts

  # A value that came in one part is that part.
  defp tensors(forms, parts) do
    bytes = parts |> Enum.reverse() |> Enum.group_by(& &1.value, & &1.bytes)

    for {%{shape: shape, type: type}, place} <- Enum.with_index(forms) do
      Tensor.from_binary(IO.iodata_to_binary(bytes[place]), type, shape)
    end
  end

  defimpl Inspect do
    def inspect(function, _opts) do
      "#Nutkin.Nx.Function<#{function.arity} -> #{length(function.results)}, #{length(function.model.nodes)} nodes>"
    end
  end
end
