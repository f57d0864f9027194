defmodule Nutkin.Worker.RequestsTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Checkpoint, Draws, Msgpack}
  alias Nutkin.Error.{Cancelled, WorkerExit}
  alias Nutkin.Worker.{Outbox, Request, Requests}

  @moduletag :capture_log

  @limits %{"frame" => 1_000_000, "chunk" => 1000}
  @error WorkerExit.exception("the worker ended")

  setup do
    ref = make_ref_of_mine()
    %{ref: ref, requests: Requests.add(Requests.new(Mine), ref, self(), Request.new(:compile, %{}))}
  end

  # An alias, as consumers have, so that what is sent to it arrives here.
  defp make_ref_of_mine, do: :erlang.alias()

  defp run(options \\ %{}) do
    body = %{model: [], data: %{}, options: %{}}
    Request.new_run(:sample, body, %{}, Map.merge(%{credit: 2, resume: true}, options))
  end

  defp draws(chain, start, count, phase \\ :sample) do
    {:draws, %Draws{chain: chain, phase: phase, start: start, count: count, variables: %{}, stats: %{}}}
  end

  defp checkpoint(bytes, size, offset \\ 0) do
    {:checkpoint, %{size: size, offset: offset, bytes: bytes}}
  end

  # The messages that wait to be written, and the requests without them.
  defp written(requests, messages \\ []) do
    case Outbox.next(requests.outbox) do
      {_kind, frame, outbox} ->
        {:ok, message} = frame |> IO.iodata_to_binary() |> Msgpack.decode()
        written(%{requests | outbox: outbox}, [message | messages])

      :empty ->
        {Enum.reverse(messages), requests}
    end
  end

  defp types(messages), do: Enum.map(messages, &hd/1)

  test "an entry is found by id, by reference and by monitor", %{ref: ref, requests: requests} do
    [entry] = Requests.all(requests)
    for key <- [entry.id, ref, entry.monitor], do: assert({:ok, ^entry} = Requests.fetch(requests, key))
    for key <- [entry.id + 1, make_ref()], do: assert(:error = Requests.fetch(requests, key))
  end

  test "ids are never given twice, and all/1 is in their order", %{ref: ref, requests: requests} do
    requests = requests |> Requests.ping() |> Requests.add(make_ref(), self(), Request.new(:ping, %{}))
    assert [first, second] = Requests.all(requests)
    assert first.id < second.id
    requests = requests |> Requests.abandon(ref) |> Requests.add(make_ref(), self(), Request.new(:ping, %{}))
    assert [^second, third] = Requests.all(requests)
    assert third.id > second.id
  end

  test "one that nobody waits for goes at once, or when the program has answered its cancel", context do
    %{ref: ref, requests: requests} = context
    assert Requests.count(Requests.abandon(requests, ref)) == 0
    assert Process.info(self(), :monitors) == {:monitors, []}

    {[["compile", id, _]], requests} = requests |> Requests.ready(@limits) |> written()
    {[["cancel", ^id, _]], requests} = requests |> Requests.abandon(ref) |> written()
    assert :error = Requests.fetch(requests, ref)
    assert Requests.count(requests) == 1
    requests = Requests.arrive(requests, id, {:error, Cancelled.exception("it was")})
    assert Requests.count(requests) == 0
    refute_received _
  end

  test "credit, pauses and cancels are sent with the request, as often as it is sent" do
    ref = make_ref_of_mine()

    requests =
      Requests.new(Mine)
      |> Requests.add(ref, self(), run())
      |> Requests.grant(ref, 3)
      |> Requests.pause(ref, true)

    {messages, requests} = requests |> Requests.ready(@limits) |> written()

    assert [["sample", 1, %{"options" => %{"credit" => 0}}], ["ack", 1, %{"chunks" => 5}], ["pause", 1, _]] =
             messages

    requests = Requests.arrive(requests, 1, draws(0, 0, 10))
    {messages, _} = requests |> Requests.take_up(@error) |> Requests.ready(@limits) |> written()
    assert [["sample", 1, body], ["ack", 1, %{"chunks" => 4}], ["pause", 1, _]] = messages
    assert body["delivered"] == [[0, 10]]
  end

  test "a run is taken up at its last checkpoint, and its consumer told" do
    ref = make_ref_of_mine()
    requests = Requests.new(Mine) |> Requests.add(ref, self(), run()) |> Requests.ready(@limits)

    requests =
      for event <- [
            draws(1, 0, 4, :warmup),
            draws(1, 0, 7),
            checkpoint("ab", 4),
            checkpoint("cd", 4, 2),
            draws(0, 0, 5),
            # One that the end of the program has cut off.
            checkpoint("xy", 4)
          ],
          reduce: requests do
        requests -> Requests.arrive(requests, 1, event)
      end

    {_, requests} = written(requests)

    {[["sample", 1, body] | _], requests} =
      requests |> Requests.take_up(@error) |> Requests.ready(@limits) |> written()

    assert body["delivered"] == [[0, 5], [4, 7]]
    blob = Checkpoint.blob("abcd")
    assert body["checkpoint"] == blob.sha
    assert_received {^ref, {:resumed, @error}}

    {[["put", 1, put]], requests} = requests |> Requests.arrive(1, {:need, [blob.sha]}) |> written()
    assert put["size"] == blob.size
    # The one before is not continued by what is new.
    requests = Requests.arrive(requests, 1, checkpoint("efgh", 4))
    [entry] = Requests.all(requests)
    assert entry.checkpoint == "efgh"

    Requests.arrive(requests, 1, {:done, %{status: :complete, chains: []}})
    assert_received {^ref, {:done, %{status: :complete, checkpoint: %Checkpoint{state: "efgh"}}}}
  end

  test "a run that is not to be resumed, a ping and results in part are answered with the error" do
    evaluate = Request.new(:evaluate, %{})

    requests =
      for {request, event} <- [
            {run(%{resume: false}), nil},
            {Request.new(:ping, %{}), nil},
            {evaluate, {:part, %{value: 0, offset: 0, bytes: "a"}}},
            {evaluate, nil}
          ],
          reduce: Requests.ready(Requests.new(Mine), @limits) do
        requests ->
          ref = make_ref_of_mine()
          requests = Requests.add(requests, ref, self(), request)
          if event, do: Requests.arrive(requests, requests.next_id - 1, event), else: requests
      end

    requests = Requests.take_up(requests, @error)
    for _ <- 1..3, do: assert_received({_ref, {:error, @error}})
    assert [%{request: ^evaluate}] = Requests.all(requests)
    refute_received {_ref, {:error, _}}
  end

  test "a request under which three programs end without progress is given up" do
    ref = make_ref_of_mine()
    requests = Requests.new(Mine) |> Requests.add(ref, self(), run())
    lose = fn requests -> requests |> Requests.ready(@limits) |> Requests.take_up(@error) end
    requests = requests |> lose.() |> lose.()
    assert Requests.count(requests) == 1
    # Progress counts.
    requests = requests |> Requests.ready(@limits) |> Requests.arrive(1, draws(0, 0, 1)) |> lose.() |> lose.()
    assert Requests.count(requests) == 1
    assert Requests.count(lose.(requests)) == 0
    assert_received {^ref, {:error, @error}}
  end

  test "a run that was cancelled ends so, whatever becomes of the program" do
    ref = make_ref_of_mine()
    requests = Requests.new(Mine) |> Requests.add(ref, self(), run()) |> Requests.ready(@limits)
    requests |> Requests.cancel(ref) |> Requests.take_up(@error)
    assert_received {^ref, {:done, %{status: :cancelled, checkpoint: %Checkpoint{state: nil}}}}
  end

  test "a run that is dropped ends with an error, and its draws go nowhere" do
    ref = make_ref_of_mine()

    requests =
      Requests.new(Mine) |> Requests.add(ref, self(), run()) |> Requests.ready(@limits) |> Requests.drop(ref)

    assert_received {^ref, {:error, %Cancelled{}}}
    {messages, requests} = written(requests)
    assert List.last(types(messages)) == "cancel"
    Requests.arrive(requests, 1, draws(0, 0, 1))
    refute_received _
  end

  test "what is compiled is told once" do
    ref = make_ref_of_mine()
    requests = Requests.new(Mine) |> Requests.add(ref, self(), run()) |> Requests.ready(@limits)
    compiled = {:compiled, %{seconds: 1.0}}
    requests = Requests.arrive(requests, 1, compiled)
    requests |> Requests.take_up(@error) |> Requests.ready(@limits) |> Requests.arrive(1, compiled)
    assert_received {^ref, ^compiled}
    assert_received {^ref, {:resumed, _}}
    refute_received _
  end
end
