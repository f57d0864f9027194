defmodule Nutkin.MsgpackTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.Protocol
  alias Nutkin.Msgpack
  alias Nutkin.Tensor
  alias Nutkin.Test.JSON

  doctest Nutkin.Msgpack

  @golden Path.expand("../../../bridge/golden", __DIR__)
  @frames Path.wildcard(Path.join(@golden, "*.frame"))
  @peer Path.expand("../support/msgpack_peer.py", __DIR__)

  describe "golden frames" do
    test "are there" do
      assert length(@frames) > 20
    end

    for path <- @frames do
      test "#{Path.basename(path)} means what it says, and is written as shortly" do
        frame = File.read!(unquote(path))
        json = File.read!(Path.rootname(unquote(path)) <> ".json")

        assert Msgpack.decode(frame) == {:ok, message(JSON.decode!(json))}

        encoded = encode(message(JSON.decode!(json, &{:bin, &1})))
        assert byte_size(encoded) == byte_size(frame)
        assert Msgpack.decode(encoded) == Msgpack.decode(frame)
      end
    end

    defp message(%{"type" => type, "id" => id, "body" => body}), do: [type, id, body]
  end

  describe "Python's msgpack" do
    @describetag :python

    import Nutkin.Test.TemporaryFolder
    setup :temporary_folder

    test "reads what is written here", %{folder: dir} do
      :rand.seed(:exsss, 1)

      long =
        for n <- [0xFFFF, 0x10000],
            term <- [String.duplicate("ä", n), {:bin, <<0::size(n)-unit(8)>>}],
            do: term

      terms = long ++ [Enum.to_list(1..0x10000)] ++ for(_ <- 1..300, do: term(0))

      frames = Path.join(dir, "frames")
      File.write!(frames, for(term <- terms, do: frame(encode(term))))
      peer(["read", frames, Path.join(dir, "json")])

      read = lines(Path.join(dir, "json"))
      assert length(read) == length(terms)

      for {term, line} <- Enum.zip(terms, read) do
        assert [term, true] == JSON.decode!(line, &{:bin, &1})
      end
    end

    test "writes what is read here", %{folder: dir} do
      frames = Path.join(dir, "frames")
      peer(["write", "1", "200", frames, Path.join(dir, "json")])

      written = lines(Path.join(dir, "json"))
      read = unframe(File.read!(frames))
      assert {200, 200} == {length(written), length(read)}

      for {line, bytes} <- Enum.zip(written, read) do
        assert Msgpack.decode(bytes) == {:ok, JSON.decode!(line)}
      end
    end

    defp peer(args) do
      assert {_output, 0} =
               System.cmd(System.fetch_env!("NUTKIN_PYTHON"), [@peer | args], stderr_to_stdout: true)
    end

    defp lines(path), do: path |> File.read!() |> String.split("\n", trim: true)

    defp frame(bytes), do: <<byte_size(bytes)::32, bytes::binary>>

    defp unframe(<<n::32, bytes::binary-size(n), rest::binary>>), do: [bytes | unframe(rest)]
    defp unframe(<<>>), do: []
  end

  describe "encoding" do
    test "takes atoms for strings, and bytes as they are" do
      assert encode(%{seed: :diagonal}) == encode(%{"seed" => "diagonal"})
      assert encode([nil, true, false]) == <<0x93, 0xC0, 0xC3, 0xC2>>
      assert encode({:bin, [<<255>>, [254]]}) == <<0xC4, 2, 255, 254>>
    end

    test "does not copy the bytes of tensors and bins" do
      data = :binary.copy(<<0>>, 80_000)
      tensor = Tensor.from_binary(data, :f64, {10_000})

      for term <- [tensor, {:bin, data}] do
        assert data in List.flatten([Msgpack.encode!([term])])
      end
    end

    test "refuses what has no encoding" do
      for {term, fault} <- [
            {{1, 2}, ~r/a term that cannot be sent; expected a number.*found {1, 2}/},
            {self(), ~r/a term that cannot be sent/},
            {1..3, ~r/a term that cannot be sent/},
            {%{1 => 2}, ~r/a map key that cannot be sent; expected a string or an atom; found 1/},
            {%{nil => 2}, ~r/a map key that cannot be sent/},
            {<<255>>,
             ~r/a string that cannot be sent; expected UTF-8; found <<255>>; send bytes as {:bin, bytes}/},
            {2 ** 64, ~r/an integer that cannot be sent/},
            {-(2 ** 63) - 1, ~r/an integer that cannot be sent/}
          ] do
        assert_raise Protocol, fault, fn -> Msgpack.encode!([term]) end
      end
    end
  end

  describe "decoding" do
    test "reads floats of 32 bits, and integers that are longer than they need be" do
      assert Msgpack.decode(<<0xCA, 1.5::float-32>>) == {:ok, 1.5}
      assert Msgpack.decode(<<0xD3, 1::64>>) == {:ok, 1}
      assert Msgpack.decode(<<0xDD, 1::32, 0xD9, 1, "a">>) == {:ok, ["a"]}
    end

    test "shares the bytes of tensors with the frame" do
      tensor = Tensor.from_binary(:binary.copy(<<1>>, 80_000), :f64, {10_000})
      frame = encode(["draws", 1, %{"mu" => tensor}])
      assert {:ok, [_, _, %{"mu" => %Tensor{data: data}}]} = Msgpack.decode(frame)
      assert :binary.referenced_byte_size(data) == byte_size(frame)
    end

    test "refuses what is wrong, and says where" do
      nested = fn depth -> :binary.copy(<<0x91>>, depth) <> <<0xC0>> end
      assert {:ok, _} = Msgpack.decode(nested.(64))

      for {bytes, fault} <- [
            {nested.(65), "nesting deeper than 64 (at byte 65)"},
            {:binary.copy(<<0x81, 0xA0>>, 65) <> <<0xC0>>, "nesting deeper than 64 (at byte 129)"},
            {<<>>, "a value is cut off (at byte 0)"},
            {<<0xCD, 1>>, "a value is cut off (at byte 0)"},
            {<<0x92, 1>>, "an array of 2 is cut off (at byte 1)"},
            {<<0x92, 1, 0xCC>>, "a value is cut off (at byte 2)"},
            {<<0xDD, 0xFFFFFFFF::32, 1>>, "an array of 4294967295 is cut off (at byte 5)"},
            {<<0xDF, 0xFFFFFFFF::32, 1>>, "a map of 4294967295 is cut off (at byte 5)"},
            {<<0xDB, 0xFFFFFFFF::32, 1>>, "a string of 4294967295 bytes is cut off (at byte 5)"},
            {<<0xC6, 0xFFFFFFFF::32, 1>>, "a bin of 4294967295 bytes is cut off (at byte 5)"},
            {<<0xC9, 0xFFFFFFFF::32, 1, 1>>, "a tensor of 4294967295 bytes is cut off (at byte 6)"},
            {<<1, 2>>, "more bytes after the end of the message (at byte 1)"},
            {<<0xC1>>, "0xC1, which has no meaning (at byte 0)"},
            {<<0xA1, 255>>, "a string that is not UTF-8 (at byte 1)"},
            {<<0x81, 1, 2>>, "a map key that is no string (at byte 1)"},
            {<<0x82, 0xA1, "a", 1, 0xA1, "a", 2>>, "a map with a key twice (at byte 1)"},
            {<<0xCB, 0x7FF8::16, 0::48>>, "a float that is not finite (at byte 0)"},
            {<<0xCB, 0xFFF0::16, 0::48>>, "a float that is not finite (at byte 0)"},
            {<<0xCA, 0x7F80::16, 0::16>>, "a float that is not finite (at byte 0)"},
            {<<0xD4, 2, 0>>, "an extension of the unknown type 2 (at byte 2)"},
            {<<0xC7, 12, 255, 0::96>>, "an extension of the unknown type 255 (at byte 3)"}
          ] do
        assert {:error, %Protocol{} = error} = Msgpack.decode(bytes)
        assert Exception.message(error) == "bytes that are not msgpack: " <> fault
      end
    end

    test "refuses tensors that are not what they say" do
      for {payload, fault} <- [
            {<<>>, "a tensor whose header is cut off"},
            {<<3, "f6">>, "a tensor whose header is cut off"},
            {<<3, "f65", 0>>, ~s(a tensor of the unknown type "f65")},
            {<<3, "f64", 65>>, "a tensor of rank 65, above 64"},
            {<<3, "f64", 2, 1::little-64>>, "a tensor whose dimensions are cut off"},
            {<<3, "f64", 0, 0::56>>, "a tensor of 8 bytes by its shape and type, with 7"},
            {<<3, "f64", 1, 2 ** 64 - 1::little-64>>,
             "a tensor of #{8 * (2 ** 64 - 1)} bytes by its shape and type, with 0"}
          ] do
        assert {:error, error} = Msgpack.decode(<<0xC7, byte_size(payload), 1, payload::binary>>)
        assert Exception.message(error) =~ fault
      end
    end

    test "of any bytes is a term or an error" do
      :rand.seed(:exsss, 2)
      small = for path <- @frames, bytes = File.read!(path), byte_size(bytes) < 2000, do: bytes

      for bytes <- small do
        for _ <- 1..20, do: decodes(mutate(bytes))
        for _ <- 1..5, do: decodes(binary_part(bytes, 0, :rand.uniform(byte_size(bytes)) - 1))
      end

      for n <- 1..2000, do: decodes(:rand.bytes(rem(n, 100)))
    end

    defp decodes(bytes) do
      case Msgpack.decode(bytes) do
        {:ok, _term} -> :ok
        {:error, %Protocol{}} -> :ok
      end
    end

    test "makes no atoms" do
      new = "key_#{System.unique_integer([:positive])}_#{System.os_time()}"
      assert Msgpack.decode(encode(%{new => new})) == {:ok, %{new => new}}
      assert_raise ArgumentError, fn -> String.to_existing_atom(new) end
    end

    defp mutate(bytes) do
      at = :rand.uniform(byte_size(bytes)) - 1
      <<head::binary-size(at), _, tail::binary>> = bytes
      <<head::binary, :rand.uniform(256) - 1, tail::binary>>
    end
  end

  defp encode(term), do: IO.iodata_to_binary(Msgpack.encode!(term))

  defp term(depth) do
    kinds = [:scalar, :string, :bytes, :tensor] ++ if(depth < 4, do: [:list, :map], else: [])
    term(Enum.random(kinds), depth)
  end

  defp term(:scalar, _depth) do
    edges =
      for bits <- [5, 7, 8, 15, 16, 31, 32, 63],
          i <- [2 ** bits - 1, 2 ** bits, -(2 ** bits), -(2 ** bits) - 1],
          do: i

    integers = Enum.filter(edges ++ [0, 1, -1, 2 ** 64 - 1], &(&1 >= -(2 ** 63)))

    Enum.random([
      nil,
      true,
      false,
      Enum.random(integers),
      Enum.random([0.1, -1.0e-300, 5.0e-324]),
      :rand.normal()
    ])
  end

  defp term(:string, _depth) do
    for _ <- 1..length_of()//1, into: "", do: Enum.random(["a", "\"", "\\", "\n", "\0", "ä", "語", "😀"])
  end

  defp term(:bytes, _depth), do: {:bin, :rand.bytes(length_of())}

  defp term(:tensor, _depth) do
    shape = for _ <- 1..3//1, do: :rand.uniform(3)
    {type, size} = Enum.random([{:f64, 8}, {:f32, 4}, {:u8, 1}, {:s16, 2}, {:bf16, 2}, {:c128, 16}])
    Tensor.from_binary(:rand.bytes(size * Enum.product(shape)), type, List.to_tuple(shape))
  end

  defp term(:list, depth), do: Enum.map(1..entries(depth)//1, fn _ -> term(depth + 1) end)

  defp term(:map, depth),
    do: Map.new(1..entries(depth)//1, fn i -> {"#{i}#{term(:string, depth)}", term(depth + 1)} end)

  defp length_of, do: Enum.random([0, 1, 15, 16, 31, 32, 33, 255, 256])
  defp entries(depth), do: Enum.random(if depth < 2, do: [0, 1, 3, 15, 16, 17], else: [0, 1, 2])
end
