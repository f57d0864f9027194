defmodule Nutkin.OptionsTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.InvalidOption
  alias Nutkin.Options
  alias Nutkin.Tensor

  doctest Nutkin.Options

  @protocol Path.expand("../../../bridge/PROTOCOL.md", __DIR__)

  test "those that travel are those of the protocol, with the same defaults" do
    {:ok, defaults} = Options.validate([], Options.names())
    wire = Options.to_wire(defaults)

    rows = documented("sample")

    assert Enum.sort(for [name | _] <- rows, do: String.trim(name, "`")) ==
             Enum.sort(Map.keys(wire) -- ["redraw"])

    # The wire sends no checkpoints unasked; the client asks for them.
    for [name, _type, default | _] <- rows, default != "", name != "checkpoint_every`" do
      assert to_string(wire[String.trim(name, "`")]) ==
               default |> String.trim("`") |> String.replace("nil", "")
    end

    assert wire["init"] == %{radius: 2, values: %{}}
  end

  test "those of predictions are those of the protocol, which says itself how many there are" do
    options = Nutkin.predict(Nutkin.Model.build(fn -> :ok end), :prior, other: 1)
    assert {:error, %InvalidOption{expected: expected}} = options
    names = for [name | _] <- documented("predict"), do: String.trim(name, "`")
    assert Enum.sort(names) == ~w(chains credit draws of precision redraw seed variables)
    for name <- names -- ["of", "redraw"], do: assert(expected =~ ":#{name}")
  end

  # The rows of the table of a request's options.
  defp documented(request) do
    [_, section] = String.split(File.read!(@protocol), "`options` of `#{request}`")
    [section | _] = String.split(section, ["\n## ", "\n`options` of "])

    for "| `" <> row <- String.split(section, "\n"),
        do: row |> String.split("|") |> Enum.map(&String.trim(&1, " "))
  end

  test "every value in range is accepted" do
    for {name, values} <- [
          chains: [1, 1024],
          draws: [1, 1_000_000_000],
          warmup: [0, 1_000_000_000],
          seed: [0, 2 ** 64 - 1],
          target_accept: [0.01, 0.99],
          max_tree_depth: [1, 15],
          mass_matrix: [:diagonal, :dense],
          adaptation: [:pooled, :windowed],
          thin: [1, 7],
          keep_warmup: [true, false],
          precision: [:f64, :f32],
          credit: [0, 1],
          timeout: [0, 5000, :infinity],
          on_progress: [nil, &IO.inspect/1],
          worker: [MyWorker, self(), {:via, Registry, {R, "name"}}, {:global, :name}, {MyWorker, :node@host}],
          variables: [nil, []]
        ],
        value <- values do
      assert Options.validate([{name, value}], [name]) == {:ok, %{name => value}}
    end
  end

  test "every value out of range is an error that names the option and what is allowed" do
    for {name, value, expected} <- [
          {:chains, 0, "an integer from 1 to 1024"},
          {:chains, 2.0, "an integer from 1 to 1024"},
          {:chains, nil, "an integer from 1 to 1024"},
          {:seed, -1, "an integer from 0 to 18446744073709551615"},
          {:target_accept, 1, "a number between 0 and 1, both excluded"},
          {:target_accept, 0.0, "a number between 0 and 1, both excluded"},
          {:mass_matrix, :round, ":diagonal or :dense"},
          {:adaptation, :stan, ":pooled or :windowed"},
          {:precision, "f64", ":f64 or :f32"},
          {:keep_warmup, 1, "true or false"},
          {:timeout, -1, "milliseconds, an integer from 0 to 4294967295, or :infinity"},
          {:timeout, 1.5, "milliseconds, an integer from 0 to 4294967295, or :infinity"},
          {:timeout, 0x100000000, "milliseconds, an integer from 0 to 4294967295, or :infinity"},
          {:on_progress, fn -> :ok end, "a function of 1 argument(s)"},
          {:worker, "Nutkin", "the name of a worker, or its pid"},
          {:worker, nil, "the name of a worker, or its pid"},
          {:variables, :mu, "a list of names, or nil"},
          {:variables, [:mu, 3], "a list of names, or nil"},
          {:data, [1, 2], "a map or keyword list of values by name"},
          {:data, %{3 => 1}, "names that are atoms or strings"},
          {:data, %{:y => 1, "y" => 2}, "every name once"},
          {:init, -1, "a radius, a map of values by name, or [radius: radius, values: map]"},
          {:init, [radius: :wide], "a radius, a map of values by name, or [radius: radius, values: map]"},
          {:init, [radii: 1], "a radius, a map of values by name, or [radius: radius, values: map]"},
          {:init, %{radius: 1, values: %{nu: 1}},
           "a radius, a map of values by name, or [radius: radius, values: map]"},
          {:init, :random, "a radius, a map of values by name, or [radius: radius, values: map]"}
        ] do
      assert {:error, %InvalidOption{} = error} = Options.validate([{name, value}], [name])
      assert {error.message, error.expected} == {"invalid value of option #{inspect(name)}", expected}
      assert error.path == "#{name}"
      assert is_binary(error.found)
    end
  end

  test "the keys of starting values in a map are told to be those of a list" do
    assert {:error, error} = Options.validate([init: %{values: %{nu: 1}}], [:init])

    assert Exception.message(error) ==
             "invalid value of option :init; expected a radius, a map of values by name, or [radius: radius, " <>
               "values: map]; found %{values: %{nu: 1}}; in a map every key is the name of a parameter; :values is " <>
               "a key of the list"

    assert {:ok, %{init: %{values: %{"values" => _}}}} = Options.validate([init: %{values: [1, 2]}], [:init])
  end

  test "names become strings" do
    assert {:ok, %{variables: ["mu", "tau"]}} = Options.validate([variables: [:mu, "tau"]], [:variables])
    assert {:ok, %{data: %{"y" => [1], "x" => 2}}} = Options.validate([data: %{:y => [1], "x" => 2}], [:data])
    assert {:ok, %{data: %{"y" => [1]}}} = Options.validate([data: [y: [1]]], [:data])
  end

  test "init is a radius, values, or both" do
    assert {:ok, %{init: %{radius: 0.5, values: %{}}}} == Options.validate([init: 0.5], [:init])

    mu = Tensor.new(1.5)

    assert {:ok, %{init: %{radius: 2, values: %{"mu" => mu}}}} ==
             Options.validate([init: %{mu: 1.5}], [:init])

    assert {:ok, %{init: %{radius: 0, values: %{"mu" => mu}}}} ==
             Options.validate([init: [radius: 0, values: %{"mu" => 1.5}]], [:init])

    for {value, message} <- [
          {"a",
           "invalid value of option :init: not a number (node mu, at init.mu); expected a number, a list, a range, " <>
             ~s(a Nutkin.Tensor or an Nx.Tensor; found "a")},
          {[1, [2]],
           "invalid value of option :init: lists of unequal depth (node mu, at init.mu[1]); expected a number; found a list"}
        ] do
      assert {:error, %InvalidOption{} = error} = Options.validate([init: %{mu: value}], [:init])
      assert Exception.message(error) == message
    end
  end

  test "an unknown option is an error that lists those there are" do
    assert {:error, error} = Options.validate([chians: 2], [:chains, :draws])

    assert Exception.message(error) ==
             "unknown option :chians; expected one of :chains, :draws; did you mean :chains?"

    assert {:error, error} = Options.validate([zzz: 2], [:chains, :draws])
    assert Exception.message(error) == "unknown option :zzz; expected one of :chains, :draws"
  end

  test "an option of other functions is told from one that does not exist" do
    {:error, error} = Options.validate([timeout: 5], [:chains, :data])
    assert error.hint == "Nutkin.await/2 takes a timeout for a run"
    {:error, error} = Options.validate([on_progress: &is_map/1], [:chains, :data])
    assert error.hint == "it is an option of other functions only"
  end

  test "the names of other samplers are told in ours" do
    for {theirs, ours} <- [
          tune: :warmup,
          num_warmup: :warmup,
          iter: :draws,
          num_samples: :draws,
          adapt_delta: :target_accept
        ] do
      assert {:error, error} = Options.validate([{theirs, 1}], Options.names())
      assert error.hint == "it is called #{inspect(ours)} here"
    end

    assert {:error, error} = Options.validate([y: [1, 2]], Options.names())
    assert error.hint == "values of data slots belong into :data, as in data: %{y: ...}"
    assert {:error, %InvalidOption{hint: nil}} = Options.validate([tune: 1], [:chains])
  end

  test "options are a keyword list, each once" do
    assert {:error, %InvalidOption{expected: "a keyword list"}} = Options.validate(%{chains: 1}, [:chains])
    assert {:error, %InvalidOption{}} = Options.validate([chains: 1, chains: 2], [:chains])
  end

  test "what travels has an encoding" do
    {:ok, options} = Options.validate([init: %{mu: 1.5}, variables: [:mu]], Options.names())

    assert {:ok, decoded} =
             options
             |> Options.to_wire()
             |> Nutkin.Msgpack.encode!()
             |> IO.iodata_to_binary()
             |> Nutkin.Msgpack.decode()

    assert decoded["init"] == %{"radius" => 2, "values" => %{"mu" => Tensor.new(1.5)}}
    assert decoded["mass_matrix"] == "diagonal"
  end
end
