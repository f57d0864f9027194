defmodule Soak.Measures do
  @moduledoc """
  What can grow, as numbers: of the BEAM, of the programs, and of the operating system's processes below the BEAM. Reads
  `/proc`, so it needs Linux.
  """

  @typedoc "Numbers by name. Those of a program that is being replaced are not there."
  @type t :: %{optional(atom()) => non_neg_integer()}

  @doc """
  All numbers, after every process has collected its garbage. `infos`: of `Nutkin.info/1`, in the order of the workers.
  """
  @spec take([map()]) :: t()
  def take(infos) do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    below = below(beam())

    %{
      memory: :erlang.memory(:total),
      binaries: :erlang.memory(:binary),
      atoms: :erlang.system_info(:atom_count),
      processes: :erlang.system_info(:process_count),
      ports: :erlang.system_info(:port_count),
      descriptors: descriptors(beam()),
      children: length(below),
      zombies: Enum.count(below, &(&1.state == "Z")),
      requests: infos |> Enum.map(& &1.requests) |> Enum.sum()
    }
    |> Map.merge(program(Enum.at(infos, 0), :spared_resident, :spared_descriptors, :spared_threads))
    |> Map.merge(program(Enum.at(infos, 1), :killed_resident, :killed_descriptors, :killed_threads))
  end

  @doc """
  How many messages wait for a process.
  """
  @spec queue(pid()) :: non_neg_integer()
  def queue(pid) do
    case Process.info(pid, :message_queue_len) do
      {:message_queue_len, waiting} -> waiting
      nil -> 0
    end
  end

  defp program(%{phase: :ready, os_pid: os_pid}, resident, descriptors, threads) do
    case File.read("/proc/#{os_pid}/status") do
      {:ok, status} ->
        if field(status, "VmRSS") do
          %{
            resident => 1024 * field(status, "VmRSS"),
            threads => field(status, "Threads"),
            descriptors => descriptors(os_pid)
          }
        else
          %{}
        end

      {:error, _reason} ->
        %{}
    end
  end

  defp program(_other, _resident, _descriptors, _threads), do: %{}

  defp field(status, name) do
    with [_, number] <- Regex.run(~r/^#{name}:\s+(\d+)/m, status), do: String.to_integer(number)
  end

  defp beam, do: String.to_integer(System.pid())

  defp descriptors(os_pid) do
    case File.ls("/proc/#{os_pid}/fd") do
      {:ok, names} -> length(names)
      {:error, _reason} -> 0
    end
  end

  # The processes that have the BEAM above them.
  defp below(root) do
    by_parent = Enum.group_by(all(), & &1.parent)
    Enum.flat_map(Map.get(by_parent, root, []), &with_children(&1, by_parent))
  end

  defp with_children(process, by_parent) do
    [process | Enum.flat_map(Map.get(by_parent, process.os_pid, []), &with_children(&1, by_parent))]
  end

  # The name of a process is in parentheses, and may have some itself.
  defp all do
    for name <- File.ls!("/proc"),
        {os_pid, ""} <- [Integer.parse(name)],
        {:ok, stat} <- [File.read("/proc/#{os_pid}/stat")] do
      [state, parent | _] = stat |> String.split(") ") |> List.last() |> String.split(" ")
      %{os_pid: os_pid, state: state, parent: String.to_integer(parent)}
    end
  end
end
