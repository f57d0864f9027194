defmodule Nutkin.Protocol do
  @moduledoc """
  The messages of the wire: frames of the requests that a client sends, and typed events of what the port answers.

  What comes in is checked against one table. Whatever is missing or of the wrong type gives a
  `Nutkin.Error.Protocol` that names the field; fields that are not in the table are left alone.
  """

  alias Nutkin.{Blob, Diagnosis, Draws, Error, Msgpack, Progress, Tensor}

  @version 1

  @typedoc "What `:compiled` says of the model that was compiled. Of predictions, `:predicted` are the values of a draw."
  @type compiled :: %{
          parameters: [%{name: String.t(), shape: tuple(), type: String.t(), size: non_neg_integer()}],
          deterministic: [%{name: String.t(), shape: tuple(), type: String.t()}],
          observed: [String.t()],
          predicted: [%{name: String.t(), shape: tuple(), type: String.t()}],
          dimension: non_neg_integer(),
          rewrites: [%{name: String.t(), node: String.t()}],
          cached: boolean(),
          seconds: number()
        }

  @typedoc "How a run ended: `:seconds` are wall times, `:warmup` until the last chain had ended it."
  @type done :: %{
          status: :complete | :converged | :max_time | :cancelled,
          chains: [
            %{
              chain: non_neg_integer(),
              draws: non_neg_integer(),
              warmup: non_neg_integer(),
              divergences: non_neg_integer(),
              step_size: number(),
              inverse_mass: Tensor.t(),
              gradients: non_neg_integer()
            }
          ],
          pilot:
            %{centering: %{String.t() => Tensor.t()}, gradients: non_neg_integer(), seconds: number()} | nil,
          seconds: %{compile: number(), warmup: number(), sample: number()}
        }

  @typedoc """
  What a program says of a run: whether it is `:waiting` for data or for its turn, `:compiling` or `:running`, the `:credit` that
  is left, the `:seconds` since it got the request, and how far each chain is.
  """
  @type info :: %{
          stage: :waiting | :compiling | :running,
          paused: boolean(),
          credit: non_neg_integer(),
          seconds: number(),
          chains: [Progress.t()]
        }

  @typedoc "An answer of the port."
  @type event ::
          {:hello, map()}
          | {:need, [binary()]}
          | {:compiling, map()}
          | {:checkpoint, %{size: non_neg_integer(), offset: non_neg_integer(), bytes: binary()}}
          | {:info, info()}
          | {:compiled, compiled()}
          | {:progress, Progress.t()}
          | {:draws, Draws.t()}
          | {:done, done()}
          | {:value, %{value: Tensor.Type.element(), gradient: Tensor.t(), position: Tensor.t()}}
          | {:diagnosis, Diagnosis.t()}
          | {:shapes, [%{shape: tuple(), type: String.t()}]}
          | {:part, %{value: non_neg_integer(), offset: non_neg_integer(), bytes: binary()}}
          | {:evaluated,
             %{values: [%{shape: tuple(), type: String.t()}], cached: boolean(), seconds: number()}}
          | {:pong, map()}
          | {:log, %{level: Logger.level(), source: String.t(), text: String.t()}}
          | {:error, Error.t()}

  @phases %{"warmup" => :warmup, "sample" => :sample}
  @statuses %{
    "complete" => :complete,
    "converged" => :converged,
    "max_time" => :max_time,
    "cancelled" => :cancelled
  }
  @stages %{"waiting" => :waiting, "compiling" => :compiling, "running" => :running}
  @whats %{"value" => :value, "log_density" => :log_density, "gradient" => :gradient}
  @levels %{"debug" => :debug, "info" => :info, "warning" => :warning, "error" => :error}

  @parameter [name: :string, shape: :shape, type: :string, size: :count]
  @deterministic [name: :string, shape: :shape, type: :string]
  @form [shape: :shape, type: :string]
  @chain [
    chain: :count,
    draws: :count,
    warmup: :count,
    divergences: :count,
    step_size: :number,
    inverse_mass: :tensor,
    gradients: :count
  ]

  @progress [
    chain: :count,
    phase: {:one_of, @phases},
    iteration: :count,
    total: :count,
    divergences: :count,
    step_size: :number,
    tree_depth: :number,
    gradients: :count,
    draws: :count,
    gradients_per_second: :number,
    seconds_left: {:nullable, :number}
  ]

  @input [
    node: :string,
    role: :string,
    type: :string,
    shape: :shape,
    place: {:nullable, {:list, :count}},
    element: {:nullable, :tensor},
    least: {:nullable, :tensor},
    greatest: {:nullable, :tensor},
    nonfinite: :count
  ]
  @cause [
    node: :string,
    name: :string,
    index: :count,
    kind: :string,
    what: {:one_of, @whats},
    within: {:list, :string},
    found: :string,
    place: {:list, :count},
    element: :tensor,
    by: {:nullable, :string},
    affects: {:nullable, :string},
    expected: {:nullable, :string},
    hint: {:nullable, :string},
    inputs: {:list, {:fields, @input}}
  ]

  @messages %{
    "hello" => {:hello, [protocol: :count, versions: :map, limits: :map, pid: :count]},
    "need" => {:need, [blobs: {:list, :string}]},
    "compiled" =>
      {:compiled,
       [
         parameters: {:list, {:fields, @parameter}},
         deterministic: {:list, {:fields, @deterministic}},
         observed: {:list, :string},
         predicted: {:list, {:fields, @deterministic}},
         dimension: :count,
         rewrites: {:list, {:fields, [name: :string, node: :string]}},
         cached: :boolean,
         seconds: :number
       ]},
    "compiling" => {:compiling, []},
    "progress" => {:progress, @progress},
    "checkpoint" => {:checkpoint, [size: :count, offset: :count, bytes: :string]},
    "info" =>
      {:info,
       [
         stage: {:one_of, @stages},
         paused: :boolean,
         credit: :count,
         seconds: :number,
         chains: {:list, {:fields, @progress}}
       ]},
    "draws" =>
      {:draws,
       [
         chain: :count,
         phase: {:one_of, @phases},
         start: :count,
         count: :count,
         variables: :tensors,
         stats: :tensors
       ]},
    "done" =>
      {:done,
       [
         status: {:one_of, @statuses},
         chains: {:list, {:fields, @chain}},
         pilot: {:nullable, {:fields, [centering: :tensors, gradients: :count, seconds: :number]}},
         seconds: {:fields, [compile: :number, warmup: :number, sample: :number]}
       ]},
    "value" => {:value, [value: :tensor, gradient: :tensor, position: :tensor]},
    "diagnosis" =>
      {:diagnosis,
       [
         finite: :boolean,
         value: :tensor,
         gradient: :tensor,
         position: :tensor,
         point: :tensors,
         cause: {:nullable, {:fields, @cause}},
         text: :string
       ]},
    "shapes" => {:shapes, [nodes: {:list, {:fields, @form}}]},
    "part" => {:part, [value: :count, offset: :count, bytes: :string]},
    "evaluated" => {:evaluated, [values: {:list, {:fields, @form}}, cached: :boolean, seconds: :number]},
    "pong" =>
      {:pong,
       [
         resident: :count,
         requests: :count,
         blobs: {:fields, [count: :count, bytes: :count]},
         compilations: :count,
         seconds: :number,
         devices: {:list, :map}
       ]},
    "log" => {:log, [level: {:one_of, @levels}, source: :string, text: :string]}
  }

  @doc """
  The version of the protocol that this client speaks.

      iex> Nutkin.Protocol.version()
      1
  """
  @spec version() :: pos_integer()
  def version, do: @version

  @doc """
  The bytes of the body of a message. They are made apart from the frame, since it is the caller who knows the body
  and the worker who chooses the id.
  """
  @spec body(map()) :: iodata()
  def body(body), do: Msgpack.encode!(body)

  @doc """
  The frame of a message whose body is encoded already.

      iex> body = Nutkin.Protocol.body(%{})
      iex> IO.iodata_to_binary(Nutkin.Protocol.frame("ping", 7, body))
      <<0x93, 0xA4, "ping", 7, 0x80>>
  """
  @spec frame(String.t(), non_neg_integer(), iodata()) :: iodata()
  def frame(type, id, body), do: [<<0x93>>, Msgpack.encode!(type), Msgpack.encode!(id), body]

  @doc "The frame that carries the bytes of a blob from `offset` on."
  @spec put(non_neg_integer(), Blob.t(), non_neg_integer(), iodata()) :: iodata()
  def put(id, %Blob{} = blob, offset, bytes) do
    put = %{
      blob: {:bin, blob.sha},
      encoding: blob.encoding,
      size: blob.size,
      offset: offset,
      bytes: {:bin, bytes}
    }

    frame("put", id, body(put))
  end

  @doc """
  Reads a frame into its id and its event.

      iex> frame = Nutkin.Msgpack.encode!(["log", 0, %{level: "info", source: "stdout", text: "hi"}])
      iex> Nutkin.Protocol.read(IO.iodata_to_binary(frame))
      {:ok, 0, {:log, %{level: :info, source: "stdout", text: "hi"}}}

      iex> frame = Nutkin.Msgpack.encode!(["need", 3, %{blobs: 5}])
      iex> {:error, error} = Nutkin.Protocol.read(IO.iodata_to_binary(frame))
      iex> Exception.message(error)
      "a field of need that cannot be read (at $.blobs); expected a list; found 5"
  """
  @spec read(binary()) :: {:ok, non_neg_integer(), event()} | {:error, Error.Protocol.t()}
  def read(frame) do
    with {:ok, message} <- Msgpack.decode(frame),
         {:ok, type, id, body} <- parts(message),
         {:ok, event} <- event(type, body) do
      {:ok, id, event}
    end
  end

  defp parts([type, id, body]) when is_binary(type) and is_integer(id) and id >= 0 and is_map(body) do
    {:ok, type, id, body}
  end

  defp parts(other) do
    {:error,
     Error.Protocol.exception(message: "not a message", expected: "[type, id, body]", found: show(other))}
  end

  defp event("error", body), do: {:ok, {:error, Error.from_wire(body)}}

  defp event(type, body) do
    case Map.fetch(@messages, type) do
      {:ok, {name, fields}} ->
        {:ok, finish(name, field!({:fields, fields}, body, "$"))}

      :error ->
        expected = "one of #{Enum.join(["error" | Map.keys(@messages)], ", ")}"

        {:error,
         Error.Protocol.exception(message: "an unknown message", expected: expected, found: show(type))}
    end
  catch
    {:invalid, path, expected, found} ->
      message = "a field of #{type} that cannot be read"
      {:error, Error.Protocol.exception(message: message, path: path, expected: expected, found: show(found))}
  end

  defp finish(:progress, fields), do: {:progress, struct!(Progress, fields)}
  defp finish(:info, fields), do: {:info, %{fields | chains: Enum.map(fields.chains, &struct!(Progress, &1))}}
  defp finish(:draws, fields), do: {:draws, struct!(Draws, fields)}
  defp finish(:shapes, fields), do: {:shapes, fields.nodes}
  defp finish(:need, fields), do: {:need, fields.blobs}
  defp finish(:value, fields), do: {:value, %{fields | value: Tensor.to_number(fields.value)}}
  defp finish(:diagnosis, fields), do: {:diagnosis, Diagnosis.new(fields)}
  defp finish(name, fields), do: {name, fields}

  # A field that may be nil must be there all the same.
  defp member!({:nullable, type}, body, key, path) do
    case body do
      %{^key => nil} -> nil
      _ -> field!(type, Map.get(body, key), path)
    end
  end

  defp member!(type, body, key, path), do: field!(type, Map.get(body, key), path)

  defp field!({:fields, fields}, body, path) when is_map(body) do
    Map.new(fields, fn {name, type} ->
      key = Atom.to_string(name)
      {name, member!(type, body, key, "#{path}.#{key}")}
    end)
  end

  defp field!({:list, type}, list, path) when is_list(list) do
    list |> Enum.with_index() |> Enum.map(fn {value, i} -> field!(type, value, "#{path}[#{i}]") end)
  end

  defp field!({:one_of, names}, value, path) do
    case names do
      %{^value => name} -> name
      _ -> throw({:invalid, path, "one of #{Enum.join(Map.keys(names), ", ")}", value})
    end
  end

  defp field!(:tensors, map, path) when is_map(map) do
    Map.new(map, fn {name, value} -> {name, field!(:tensor, value, "#{path}.#{name}")} end)
  end

  defp field!(:shape, list, path) when is_list(list) do
    list |> Enum.map(&field!(:count, &1, path)) |> List.to_tuple()
  end

  defp field!(:string, value, _path) when is_binary(value), do: value
  defp field!(:number, value, _path) when is_number(value), do: value
  defp field!(:count, value, _path) when is_integer(value) and value >= 0, do: value
  defp field!(:boolean, value, _path) when is_boolean(value), do: value
  defp field!(:map, value, _path) when is_map(value) and not is_struct(value), do: value
  defp field!(:tensor, %Tensor{} = value, _path), do: value
  defp field!(type, value, path), do: throw({:invalid, path, expected(type), value})

  defp expected({:fields, _}), do: "a map"
  defp expected({:list, _}), do: "a list"
  defp expected(:tensors), do: "a map of tensors"
  defp expected(:shape), do: "a list of sizes"
  defp expected(:string), do: "a string"
  defp expected(:number), do: "a number"
  defp expected(:count), do: "a non-negative integer"
  defp expected(:boolean), do: "a boolean"
  defp expected(:map), do: "a map"
  defp expected(:tensor), do: "a tensor"

  defp show(value), do: inspect(value, limit: 10, printable_limit: 200)
end
