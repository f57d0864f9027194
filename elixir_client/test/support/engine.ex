defmodule Nutkin.Test.Engine do
  @moduledoc false
  # A model evaluated by the engine, without a port.

  alias Nutkin.{Msgpack, Tensor}
  alias Nutkin.Test.JSON

  @root Path.expand("../../..", __DIR__)
  @peer Path.expand("model_peer.py", __DIR__)

  @doc "The named values and the log density at the origin of the parameters, or the error, as `model_peer.py` tells."
  @spec run(Nutkin.Model.t(), Path.t(), map()) :: map()
  def run(model, dir, data \\ %{}) do
    blobs = for {sha, _blob} <- model.blobs, do: [{:bin, sha}, tensor(model, sha)]
    body = %{"model" => Nutkin.Model.to_ir(model), "data" => data, "blobs" => blobs}
    path = Path.join(dir, "message")
    File.write!(path, Msgpack.encode!(["model", 0, body]))
    paths = [Path.join(@root, "python"), Path.join(@root, "bridge"), System.get_env("PYTHONPATH", "")]
    env = [{"PYTHONPATH", Enum.join(paths, ":")}, {"JAX_PLATFORMS", "cpu"}, {"JAX_ENABLE_X64", "1"}]
    {output, 0} = System.cmd(System.fetch_env!("NUTKIN_PYTHON"), [@peer, path], env: env)
    JSON.decode!(output)
  end

  # A blob holds the payload of a tensor: what msgpack has as an extension.
  defp tensor(model, sha) do
    {:ok, tensor} = model.blobs[sha].iodata |> IO.iodata_to_binary() |> Tensor.Payload.decode()
    tensor
  end
end
