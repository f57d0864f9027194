defmodule Nutkin.CheckpointTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Blob, Checkpoint, Msgpack, Options}
  alias Nutkin.Error.{InvalidCheckpoint, InvalidOption}
  alias Nutkin.Worker.Request

  doctest Checkpoint

  @names [:chains, :draws, :adaptation, :init, :variables, :max_time, :target_ess, :checkpoint_every, :credit]

  defp checkpoint(opts \\ []) do
    {:ok, options} = Options.validate(opts, @names)
    {:ok, blob} = Blob.cast([1.0, 2.0])

    body = %{
      model: %{version: 1, nodes: []},
      data: %{"y" => {:bin, blob.sha}},
      options: Options.to_wire(options)
    }

    Checkpoint.new(Request.new_run(:sample, body, %{blob.sha => blob}, options), "the state", %{1 => {0, 7}})
  end

  test "is the same after its way through bytes" do
    opts = [adaptation: :windowed, init: [radius: 1, values: %{mu: [1.0]}], variables: [:mu], max_time: 1500]
    checkpoint = checkpoint(opts)
    assert {:ok, read} = checkpoint |> Checkpoint.to_binary() |> Checkpoint.from_binary()
    assert read.state == "the state"
    assert read.delivered == %{1 => {0, 7}}
    wire = [:chains, :draws, :adaptation, :init, :variables, :max_time, :target_ess, :checkpoint_every]
    assert Map.take(read.request.options, wire) == Map.take(checkpoint.request.options, wire)
    assert Map.keys(read.request.blobs) == Map.keys(checkpoint.request.blobs)

    for field <- ["model", "data"] do
      {:encoded, bytes} = checkpoint.request.fields[field]
      assert read.request.fields[field] == {:encoded, IO.iodata_to_binary(bytes)}
    end
  end

  test "before a run has begun there is no state" do
    checkpoint = %{checkpoint() | state: nil}
    assert {:ok, %{state: nil}} = checkpoint |> Checkpoint.to_binary() |> Checkpoint.from_binary()
  end

  test "bytes that are none give an error, and no atom" do
    whole = Checkpoint.to_binary(checkpoint())
    {:ok, tree} = Msgpack.decode(whole)
    change = fn changes -> tree |> Map.merge(changes) |> encode() end
    text = "never_an_atom_before_#{System.unique_integer([:positive])}"

    for {bytes, error} <- [
          {binary_part(whole, 0, 100), InvalidCheckpoint},
          {whole <> "x", InvalidCheckpoint},
          {change.(%{"nutkin_checkpoint" => 2}), InvalidCheckpoint},
          {change.(%{"blobs" => [%{"encoding" => "pickle", "bytes" => "x"}]}), InvalidCheckpoint},
          {change.(%{"blobs" => 5}), InvalidCheckpoint},
          {change.(%{"state" => 5}), InvalidCheckpoint},
          {change.(%{"delivered" => [[5000, 0, 0]]}), InvalidCheckpoint},
          {change.(%{"delivered" => [[1, -1, 0]]}), InvalidCheckpoint},
          {change.(%{"model" => <<0xC1>>}), InvalidCheckpoint},
          {change.(%{"data" => <<0xDF, 0xFF, 0xFF, 0xFF, 0xFF>>}), InvalidCheckpoint},
          {change.(%{"options" => %{"chains" => 0}}), InvalidCheckpoint},
          {change.(%{"options" => %{"adaptation" => text}}), InvalidCheckpoint}
        ] do
      assert {:error, %^error{}} = Checkpoint.from_binary(bytes)
    end

    assert_raise ArgumentError, fn -> String.to_existing_atom(text) end
  end

  # Bytes of the tree are bins, its texts strings.
  defp encode(tree) do
    tree
    |> Map.new(fn
      {key, value} when key in ["model", "data", "state"] and is_binary(value) ->
        {key, {:bin, value}}

      {"blobs", blobs} when is_list(blobs) ->
        {"blobs", Enum.map(blobs, &Map.update!(&1, "bytes", fn b -> {:bin, b} end))}

      other ->
        other
    end)
    |> Msgpack.encode!()
    |> IO.iodata_to_binary()
  end

  test "what goes on from it has its options, but for what is given and what would end it" do
    checkpoint = checkpoint(chains: 2, draws: 10, max_time: 5, target_ess: 100)
    names = [:more, :max_time, :target_ess, :max_rhat, :variables, :credit, :worker, :timeout]
    {:ok, given} = Options.validate([more: 5, variables: ["mu"]], names)
    options = Checkpoint.options(checkpoint, given, [:more, :variables])
    assert %{chains: 2, draws: 15, variables: ["mu"], max_time: nil, target_ess: nil, credit: 16} = options
    request = Checkpoint.request(checkpoint, options)
    assert %{state: "the state", delivered: %{1 => {0, 7}}, credit: 16} = request
    {:ok, wire} = request.fields["options"] |> elem(1) |> IO.iodata_to_binary() |> Msgpack.decode()
    assert %{"draws" => 15, "credit" => 0, "chains" => 2} = wire
  end

  test "options of a wire that nobody has written" do
    assert {:error, %InvalidOption{}} = Options.from_wire(%{"draws" => "many"})
    assert {:error, %InvalidOption{}} = Options.from_wire(%{"init" => %{"radius" => -1, "values" => %{}}})
    assert {:ok, %{}} = Options.from_wire(%{"unknown" => 1})
  end
end
