defmodule Nutkin.Error.WorkerExit do
  @moduledoc """
  The port program ended while it was needed, or could not be started.

  Besides the fields described in `Nutkin.Error`:

    * `:status` - its exit status, where there is one; 128 + n when signal n ended it
    * `:log` - the last lines that it wrote, oldest first
  """

  use Nutkin.Error.Definition, fields: [status: non_neg_integer() | nil, log: [String.t()] | nil]

  @signals %{
    1 => "SIGHUP",
    2 => "SIGINT",
    3 => "SIGQUIT",
    4 => "SIGILL",
    6 => "SIGABRT",
    7 => "SIGBUS",
    8 => "SIGFPE",
    9 => "SIGKILL",
    11 => "SIGSEGV",
    13 => "SIGPIPE",
    15 => "SIGTERM"
  }

  @impl true
  def message(error) do
    error = %{error | hint: error.hint || hint(error.status)}
    sentence(error, (error.message || "the worker ended") <> ended_by(error.status)) <> last_lines(error.log)
  end

  # The kernel's way to end a program when memory runs out.
  defp hint(137), do: "the system may have run out of memory; the worker starts again by itself"
  defp hint(_status), do: nil

  defp ended_by(nil), do: ""

  defp ended_by(status) do
    case Map.fetch(@signals, status - 128) do
      {:ok, signal} -> " (exit status #{status}: #{signal})"
      :error -> " (exit status #{status})"
    end
  end

  defp last_lines(lines) when lines in [nil, []], do: ""
  defp last_lines(lines), do: Enum.join(["; its last lines:" | lines], "\n    ")
end
