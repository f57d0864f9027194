defmodule Nutkin.ProtocolTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Blob, Diagnosis, Draws, Error, Msgpack, Progress, Protocol, Tensor}

  doctest Nutkin.Protocol

  @progress %{
    "chain" => 1,
    "phase" => "warmup",
    "iteration" => 10,
    "total" => 2000,
    "divergences" => 0,
    "step_size" => 0.5,
    "tree_depth" => 3,
    "gradients" => 70,
    "draws" => 0,
    "gradients_per_second" => 1.0e4,
    "seconds_left" => 2.5
  }

  @golden Path.expand("../../../bridge/golden", __DIR__)

  describe "the recorded frames of the port program" do
    @frames Path.wildcard(Path.join(@golden, "port_*.frame"))

    test "there is one of every type" do
      types = for path <- @frames, {:ok, [type, _, _]} = path |> File.read!() |> Msgpack.decode(), do: type

      assert types |> Enum.uniq() |> Enum.sort() ==
               ~w(checkpoint compiled compiling diagnosis done draws error evaluated hello info log need part pong) ++
                 ~w(progress shapes value)
    end

    for path <- @frames do
      @path path
      test "#{Path.basename(path, ".frame")} is an event of its type, with its id" do
        {:ok, [type, id, body]} = @path |> File.read!() |> Msgpack.decode()
        assert {:ok, ^id, {event, _}} = @path |> File.read!() |> Protocol.read()
        assert Atom.to_string(event) == type

        for field <- Map.keys(body), type != "error" do
          assert {:error, %Error.Protocol{path: path}} = read(type, id, rewritten(Map.delete(body, field)))
          assert path == "$." <> field
        end
      end
    end
  end

  # Bytes are read as binaries, and written as strings: only addresses are bytes.
  defp rewritten(%{"blobs" => [_ | _] = blobs} = body), do: %{body | "blobs" => Enum.map(blobs, &{:bin, &1})}
  defp rewritten(body), do: body

  test "a diagnosis has numbers where the message has scalars, and prints as its text" do
    frame = File.read!(Path.join(@golden, "port_diagnosis.frame"))
    assert {:ok, 7, {:diagnosis, %Diagnosis{finite?: false, value: :nan} = read}} = Protocol.read(frame)
    assert %{what: :value, within: ["step 3 of scan(y)"], place: [3], element: :nan, by: nil} = read.cause
    assert [%{shape: {200}, element: -0.12, greatest: 4.1}, %{place: nil, least: nil}] = read.cause.inputs
    assert to_string(read) == "sqrt(variance) is NaN at [3]\nat mu = 0.5"
    assert inspect(read) == "#Nutkin.Diagnosis<\n  sqrt(variance) is NaN at [3]\n  at mu = 0.5\n>"
    finite = File.read!(Path.join(@golden, "port_diagnosis_finite.frame"))
    assert {:ok, 8, {:diagnosis, %Diagnosis{finite?: true, cause: nil}}} = Protocol.read(finite)
  end

  test "progress and draws become structs" do
    assert {:ok, 4, {:progress, %Progress{chain: 1, phase: :warmup, total: 2000}}} =
             read("progress", 4, @progress)

    draws = %{
      "chain" => 0,
      "phase" => "sample",
      "start" => 100,
      "count" => 2,
      "variables" => %{"mu" => Tensor.new([1.0, 2.0])},
      "stats" => %{"lp" => Tensor.new([-1.0, :nan])}
    }

    assert {:ok, 4, {:draws, %Draws{phase: :sample, start: 100} = read}} = read("draws", 4, draws)
    assert Tensor.to_list(read.stats["lp"]) == [-1.0, :nan]
  end

  test "compiled, done, value and need" do
    compiled = %{
      "parameters" => [%{"name" => "theta", "shape" => [2, 3], "type" => "f64", "size" => 6}],
      "deterministic" => [],
      "observed" => ["y"],
      "predicted" => [],
      "dimension" => 6,
      "rewrites" => [%{"name" => "parameter_free", "node" => "y"}],
      "cached" => true,
      "seconds" => 0
    }

    assert {:ok, 1, {:compiled, %{parameters: [%{shape: {2, 3}, size: 6}], cached: true} = read}} =
             read("compiled", 1, compiled)

    assert read.rewrites == [%{name: "parameter_free", node: "y"}]

    chain = %{
      "chain" => 0,
      "draws" => 1000,
      "warmup" => 190,
      "divergences" => 0,
      "step_size" => 0.5,
      "inverse_mass" => Tensor.new([1.0]),
      "gradients" => 1
    }

    seconds = %{"compile" => 1, "warmup" => 0.5, "sample" => 2.5}
    done = %{"status" => "complete", "chains" => [chain], "pilot" => nil, "seconds" => seconds}
    assert {:ok, 1, {:done, done}} = read("done", 1, done)
    assert %{status: :complete, seconds: %{warmup: 0.5, sample: 2.5}} = done
    assert [%{draws: 1000, warmup: 190}] = done.chains

    value = %{
      "value" => Tensor.new(:neg_infinity),
      "gradient" => Tensor.new([1.0]),
      "position" => Tensor.new([0.0])
    }

    assert {:ok, 1, {:value, %{value: :neg_infinity}}} = read("value", 1, value)
    assert {:ok, 1, {:need, ["abc"]}} = read("need", 1, %{"blobs" => [{:bin, "abc"}]})
  end

  test "errors have their class" do
    body = %{"code" => "invalid_data", "message" => "a slot is missing", "node" => "y"}
    assert {:ok, 2, {:error, %Error.InvalidData{node: "y"}}} = read("error", 2, body)
  end

  test "every missing field and every field of another type is named" do
    assert {:ok, 1, {:progress, %Progress{seconds_left: nil}}} =
             read("progress", 1, %{@progress | "seconds_left" => nil})

    for name <- Map.keys(@progress) do
      assert {:error, %Error.Protocol{path: path, found: "nil"}} =
               read("progress", 1, Map.delete(@progress, name))

      assert path == "$." <> name

      assert {:error, %Error.Protocol{path: ^path, found: "[]"}} =
               read("progress", 1, %{@progress | name => []})
    end
  end

  test "a field deep in a list is named by its place" do
    done = %{
      "status" => "complete",
      "chains" => [%{"chain" => 0, "draws" => -1}],
      "pilot" => nil,
      "seconds" => %{}
    }

    assert {:error, %Error.Protocol{path: "$.chains[0].draws", found: "-1"}} = read("done", 1, done)
  end

  test "unknown phases, unknown messages and what is no message" do
    assert {:error, %Error.Protocol{path: "$.phase", expected: "one of sample, warmup"}} =
             read("progress", 1, %{@progress | "phase" => "adapt"})

    assert {:error, %Error.Protocol{message: "an unknown message"}} = read("gossip", 1, %{})

    for message <- [["ping", 1], ["ping", -1, %{}], [1, 1, %{}], ["ping", 1, []], 5, nil] do
      assert {:error, %Error.Protocol{message: "not a message"}} =
               message |> Msgpack.encode!() |> IO.iodata_to_binary() |> Protocol.read()
    end
  end

  test "fields that this version does not know are left alone" do
    assert {:ok, 1, {:progress, %Progress{}}} = read("progress", 1, Map.put(@progress, "mood", "good"))
  end

  test "a put has the blob's address, encoding and size" do
    blob = Blob.from_serialized("abcdef")
    {:ok, message} = Protocol.put(9, blob, 2, ["c", "d"]) |> IO.iodata_to_binary() |> Msgpack.decode()

    assert message == [
             "put",
             9,
             %{"blob" => blob.sha, "encoding" => "nx", "size" => 6, "offset" => 2, "bytes" => "cd"}
           ]
  end

  defp read(type, id, body),
    do: [type, id, body] |> Msgpack.encode!() |> IO.iodata_to_binary() |> Protocol.read()
end
