defmodule Nutkin.Test.Engine do
  @moduledoc false
  # Models evaluated by the engine, without a port.

  alias Nutkin.{Data, Error, Model, Msgpack, Tensor}
  alias Nutkin.Test.JSON

  @root Path.expand("../../..", __DIR__)
  @peer Path.expand("model_peer.py", __DIR__)

  @doc "The named values and the log density at the origin of the parameters, or the error, as `model_peer.py` tells."
  @spec run(Model.t(), Path.t(), map()) :: map()
  def run(model, dir, data \\ %{}) do
    [answer] = answers([message(model, data, model.blobs)], dir)
    answer
  end

  @doc """
  What comes of each model with its data, both as `Nutkin.sample/2` takes them: the named values and the log density at
  the origin, or the error that a caller would get. One process evaluates them all.
  """
  @spec run_all([{Model.t(), map()}], Path.t()) :: [{:ok, map()} | {:error, Exception.t()}]
  def run_all(models, dir) do
    encoded = for {model, data} <- models, do: encode(model, data)
    {answers, []} = for({:ok, message} <- encoded, do: message) |> answers(dir) |> merge(encoded)
    answers
  end

  defp encode(model, data) do
    values = Map.new(data, fn {name, value} -> {to_string(name), value} end)

    with {:ok, %{addresses: addresses, blobs: blobs}} <- Data.encode(model, values) do
      tensors = Map.new(addresses, fn {name, {:bin, sha}} -> {name, tensor(blobs, sha)} end)
      {:ok, message(model, tensors, model.blobs)}
    end
  end

  # The answers of the engine in the places of the models that came so far.
  defp merge(answers, encoded) do
    Enum.map_reduce(encoded, answers, fn
      {:error, error}, answers -> {{:error, error}, answers}
      {:ok, _message}, [%{"error" => body} | answers] -> {{:error, Error.from_wire(body)}, answers}
      {:ok, _message}, [values | answers] -> {{:ok, values}, answers}
    end)
  end

  defp message(model, data, blobs) do
    blobs = for {sha, _blob} <- blobs, do: [{:bin, sha}, tensor(blobs, sha)]
    %{"model" => Model.to_ir(model), "data" => data, "blobs" => blobs}
  end

  defp answers(messages, dir) do
    path = Path.join(dir, "message")
    File.write!(path, Msgpack.encode!(["models", 0, %{"models" => messages}]))
    paths = [Path.join(@root, "python"), Path.join(@root, "bridge"), System.get_env("PYTHONPATH", "")]
    env = [{"PYTHONPATH", Enum.join(paths, ":")}, {"JAX_PLATFORMS", "cpu"}, {"JAX_ENABLE_X64", "1"}]
    {output, 0} = System.cmd(System.fetch_env!("NUTKIN_PYTHON"), [@peer, path], env: env)
    JSON.decode!(output)
  end

  # A blob holds the payload of a tensor: what msgpack has as an extension.
  defp tensor(blobs, sha) do
    {:ok, tensor} = blobs[sha].iodata |> IO.iodata_to_binary() |> Tensor.Payload.decode()
    tensor
  end
end
