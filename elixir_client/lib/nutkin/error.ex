defmodule Nutkin.Error do
  @moduledoc """
  The errors of Nutkin: one exception for each class, with the same fields.

  Functions return `{:error, exception}`; their bang versions raise it. Every exception has

    * `:message` - what is wrong
    * `:node`, `:index` - the name of the model's node that it concerns, and its place in the model
    * `:path` - the place inside a value or a message, such as `"[2][0]"` or `"$.nodes[3].args.sigma"`
    * `:expected`, `:found` - in words
    * `:hint` - what to do

  Fields that do not apply are nil. `Exception.message/1` puts them together.
  """

  alias Nutkin.Error.{
    Cancelled,
    CompileFailed,
    InitFailed,
    Internal,
    InvalidCheckpoint,
    InvalidData,
    InvalidModel,
    InvalidOption,
    LimitExceeded,
    Protocol,
    Timeout,
    WorkerExit
  }

  @typedoc """
  Every error that Nutkin returns:

    * `Nutkin.Error.InvalidModel` - the model is wrong: an operation, a distribution, a reference, a shape
    * `Nutkin.Error.InvalidData` - a value is missing, unreadable, of the wrong shape, or impossible
    * `Nutkin.Error.InvalidOption` - an option is unknown or out of range
    * `Nutkin.Error.InvalidCheckpoint` - a checkpoint is none, or of another model, other data or another version
    * `Nutkin.Error.CompileFailed` - XLA refused the program
    * `Nutkin.Error.InitFailed` - no starting point has a finite log density and gradient
    * `Nutkin.Error.LimitExceeded` - a documented limit was exceeded
    * `Nutkin.Error.WorkerExit` - the port program ended, or did not start
    * `Nutkin.Error.Protocol` - the two sides do not speak the same protocol
    * `Nutkin.Error.Timeout` - the time given was up before there was anything to return
    * `Nutkin.Error.Cancelled` - the request was cancelled
    * `Nutkin.Error.Internal` - a defect of the port program
  """
  @type t ::
          InvalidModel.t()
          | InvalidData.t()
          | InvalidOption.t()
          | InvalidCheckpoint.t()
          | CompileFailed.t()
          | InitFailed.t()
          | LimitExceeded.t()
          | WorkerExit.t()
          | Protocol.t()
          | Timeout.t()
          | Cancelled.t()
          | Internal.t()

  @by_code %{
    "invalid_model" => InvalidModel,
    "invalid_data" => InvalidData,
    "invalid_option" => InvalidOption,
    "invalid_checkpoint" => InvalidCheckpoint,
    "compile_failed" => CompileFailed,
    "init_failed" => InitFailed,
    "limit" => LimitExceeded,
    "protocol" => Protocol,
    "cancelled" => Cancelled,
    "internal" => Internal
  }

  @wire_fields [
    node: "node",
    index: "index",
    path: "path",
    expected: "expected",
    found: "found",
    hint: "hint"
  ]

  @doc """
  The exception for the body of an `error` message.

  A code that this version does not know gives a `Nutkin.Error.Internal`; a body that is not of the
  documented form gives a `Nutkin.Error.Protocol`.

  ## Examples

      iex> error = Nutkin.Error.from_wire(%{"code" => "invalid_data", "message" => "no data for slot y", "node" => "y"})
      iex> error.__struct__
      Nutkin.Error.InvalidData
      iex> error.node
      "y"

  """
  @spec from_wire(term()) :: t()
  def from_wire(%{"code" => code, "message" => message} = body) when is_binary(code) and is_binary(message) do
    fields = for {field, key} <- @wire_fields, value = body[key], do: {field, value}

    cond do
      not Enum.all?(fields, &well_typed?/1) -> malformed(body)
      module = @by_code[code] -> module.exception([message: message] ++ fields)
      true -> Internal.exception([message: "#{message} (unknown error code #{inspect(code)})"] ++ fields)
    end
  end

  def from_wire(body), do: malformed(body)

  defp well_typed?({:index, value}), do: is_integer(value)
  defp well_typed?({_field, value}), do: is_binary(value)

  defp malformed(body) do
    Protocol.exception(
      message: "an error message that cannot be read",
      expected: "a map with code and message",
      found: inspect(body, limit: 20, printable_limit: 500)
    )
  end
end
