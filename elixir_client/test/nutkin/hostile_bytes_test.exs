defmodule Nutkin.HostileBytesTest do
  # Not async: it counts the atoms of the whole system.
  use ExUnit.Case, async: false

  alias Nutkin.Error.Protocol
  alias Nutkin.Msgpack
  alias Nutkin.Tensor.Payload
  alias Nutkin.Test.HostileBytes

  @golden Path.expand("../../../bridge/golden", __DIR__)
  @frames @golden |> Path.join("*.frame") |> Path.wildcard() |> Enum.map(&File.read!/1)
  @small 2_000_000

  # Above what is decoded of a golden frame, and far below what a length of 32 bits announces. In words.
  @heap %{size: 20_000_000, kill: true, error_logger: false}

  # Each case has a seed of its own, which a failure shows: `HOSTILE_SEED=n mix test` begins there.
  defp seeds(count) do
    first = "HOSTILE_SEED" |> System.get_env("1") |> String.to_integer()
    count = "HOSTILE_COUNT" |> System.get_env(Integer.to_string(count)) |> String.to_integer()
    first..(first + count - 1)
  end

  defp each(count, check) do
    for seed <- seeds(count) do
      :rand.seed(:exsss, seed)

      try do
        check.()
      rescue
        error -> reraise "seed #{seed}: #{Exception.format(:error, error, __STACKTRACE__)}", __STACKTRACE__
      end
    end
  end

  # In a process that is killed when its heap grows: the result, or why it was killed.
  defp confined(work) do
    {pid, reference} =
      spawn_monitor(fn ->
        Process.flag(:max_heap_size, @heap)
        exit({:result, work.()})
      end)

    receive do
      {:DOWN, ^reference, :process, ^pid, {:result, result}} -> result
      {:DOWN, ^reference, :process, ^pid, reason} -> flunk("the decoder was ended: #{inspect(reason)}")
    after
      60_000 ->
        Process.exit(pid, :kill)
        flunk("the decoder hangs")
    end
  end

  test "terms survive" do
    each(300, fn ->
      term = HostileBytes.term()
      assert {:ok, term} == term |> Msgpack.encode!() |> IO.iodata_to_binary() |> Msgpack.decode()
    end)
  end

  test "damaged frames are messages or errors, and make no atoms" do
    run = fn ->
      each(4000, fn ->
        frame = @frames |> Enum.random() |> HostileBytes.damage()
        assert_decoded(Msgpack.decode(frame))
        assert_read(Nutkin.Protocol.read(frame))
      end)

      :ok
    end

    # What is loaded on the way makes atoms once.
    assert confined(run) == :ok
    before = :erlang.system_info(:atom_count)
    assert confined(run) == :ok
    assert :erlang.system_info(:atom_count) == before
  end

  test "bytes at random are terms or errors" do
    assert confined(fn ->
             each(4000, fn -> assert_decoded(Msgpack.decode(:rand.bytes(:rand.uniform(60)))) end) && :ok
           end) ==
             :ok
  end

  test "damaged tensors are tensors or errors" do
    payload = <<3, "f64", 2, 2::little-64, 3::little-64, 0::size(48)-unit(8)>>

    each(4000, fn ->
      case payload |> HostileBytes.damage() |> Payload.decode() do
        {:ok, tensor} -> assert byte_size(tensor.data) <= 200
        {:error, reason} -> assert is_binary(reason)
      end
    end)
  end

  test "frames that announce much take nothing" do
    frames =
      for tag <- [0xDD, 0xDF, 0xC6, 0xDB, 0xC9] do
        [<<tag, 0xFFFFFFFF::32>>, :binary.copy(<<tag, 0xFFFFFFFF::32>>, 10_000)]
      end

    for frame <- List.flatten(frames) do
      assert {:error, %Protocol{}} = confined(fn -> Msgpack.decode(frame) end)
    end

    huge = <<2, "u8", 64, :binary.copy(<<0xFF>>, 512)::binary>>
    assert {:error, reason} = confined(fn -> Payload.decode(huge) end)
    assert byte_size(reason) < @small
  end

  test "nesting ends" do
    for byte <- [<<0x91>>, <<0x81, 0xA0>>, <<0xDD, 1::32>>, <<0xDF, 1::32, 0xA1, "a">>] do
      assert {:error, %Protocol{}} = confined(fn -> Msgpack.decode(:binary.copy(byte, 1_000_000)) end)
    end
  end

  defp assert_decoded({:ok, _term}), do: :ok
  defp assert_decoded({:error, %Protocol{} = error}), do: assert(String.valid?(Exception.message(error)))

  defp assert_read({:ok, id, _event}), do: assert(is_integer(id))
  defp assert_read({:error, %Protocol{} = error}), do: assert(String.valid?(Exception.message(error)))
end
