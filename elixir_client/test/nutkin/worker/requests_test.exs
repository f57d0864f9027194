defmodule Nutkin.Worker.RequestsTest do
  use ExUnit.Case, async: true

  alias Nutkin.Worker.{Request, Requests}

  setup do
    consumer = spawn_link(fn -> receive(do: (:end -> :ok)) end)
    ref = make_ref()
    {entry, requests} = Requests.add(Requests.new(), ref, consumer, Request.new(:ping, %{}))
    %{consumer: consumer, ref: ref, entry: entry, requests: requests}
  end

  test "an entry is found by id, by reference and by monitor", %{entry: entry, ref: ref, requests: requests} do
    for key <- [entry.id, ref, entry.monitor], do: assert({:ok, ^entry} = Requests.fetch(requests, key))
    for key <- [entry.id + 1, make_ref()], do: assert(:error = Requests.fetch(requests, key))
  end

  test "ids are never given twice, and all/1 is in their order", %{
    entry: entry,
    consumer: consumer,
    requests: requests
  } do
    {id, requests} = Requests.take_id(requests)
    {last, requests} = Requests.add(requests, make_ref(), consumer, Request.new(:ping, %{}))
    assert entry.id < id and id < last.id
    assert Requests.all(requests) == [entry, last]
    {next, _} = requests |> Requests.remove(entry) |> Requests.take_id()
    assert next > last.id
  end

  test "a removed entry is not found, and its consumer no longer monitored", context do
    %{entry: entry, ref: ref, consumer: consumer, requests: requests} = context
    requests = Requests.remove(requests, entry)
    for key <- [entry.id, ref, entry.monitor], do: assert(:error = Requests.fetch(requests, key))
    assert Process.info(self(), :monitors) == {:monitors, []}
    assert Process.alive?(consumer)
  end

  test "an orphan keeps its id and hears nothing", %{entry: entry, requests: requests} do
    requests = Requests.orphan(requests, %{entry | sent?: true})
    assert {:ok, %{monitor: nil, sent?: true} = orphan} = Requests.fetch(requests, entry.id)
    assert :error = Requests.fetch(requests, entry.ref)
    assert :error = Requests.fetch(requests, entry.monitor)
    assert :ok = Requests.tell(orphan, {:done, %{}})
    assert Requests.all(Requests.remove(requests, orphan)) == []
  end

  test "a consumer is told by its alias", %{consumer: consumer} do
    ref = :erlang.monitor(:process, consumer, alias: :demonitor)
    {entry, _} = Requests.add(Requests.new(), ref, self(), Request.new(:ping, %{}))
    Requests.tell(entry, {:pong, %{}})
    assert_received {^ref, {:pong, %{}}}
    Process.demonitor(ref)
    Requests.tell(entry, {:pong, %{}})
    refute_received _
  end
end
