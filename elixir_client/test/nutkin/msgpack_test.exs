defmodule Nutkin.MsgpackTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.Protocol
  alias Nutkin.Msgpack
  alias Nutkin.Tensor
  alias Nutkin.Test.JSON

  doctest Nutkin.Msgpack

  @golden Path.expand("../../../bridge/golden", __DIR__)
  @peer Path.expand("../support/msgpack_peer.py", __DIR__)

  describe "the golden frames" do
    @frames Path.wildcard(Path.join(@golden, "*.frame"))

    test "are there" do
      assert length(@frames) > 20
    end

    for frame <- @frames do
      name = Path.basename(frame, ".frame")

      test "#{name} means what it says, and is written so" do
        frame = File.read!(unquote(frame))
        json = File.read!(unquote(Path.rootname(frame) <> ".json"))

        %{"type" => type, "id" => id, "body" => body} = JSON.decode!(json)
        assert {:ok, [type, id, body]} == Msgpack.decode(frame)

        %{"body" => body} = JSON.decode!(json, &{:bin, &1})
        assert {:ok, [type, id, body]} |> again() == frame |> Msgpack.decode() |> elem(1) |> then(&sizes/1) |> then(fn _ -> [type, id, body] |> again_bytes() end)
      end
    end
  end
end
