defmodule Soak.Report do
  @moduledoc """
  What is printed of a soak, and the page that is written of one.
  """

  alias Soak.Verdict

  @doc "The line of a minute: what was used so far, and the last sample."
  @spec line(Soak.t(), pos_integer()) :: String.t()
  def line(%Soak{samples: [last | _]} = soak, minute) do
    resident = for name <- [:spared_resident, :killed_resident], do: mib(last[name])

    "minute #{minute}: #{Soak.total(soak)} uses, #{Soak.given_up(soak)} given up, " <>
      "#{Enum.sum(Map.values(soak.kills))} kills, #{length(soak.faults)} faults; BEAM #{mib(last.memory)}, " <>
      "binaries #{mib(last.binaries)}, #{last.atoms} atoms, #{last.processes} processes, #{last.ports} ports, " <>
      "#{last.descriptors} descriptors; programs #{Enum.join(resident, " and ")}, #{last.children} children, " <>
      "#{last.zombies} zombies; #{last.requests} open, queues at most #{soak.queues.pool} and #{soak.queues.workers}"
  end

  defp mib(nil), do: "-"
  defp mib(bytes), do: Verdict.show(bytes, :mib)

  @doc "The page; also printed at the end."
  @spec page(Soak.t(), [Verdict.row()]) :: iodata()
  def page(soak, rows) do
    [
      """
      # Soak

      Written by `make soak`: #{Soak.slots()} consumers at once, each one use of the client after the other
      ([examples/soak](../elixir_client/examples/soak)), on a pool of two workers whose programs are killed meanwhile; after the
      first fifth of the time only the second's, so that the first grows old. A use that ends otherwise than it may, draws that are not those
      of an undisturbed run, a quantity that is not flat or a condition that does not hold is a fault, and the command fails.

      """,
      facts(soak),
      "\n## Uses\n\n",
      uses(soak),
      "\n`given_up`: its programs were killed three times without progress, and the request got its `Nutkin.Error.WorkerExit`.\n",
      "\n## What was measured\n\n",
      """
      A sample every two seconds, after a garbage collection of all processes. The early mean is that of the second quarter of the
      samples, the late one that of the last; what the late one may be follows from the early one.

      """,
      table(
        ["", "early mean", "late mean", "most", "late mean at most", "flat"],
        Enum.map(rows, &row/1)
      ),
      "\n## What has to be true\n\n",
      for({condition, true?} <- soak.conditions, do: "- #{condition}: #{yes(true?)}\n"),
      "\nThe longest queues that were seen, every tenth of a second: #{soak.queues.workers} messages for a worker, ",
      "#{soak.queues.pool} for the pool.\n"
    ]
  end

  defp facts(soak) do
    kills = for {signal, count} <- Enum.sort(soak.kills), do: "#{count} SIG#{signal}"
    versions = for {name, version} <- Enum.sort(soak.versions), do: "#{name} #{version}"

    table(["", ""], [
      ["date", Date.utc_today()],
      ["minutes", soak.minutes],
      ["seed", soak.seed],
      ["cores", System.schedulers_online()],
      ["versions", Enum.join(["Elixir #{System.version()}", "OTP #{System.otp_release()}" | versions], ", ")],
      ["uses", "#{Soak.total(soak)}, #{Soak.given_up(soak)} of them given up"],
      ["kills", Enum.join(kills, ", ")],
      ["faults", length(soak.faults)]
    ])
  end

  defp uses(soak) do
    rows =
      for {kind, outcomes} <- soak.counts |> Enum.group_by(fn {{kind, _}, _} -> kind end) |> Enum.sort() do
        ends = for {{_kind, outcome}, count} <- Enum.sort(outcomes), do: "#{count} #{outcome}"
        [kind, outcomes |> Enum.map(&elem(&1, 1)) |> Enum.sum(), Enum.join(ends, ", ")]
      end

    table(["use", "times", "ends"], rows)
  end

  defp row(row) do
    numbers = for name <- [:early, :late, :most, :allowed], do: Verdict.show(row[name], row.unit)
    [row.what] ++ numbers ++ [yes(row.flat)]
  end

  defp yes(true), do: "yes"
  defp yes(false), do: "NO"
  defp yes(:too_short), do: "not judged in so few minutes"

  defp table(heading, rows) do
    for row <- [heading, Enum.map(heading, fn _ -> "---" end) | rows], do: "| #{Enum.join(row, " | ")} |\n"
  end
end
