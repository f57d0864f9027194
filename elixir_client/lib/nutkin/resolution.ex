defmodule Nutkin.Resolution do
  @moduledoc false
  # The functions over Nx of a model, traced for the shapes that its data give their arguments. The worker knows these.

  alias Nutkin.{Data, Error, Model}
  alias Nutkin.Model.Traced
  alias Nutkin.Worker.{Client, Request}

  @doc "The model without such functions, and the data with what they have captured."
  @spec resolve(Model.t(), Data.t(), map()) :: {:ok, Model.t(), Data.t()} | {:error, Error.t()}
  def resolve(model, data, options) do
    shapes = &shapes(&1, &2, data, options)

    with {:ok, model} <- Traced.resolve(model, shapes) do
      {:ok, model, %{data | blobs: Map.merge(data.blobs, model.blobs)}}
    end
  end

  defp shapes(model, nodes, data, options) do
    body = %{
      model: Model.to_ir(model),
      data: Map.take(data.addresses, Model.slots(model)),
      nodes: nodes,
      options: Map.take(options, [:precision])
    }

    # What functions before this one have captured is in the model.
    request = Request.new(:shapes, body, Map.merge(data.blobs, model.blobs))

    with {:shapes, shapes} <- Client.call(options.worker, request, Map.get(options, :timeout, :infinity)) do
      {:ok, shapes}
    end
  end
end
