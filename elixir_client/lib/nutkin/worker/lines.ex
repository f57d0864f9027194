defmodule Nutkin.Worker.Lines do
  @moduledoc false
  # What a program says: the last lines, which errors quote, and which lines go to `Logger`. A program that writes more than it
  # takes would fill the mailbox of the worker while that waits for it, so the rest of a second is counted only.
  #
  # kept: the last one first; passed, left_out: lines of this second; second: the timer of its end, nil before its first line

  @kept 20
  @a_second 200
  @second_ms 1_000

  defstruct kept: [], passed: 0, left_out: 0, second: nil

  @type t :: %__MODULE__{
          kept: [String.t()],
          passed: non_neg_integer(),
          left_out: non_neg_integer(),
          second: reference() | nil
        }

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "How many lines a second go to `Logger`."
  @spec a_second() :: pos_integer()
  def a_second, do: @a_second

  @doc """
  A line has come: whether it is passed on. Unless there is one already, a second begins, after which the calling process gets
  `{:timeout, timer, :second_of_lines}`.
  """
  @spec put(t(), String.t()) :: {:pass | :leave_out, t()}
  def put(lines, text) do
    second = lines.second || :erlang.start_timer(@second_ms, self(), :second_of_lines)
    lines = %{lines | kept: Enum.take([text | lines.kept], @kept), second: second}

    if lines.passed < @a_second,
      do: {:pass, %{lines | passed: lines.passed + 1}},
      else: {:leave_out, %{lines | left_out: lines.left_out + 1}}
  end

  @doc "The second is over: how many lines of it were left out."
  @spec next_second(t()) :: {non_neg_integer(), t()}
  def next_second(lines), do: {lines.left_out, %{lines | passed: 0, left_out: 0, second: nil}}

  @doc "The last lines of the program, in their order."
  @spec last(t()) :: [String.t()]
  def last(lines), do: Enum.reverse(lines.kept)

  @doc "There is another program."
  @spec forget(t()) :: t()
  def forget(lines), do: %{lines | kept: []}
end
