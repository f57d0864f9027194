defmodule Nutkin.Worker.Lines do
  @moduledoc false
  # What a program says. Its lines go to `Logger`, and the last ones are kept for errors. A program that writes more than `Logger` takes
  # would fill the mailbox of the worker, which waits for it: so the rest of a second is counted only.
  #
  # worker: its name in logs and telemetry
  # kept: the last one first; passed, left_out: lines of this second; second: the timer of its end, nil before its first line

  require Logger

  alias Nutkin.Telemetry

  @kept 20
  @a_second 200
  @second_ms 1_000

  @enforce_keys [:worker]
  defstruct worker: nil, kept: [], passed: 0, left_out: 0, second: nil

  @type t :: %__MODULE__{
          worker: Telemetry.label(),
          kept: [String.t()],
          passed: non_neg_integer(),
          left_out: non_neg_integer(),
          second: reference() | nil
        }

  @spec new(Telemetry.label()) :: t()
  def new(worker), do: %__MODULE__{worker: worker}

  @doc "How many lines a second go to `Logger`."
  @spec a_second() :: pos_integer()
  def a_second, do: @a_second

  @doc """
  A line has come. With the first one a second begins, after which the calling process gets
  `{:timeout, timer, :second_of_lines}`.
  """
  @spec put(t(), %{level: Logger.level(), source: String.t(), text: String.t()}) :: t()
  def put(lines, line) do
    # A copy, since a line would keep its whole frame in memory.
    line = %{line | text: :binary.copy(line.text)}
    second = lines.second || :erlang.start_timer(@second_ms, self(), :second_of_lines)
    lines = %{lines | kept: Enum.take([line.text | lines.kept], @kept), second: second}

    if lines.passed < @a_second do
      Logger.log(line.level, line.text, nutkin_worker: lines.worker, nutkin_source: line.source)
      Telemetry.line(lines.worker, line)
      %{lines | passed: lines.passed + 1}
    else
      %{lines | left_out: lines.left_out + 1}
    end
  end

  @doc "The second is over: what was left out of it is told."
  @spec next_second(t()) :: t()
  def next_second(%{left_out: left_out, worker: worker} = lines) do
    if left_out > 0 do
      text = "#{inspect(worker)}: the program wrote too many lines in a second, #{left_out} were left out"
      Logger.warning(text, nutkin_worker: worker, nutkin_source: "nutkin")
      Telemetry.lines_left_out(worker, left_out)
    end

    %{lines | passed: 0, left_out: 0, second: nil}
  end

  @doc "The last lines of the program, in their order."
  @spec last(t()) :: [String.t()]
  def last(lines), do: Enum.reverse(lines.kept)

  @doc "There is another program."
  @spec forget(t()) :: t()
  def forget(lines), do: %{lines | kept: []}
end
