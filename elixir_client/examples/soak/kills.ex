defmodule Soak.Kills do
  @moduledoc """
  Kills programs at random, again and again: at once, as a crash of native code would, or by stopping them for ever.
  """

  @signals ~w(KILL SEGV STOP)

  # Milliseconds from one to the next: a program that was stopped is given up after two heartbeats.
  @pauses 6_000..18_000

  @doc """
  Does so until the process ends. `victims` gives the system's process ids of those that may be killed. Each kill is told to `owner` as
  `{:killed, signal}`.
  """
  @spec loop(pid(), (() -> [pos_integer()])) :: no_return()
  def loop(owner, victims) do
    Process.sleep(Enum.random(@pauses))

    case victims.() do
      [] ->
        :ok

      os_pids ->
        # Now and then all at once.
        chosen = if Enum.random(1..3) == 1, do: os_pids, else: [Enum.random(os_pids)]
        for os_pid <- chosen, do: kill(os_pid, owner)
    end

    loop(owner, victims)
  end

  # It may have ended a moment ago.
  defp kill(os_pid, owner) do
    signal = Enum.random(@signals)

    case System.cmd("kill", ["-#{signal}", to_string(os_pid)], stderr_to_stdout: true) do
      {_, 0} -> send(owner, {:killed, signal})
      _ended -> :ok
    end
  end
end
