defmodule Nutkin.Worker.Hello do
  @moduledoc false
  # What the port program says of itself first: whether it and this client understand each other.

  alias Nutkin.{Error, Protocol}

  @doc "Whether program and client speak one protocol, and the limits are told that the client keeps."
  @spec check(%{protocol: term(), limits: map()}) :: :ok | {:error, Error.Protocol.t()}
  def check(%{protocol: protocol, limits: limits}) do
    cond do
      protocol != Protocol.version() ->
        {:error,
         Error.Protocol.exception(
           message: "the worker's program and this client speak different protocols",
           expected: "version #{Protocol.version()}",
           found: "version #{protocol}",
           hint: "install the Python package nutkin of the same release as this client"
         )}

      not Enum.all?(["frame", "chunk"], &(is_integer(limits[&1]) and limits[&1] > 0)) ->
        {:error,
         Error.Protocol.exception(
           message: "the worker's program reports no limits",
           path: "$.limits",
           expected: "positive integers frame and chunk",
           found: inspect(limits, limit: 10)
         )}

      true ->
        :ok
    end
  end
end
