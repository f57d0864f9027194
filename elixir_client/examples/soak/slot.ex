defmodule Soak.Slot do
  @moduledoc """
  One place for consumers: has one after the other, each a process of its own, and tells how each ended.
  """

  alias Soak.Consumers

  @doc """
  Has consumers until it receives `:stop`. The owner is told `{:used, kind, outcome}` of each, `{:fault, text}` of one that ended
  otherwise or took longer than `longest` milliseconds, and `:slot_ended` at last.
  """
  @spec loop(pid(), pos_integer(), {integer(), integer()}, pos_integer(), (() -> Consumers.place())) :: term()
  def loop(owner, slot, {seed, number}, longest, place) do
    receive do
      :stop -> send(owner, :slot_ended)
    after
      0 ->
        :rand.seed(:exsss, {seed, slot, number})
        send(owner, consume(Consumers.random(), {seed, slot, number}, longest, place.()))
        loop(owner, slot, {seed, number + 1}, longest, place)
    end
  end

  defp consume(kind, seed, longest, place) do
    {pid, monitor} =
      spawn_monitor(fn ->
        # Not that of the choice of the kind, or each kind would always choose alike.
        :rand.seed(:exsss, seed |> Tuple.to_list() |> Enum.reverse() |> List.to_tuple())
        exit({:outcome, Consumers.run(kind, place)})
      end)

    receive do
      {:DOWN, ^monitor, :process, _pid, {:outcome, outcome}} ->
        {:used, kind, outcome}

      {:DOWN, ^monitor, :process, _pid, reason} ->
        {:fault, "#{kind} of seed #{inspect(seed)}: #{Exception.format_exit(reason)}"}
    after
      longest ->
        stack = Process.info(pid, :current_stacktrace)
        Process.exit(pid, :kill)
        Process.demonitor(monitor, [:flush])
        {:fault, "#{kind} of seed #{inspect(seed)} is not at its end after #{longest} ms: #{inspect(stack)}"}
    end
  end
end
