defmodule Nutkin.Checkpoint do
  @moduledoc """
  A run at one moment, from which it can be continued: on the same worker or another one, now or another day, to the draws
  that it would have made anyway, to the last bit.

  `Nutkin.Run.checkpoint/1` takes one while a run goes on, and every `Nutkin.Fit` of `Nutkin.sample/2` ends with one.
  `Nutkin.resume/2` goes on from either:

      {:ok, fit} = Nutkin.sample(model, data: data, max_time: 60_000)
      {:ok, fit} = Nutkin.resume(fit)               # the draws that were missing
      {:ok, fit} = Nutkin.resume(fit, more: 500)    # 500 more of each chain

  It holds the model, the data, the options, and the state of every chain. `to_binary/1` makes bytes of it, which may be kept
  in a file or a database; `from_binary/1` reads them, without making an atom or running anything of what is in them. The bytes are those
  of this version of Nutkin: another one, another version of JAX, or a processor of another kind would give other
  draws, so resuming there is a `Nutkin.Error.InvalidCheckpoint`.
  """

  alias Nutkin.{Blob, Error, Msgpack, Options, Tensor}
  alias Nutkin.Worker.Request

  # state: the bytes of the program, nil before it had any; delivered: the draws that came before it, some of them perhaps
  # after the state was taken.
  @enforce_keys [:request, :state, :delivered]
  @derive {Inspect, only: []}
  defstruct @enforce_keys

  @type t :: %__MODULE__{request: Request.t(), state: binary() | nil, delivered: Request.delivered()}

  @version 1

  @doc false
  @spec new(Request.t(), binary() | nil, Request.delivered()) :: t()
  def new(request, state, delivered) do
    %__MODULE__{request: %{request | state: nil, delivered: %{}}, state: state, delivered: delivered}
  end

  @doc false
  # The form in which a state goes to the worker.
  @spec blob(binary()) :: Blob.t()
  def blob(state) do
    {:ok, blob} = Blob.cast(Tensor.from_binary(state, :u8, {byte_size(state)}))
    blob
  end

  @doc false
  # The options of a run that goes on from here: as they were, but for those that were `given` and named. What ends a run early counts
  # anew; what is kept nowhere has its default.
  @spec options(t(), Options.valid(), [atom()]) :: Options.valid()
  def options(%__MODULE__{request: %{options: before}}, given, names) do
    options =
      given
      |> Map.merge(Map.drop(before, [:max_time, :target_ess, :max_rhat]))
      |> Map.merge(Map.take(given, names))

    %{options | draws: options.draws + given.more, worker: given.worker}
  end

  @doc false
  # The request that goes on from here, with other options.
  @spec request(t(), Options.valid()) :: Request.t()
  def request(%__MODULE__{request: request} = checkpoint, options) do
    wire = options |> Options.to_wire() |> Map.put("credit", 0)
    request = Request.put(request, "options", wire)

    %{
      request
      | state: checkpoint.state,
        delivered: checkpoint.delivered,
        options: Map.delete(options, :data),
        credit: options.credit
    }
  end

  @doc """
  The bytes of a checkpoint: the state of the chains, and the model, the data and the options of the run.

  ## Examples

      iex> {:error, error} = Nutkin.Checkpoint.from_binary("something else")
      iex> Exception.message(error)
      "not a checkpoint: bytes that are not msgpack: more bytes after the end of the message; expected what Nutkin.Checkpoint.to_binary/1 has written"

  """
  @spec to_binary(t()) :: binary()
  def to_binary(%__MODULE__{request: request, state: state, delivered: delivered}) do
    blobs =
      for {_sha, blob} <- request.blobs,
          do: %{encoding: blob.encoding, bytes: {:bin, blob.iodata}}

    {:encoded, model} = request.fields["model"]
    {:encoded, data} = request.fields["data"]

    IO.iodata_to_binary(
      Msgpack.encode!(%{
        nutkin_checkpoint: @version,
        model: {:bin, model},
        data: {:bin, data},
        options: Options.to_wire(request.options),
        blobs: blobs,
        state: state && {:bin, state},
        delivered: for({chain, {warmup, sample}} <- delivered, do: [chain, warmup, sample])
      })
    )
  end

  @doc """
  The checkpoint of bytes that `to_binary/1` has written.
  """
  @spec from_binary(binary()) :: {:ok, t()} | {:error, Error.InvalidCheckpoint.t()}
  def from_binary(binary) when is_binary(binary) do
    with {:ok, tree} <- Msgpack.decode(binary),
         {:ok, checkpoint} <- read(tree) do
      {:ok, checkpoint}
    else
      {:error, error} -> {:error, invalid(error)}
    end
  end

  defp read(%{
         "nutkin_checkpoint" => @version,
         "model" => model,
         "data" => data,
         "options" => options,
         "blobs" => blobs,
         "state" => state,
         "delivered" => delivered
       })
       when is_binary(model) and is_binary(data) and is_map(options) and is_list(blobs) and
              (is_nil(state) or is_binary(state)) and is_list(delivered) do
    # What cannot be read would end the program that gets it.
    with {:ok, _tree} <- Msgpack.decode(model),
         {:ok, _tree} <- Msgpack.decode(data),
         {:ok, options} <- Options.from_wire(options),
         {:ok, blobs} <- read_blobs(blobs),
         {:ok, delivered} <- read_delivered(delivered) do
      fields = %{"model" => {:encoded, model}, "data" => {:encoded, data}}
      request = %Request{type: :sample, fields: fields, blobs: blobs, options: options}
      {:ok, %__MODULE__{request: request, state: state, delivered: delivered}}
    end
  end

  defp read(%{"nutkin_checkpoint" => version}) when version != @version do
    {:error, "it is of version #{inspect(version, limit: 5)}, and this Nutkin reads version #{@version}"}
  end

  defp read(_other), do: {:error, "it has not the fields of one"}

  defp read_blobs(blobs) do
    Enum.reduce_while(blobs, {:ok, %{}}, fn
      %{"encoding" => encoding, "bytes" => bytes}, {:ok, read}
      when encoding in ["tensor", "nx"] and is_binary(bytes) ->
        blob = Blob.from_bytes(if(encoding == "nx", do: :nx, else: :tensor), bytes)
        {:cont, {:ok, Map.put(read, blob.sha, blob)}}

      _other, _read ->
        {:halt, {:error, "its data cannot be read"}}
    end)
  end

  # No more chains than a run can have.
  @last_chain 1023

  defp read_delivered(delivered) do
    Enum.reduce_while(delivered, {:ok, %{}}, fn
      [chain, warmup, sample], {:ok, read}
      when chain in 0..@last_chain and is_integer(warmup) and warmup >= 0 and is_integer(sample) and
             sample >= 0 ->
        {:cont, {:ok, Map.put(read, chain, {warmup, sample})}}

      _other, _read ->
        {:halt, {:error, "what was delivered cannot be read"}}
    end)
  end

  defp invalid(%{message: message}), do: invalid(message)

  defp invalid(reason) do
    Error.InvalidCheckpoint.exception(
      message: "not a checkpoint: #{reason}",
      expected: "what Nutkin.Checkpoint.to_binary/1 has written"
    )
  end
end
