defmodule Nutkin.Worker.OutboxTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Blob, Msgpack}
  alias Nutkin.Worker.Outbox

  test "is empty at first" do
    assert Outbox.next(Outbox.new()) == :empty
  end

  test "control messages go before the chunks that were queued earlier, in their order" do
    outbox =
      Outbox.new()
      |> Outbox.upload(1, Blob.from_serialized("abcdef"), 4)
      |> Outbox.push("one")
      |> Outbox.push("two")

    assert {:control, "one", outbox} = Outbox.next(outbox)
    assert {:control, "two", outbox} = Outbox.next(outbox)
    assert {:chunk, _, outbox} = Outbox.next(outbox)
    assert {:control, "three", outbox} = outbox |> Outbox.push("three") |> Outbox.next()
    assert {:chunk, _, outbox} = Outbox.next(outbox)
    assert Outbox.next(outbox) == :empty
  end

  test "a blob is cut into put messages without gaps, one blob after another" do
    first = Blob.from_serialized(["abc", "defgh"])
    second = Blob.from_serialized("xy")
    outbox = Outbox.new() |> Outbox.upload(5, first, 3) |> Outbox.upload(6, second, 3)

    assert [
             ["put", 5, %{"offset" => 0, "bytes" => "abc", "size" => 8, "encoding" => "nx"} = put],
             ["put", 5, %{"offset" => 3, "bytes" => "def"}],
             ["put", 5, %{"offset" => 6, "bytes" => "gh"}],
             ["put", 6, %{"offset" => 0, "bytes" => "xy", "size" => 2}]
           ] = drain(outbox)

    assert put["blob"] == :crypto.hash(:sha256, "abcdefgh")
  end

  test "what is left of the uploads of one request can be dropped" do
    outbox =
      Outbox.new()
      |> Outbox.upload(5, Blob.from_serialized("abcdef"), 3)
      |> Outbox.upload(6, Blob.from_serialized("xy"), 3)
      |> Outbox.upload(5, Blob.from_serialized("ghi"), 3)

    {:chunk, _, outbox} = Outbox.next(outbox)
    assert [["put", 6, _]] = outbox |> Outbox.drop_uploads(5) |> drain()
  end

  defp drain(outbox) do
    case Outbox.next(outbox) do
      :empty ->
        []

      {:chunk, frame, outbox} ->
        {:ok, message} = frame |> IO.iodata_to_binary() |> Msgpack.decode()
        [message | drain(outbox)]
    end
  end
end
