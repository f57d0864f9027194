defmodule Nutkin.Worker.Retired do
  @moduledoc false
  # Programs that were asked to end. Their ports stay open until they have: so nobody else gets their process ids, and
  # the runtime collects them. One that takes too long gets SIGTERM, then SIGKILL.

  alias Nutkin.Worker.Program

  # How long a program has after SIGTERM, in milliseconds.
  @term_timeout 1_000

  @typedoc "By its port: its process id, the signal that is next, and the timer of it."
  @type t :: %{port() => {pos_integer() | nil, :TERM | :KILL, reference()}}

  @spec new() :: t()
  def new, do: %{}

  @spec term_timeout() :: pos_integer()
  def term_timeout, do: @term_timeout

  @doc "A program that was asked to end, and has `timeout` milliseconds. The calling process gets `{:timeout, timer, {:retired, port}}`."
  @spec add(t(), port(), pos_integer() | nil, non_neg_integer()) :: t()
  def add(retired, port, os_pid, timeout),
    do: Map.put(retired, port, {os_pid, :TERM, start_timer(port, timeout)})

  @doc "Its port has told that it ended."
  @spec ended(t(), port()) :: t()
  def ended(retired, port) do
    case Map.pop(retired, port) do
      {{_os_pid, _signal, timer}, rest} ->
        :erlang.cancel_timer(timer)
        rest

      {nil, retired} ->
        retired
    end
  end

  @doc "The time of a program is up: it gets the next signal."
  @spec escalate(t(), port(), reference()) :: t()
  def escalate(retired, port, timer) do
    case retired do
      %{^port => {os_pid, :TERM, ^timer}} ->
        Program.signal(os_pid, :TERM)
        Map.put(retired, port, {os_pid, :KILL, start_timer(port, @term_timeout)})

      %{^port => {os_pid, :KILL, ^timer}} ->
        Program.kill(port, os_pid)
        Map.delete(retired, port)

      # It ended just before.
      _ ->
        retired
    end
  end

  @doc "Waits until all have ended, by themselves or by the signals that they get when their time is up."
  @spec await(t()) :: :ok
  def await(retired) when retired == %{}, do: :ok

  def await(retired) do
    receive do
      {port, {:exit_status, _}} when is_port(port) -> retired |> ended(port) |> await()
      {port, {:data, _}} when is_port(port) -> await(retired)
      {:timeout, timer, {:retired, port}} -> retired |> escalate(port, timer) |> await()
    end
  end

  defp start_timer(port, timeout), do: :erlang.start_timer(timeout, self(), {:retired, port})
end
