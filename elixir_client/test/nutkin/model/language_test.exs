defmodule Nutkin.Model.LanguageTest do
  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Distribution, Language, Operation, Operators}

  doctest Language

  @protocol Path.expand("../../../../bridge/PROTOCOL.md", __DIR__)

  describe "the protocol" do
    test "has the same operations" do
      written_out = ~w(dot concatenate stack dynamic_slice put_slice)
      named = for {name, _values, _settings, _options, _doc} <- Operation.table(), do: Atom.to_string(name)
      assert Enum.sort(named ++ written_out) == Enum.sort(protocol_operations())
    end

    test "has the same distributions, with the same parameters in the same order" do
      named =
        for {name, parameters, _, _} <- Distribution.table(), do: {"#{name}", Enum.map(parameters, &"#{&1}")}

      assert named == protocol_distributions()
    end

    test "has the same combinations, with the same parameters of their own" do
      named = for {name, own} <- Nutkin.Model.Combination.own(), do: {"#{name}", Enum.map(own, &"#{&1}")}
      assert named == protocol_distributions("### Combinations")
    end

    defp protocol_operations do
      for "| `" <> row <- section("### Operations"),
          [ops] = Regex.run(~r/^([a-z0-9_ ]+)`/, row, capture: :all_but_first),
          op <- String.split(ops),
          do: op
    end

    defp protocol_distributions(title \\ "### Distributions") do
      for "| `" <> row <- section(title) do
        [name, parameters | _] = String.split(row, "|")
        # A name in backquotes, not after a remark in brackets has begun.
        bare = String.replace(parameters, ~r/\([^)]*\)|\{[^}]*\}|;.*/, "")

        {String.trim(name, "` ") |> String.trim("`"),
         Regex.scan(~r/`(\w+)`/, bare, capture: :all_but_first) |> Enum.concat()}
      end
    end

    defp section(title) do
      [_, rest] = String.split(File.read!(@protocol), title <> "\n")
      rest |> String.split(~r/^##/m) |> hd() |> String.split("\n")
    end
  end

  describe "distributions" do
    test "take their parameters in order, by name, and options after either" do
      for {name, parameters, _, _} <- Distribution.table() do
        values = Enum.to_list(1..length(parameters)//1)
        named = Enum.zip(parameters, values)
        in_order = apply(Language, name, values)

        assert in_order == %Distribution{family: "#{name}", args: named, opts: []}
        assert apply(Language, name, [named]) == in_order
        assert apply(Language, name, values ++ [[shape: {3}]]) == %{in_order | opts: [shape: {3}]}
        assert apply(Language, name, [named ++ [shape: {3}]]) == %{in_order | opts: [shape: {3}]}
      end
    end

    test "refuse other parameters, and list the right ones" do
      for {wrong, fault} <- [
            {fn -> Language.normal(mu: 0) end, "normal is missing its parameter sigma"},
            {fn -> Language.normal(mu: 0, mu: 1, sigma: 1) end, "normal has its parameter mu twice"},
            {fn -> Language.normal(mu: 0, sigma: 1, scale: 1) end,
             "normal has no parameter or option :scale"},
            {fn -> Language.normal(0, 1, sahpe: {3}) end,
             "normal has no parameter or option :sahpe; did you mean :shape?"},
            {fn -> Language.normal(0, sigma: 1) end,
             "normal has the wrong arguments; found normal(0, [sigma: 1])"},
            {fn -> Language.normal(0, 1, 2) end, "normal has the wrong arguments; found normal(0, 1, 2)"},
            {fn -> Language.normal(0) end, "normal has the wrong arguments; found normal(0)"}
          ] do
        error = assert_raise InvalidModel, wrong
        assert Exception.message(%{error | expected: nil}) == fault

        assert error.expected ==
                 "normal(mu, sigma) or normal(mu: …, sigma: …) or normal(mu: …, tau: …), " <>
                   "then the options name:, shape:, transform:, centered:"
      end
    end

    test "carry their options to the free variable" do
      assert rv(fn -> Language.normal(0, 1, shape: {2, 3}, transform: :identity, centered: true) end) ==
               %{
                 "kind" => "rv",
                 "name" => "x",
                 "dist" => "normal",
                 "args" => %{"mu" => 0, "sigma" => 1},
                 "shape" => [2, 3],
                 "transform" => "identity",
                 "centered" => true
               }

      assert rv(fn -> Language.gaussian_random_walk(1, shape: {}) end)["shape"] == []
    end

    test "refuse options of the wrong form" do
      for {opts, fault} <- [
            {[shape: 3], ~r/invalid :shape of normal; expected a tuple of positive integers.*; found 3/},
            {[shape: {0}], ~r/invalid :shape of normal/},
            {[transform: :exp],
             ~r/invalid :transform of normal; expected one of :identity, :log.*found :exp/},
            {[transform: nil], ~r/invalid :transform/},
            {[centered: 1], ~r/invalid :centered of normal; expected true, false or :auto; found 1/},
            {[shape: {2}, shape: {3}], ~r/normal has the option :shape twice/},
            {[name: 3],
             ~r/not a name, as normal\(…, name: name\) needs; expected an atom or a string; found 3/},
            {[name: ""], ~r/not a name/}
          ] do
        assert_raise InvalidModel, fault, fn -> rv(fn -> Language.normal(0, 1, opts) end) end
      end
    end

    test "are not values, and values are no distributions" do
      assert_raise InvalidModel, ~r/argument 1 of exp is a distribution.*x <~ normal\(\.\.\.\)/, fn ->
        model do
          exp(normal(0, 1))
        end
      end

      assert_raise InvalidModel, ~r/argument 1 of \+ is a distribution/, fn ->
        model do
          normal(0, 1) + 1
        end
      end

      assert_raise InvalidModel, ~r/x has no distribution; expected a distribution.*found 3/, fn ->
        model do
          x <~ 3
        end
      end
    end

    defp rv(distribution) do
      built =
        model do
          x <~ distribution.()
        end

      List.last(built.nodes)
    end
  end

  describe "statements" do
    test "data declares its shape and type" do
      assert node_of(fn -> Language.data("y", shape: {nil, 3}, type: :s32) end) ==
               %{"kind" => "data", "name" => "y", "shape" => [nil, 3], "type" => "s32"}

      for name <- [:rows, "rows"] do
        assert node_of(fn -> Language.data(:y, grows: name) end) ==
                 %{"kind" => "data", "name" => "y", "grows" => "rows"}
      end

      for name <- [nil, true, "", 3] do
        assert_raise InvalidModel, ~r/invalid :grows of data slot y; expected an atom or a string/, fn ->
          node_of(fn -> Language.data(:y, grows: name) end)
        end
      end

      assert_raise InvalidModel, ~r/invalid :shape of data slot y/, fn ->
        node_of(fn -> Language.data(:y, shape: [3]) end)
      end

      assert_raise InvalidModel, ~r/invalid :type of data slot y/, fn ->
        node_of(fn -> Language.data(:y, type: :f63) end)
      end

      assert_raise InvalidModel, ~r/data slot y has no option :size; expected :shape, :type/, fn ->
        node_of(fn -> Language.data(:y, size: 3) end)
      end
    end

    test "observe takes weight, mask and reduce" do
      observed =
        model do
          mu <~ normal(0, 1)
          w = data(:w)
          observe(:y, normal(mu, 1), [1.0, 2.0], weight: w, mask: [0, 1], reduce: :mean)
        end

      assert %{"kind" => "observe", "name" => "y", "dist" => "normal", "weight" => 3, "reduce" => "mean"} =
               observe = List.last(observed.nodes)

      assert observe["value"] != observe["mask"]
      assert Enum.at(observed.nodes, observe["mask"])["blob"]
    end

    test "observe refuses what belongs to free variables" do
      assert_raise InvalidModel, ~r/:shape does not apply to the observed normal/, fn ->
        model do
          observe(:y, normal(0, 1, shape: {3}), 1)
        end
      end

      message = "observe y has no option :weights; expected :weight, :mask, :reduce; did you mean :weight?"

      assert_raise InvalidModel, message, fn ->
        model do
          observe(:y, normal(0, 1), 1, weights: 2)
        end
      end

      assert_raise InvalidModel, ~r/the options of observe y are no keyword list.*found 2/, fn ->
        model do
          observe(:y, normal(0, 1), 1, 2)
        end
      end

      assert_raise InvalidModel, ~r/invalid :reduce of observe y.*one of :sum, :mean; found :max/, fn ->
        model do
          observe(:y, normal(0, 1), 1, reduce: :max)
        end
      end
    end

    test "factor and deterministic name their values" do
      assert %{"kind" => "factor", "name" => "f", "value" => 0} = node_of(fn -> Language.factor(:f, 1) end)

      built =
        model do
          twice = deterministic(:twice, tensor(3) * 2)
          factor(:f, twice)
        end

      assert [_, _, %{"op" => "multiply"}, %{"kind" => "deterministic", "value" => 2}, %{"value" => 2}] =
               built.nodes
    end

    test "the left side of <~ is a variable" do
      for left <- [~s("mu"), "_", "{a, b}", "mu.x"] do
        assert_raise ArgumentError,
                     "the left side of <~ is a variable, such as mu in mu <~ normal(0, 1), not #{left}",
                     fn ->
                       Code.eval_string("import Nutkin.Model; model do #{left} <~ normal(0, 1) end")
                     end
      end
    end

    test "a name is an atom or a string" do
      for name <- [nil, true, 3, "", <<255>>, {:a}] do
        assert_raise InvalidModel, ~r/not a name/, fn -> node_of(fn -> Language.data(name) end) end
      end
    end

    test "that have no name show where it belongs" do
      for {statement, form} <- [
            {fn -> Language.data(3) end, "data(name)"},
            {fn -> Language.observe(Language.normal(0, 1), :y, 1) end, "observe(name, distribution, value)"},
            {fn -> Language.factor(3, 1) end, "factor(name, value)"},
            {fn -> Language.deterministic(3, 1) end, "deterministic(name, value)"}
          ] do
        error = assert_raise InvalidModel, fn -> node_of(statement) end
        assert error.message == "not a name, as #{form} needs"
        assert error.found in ["3", "#Nutkin.Model.Distribution<normal>"]
      end
    end
  end

  describe "operations" do
    test "all become calls, with their settings" do
      settings = %{
        type: {:s, 32},
        starts: [0, 1],
        lengths: [1, 2],
        shape: {2, 1},
        window: {1, 2},
        repetitions: [2],
        padding_config: [{0, 1, 2}],
        axis: -1,
        power: -2,
        q: 0.5
      }

      options = %{
        axes: {[0, -1], [0, -1]},
        axis: {-1, -1},
        length: {3, 3},
        keep_axes: {true, true},
        reverse: {true, true},
        strides: {[1, 2], [1, 2]},
        window_dilations: {2, 2},
        input_dilation: {2, 2},
        kernel_dilation: {[1], [1]},
        padding: {[{1, -1}], [[1, -1]]},
        direction: {:desc, "desc"},
        tie_break: {:high, "high"},
        keep_axis: {true, true},
        type: {:s64, "s64"},
        ddof: {1, 1},
        rtol: {0.5, 0.5},
        atol: {0, 0},
        equal_nan: {true, true},
        k: {2, 2},
        order: {2, 2},
        offset: {-1, -1},
        feature_group_size: {2, 2},
        batch_group_size: {2, 2},
        input_permutation: {[1, 0], [1, 0]},
        kernel_permutation: {[1, 0], [1, 0]},
        output_permutation: {[1, 0], [1, 0]},
        lower: {false, false},
        left_side: {false, false},
        transform_a: {:transpose, "transpose"},
        ord: {:inf, "inf"}
      }

      wired =
        for {setting, value} <- settings, into: %{} do
          wire =
            case value do
              {:s, 32} -> "s32"
              tuple when is_tuple(tuple) -> Tuple.to_list(tuple)
              [{_, _, _}] -> [[0, 1, 2]]
              value -> value
            end

          {"#{setting}", wire}
        end

      for {name, values, settings_of, options_of, _doc} <- Operation.table(), name not in kernel_names() do
        args =
          Enum.map(values, fn _ -> 1 end) ++ Enum.map(settings_of, fn {setting, _} -> settings[setting] end)

        references = Enum.map(values, fn _ -> 0 end)
        expected = Map.take(wired, Enum.map(settings_of, fn {setting, _} -> "#{setting}" end))

        assert call_of(fn -> apply(Language, name, args) end) ==
                 %{"kind" => "call", "op" => "#{name}", "args" => references, "opts" => expected}

        for {option, _kind} <- options_of do
          {given, wire} = options[option]
          node = call_of(fn -> apply(Language, name, args ++ [[{option, given}]]) end)
          assert node["opts"] == Map.put(expected, "#{option}", wire)
        end
      end
    end

    test "give several values as a tuple of nodes" do
      nodes = nodes_of(fn -> Language.deterministic(:r, elem(Language.qr(Language.tensor([[1.0]])), 1)) end)

      assert [_, %{"op" => "qr"}, q, r, %{"name" => "r", "value" => 3}] = nodes
      assert q == %{"kind" => "elem", "of" => 1, "index" => 0}
      assert r == %{"kind" => "elem", "of" => 1, "index" => 1}

      assert {_, _, _} = value_of(fn -> Language.svd([[1.0]]) end)
      assert {_, _} = value_of(fn -> Language.top_k([1.0, 2.0], k: 1) end)
    end

    test "slice and put_slice at nodes" do
      assert [_, _, %{"op" => "dynamic_slice", "args" => [0, 1, 1], "opts" => opts}] =
               nodes_of(fn ->
                 [x, i] = Enum.map([[[1, 2]], 0], &Language.tensor/1)
                 Language.slice(x, [i, 0], [1, 1], strides: 1)
               end)

      assert opts == %{"lengths" => [1, 1], "strides" => 1}

      assert %{"op" => "put_slice", "args" => [0, 1, 2], "opts" => %{}} =
               node_of(fn -> Language.put_slice([1, 2], [0], [3]) end)

      assert_raise InvalidModel, ~r/starts of put_slice are no list/, fn ->
        node_of(fn -> Language.put_slice([1, 2], 0, [3]) end)
      end
    end

    test "join lists of values" do
      for name <- [:concatenate, :stack] do
        assert node_of(fn -> apply(Language, name, [[1, 2], [axis: -1]]) end) ==
                 %{"kind" => "call", "op" => "#{name}", "args" => [0, 1], "opts" => %{"axis" => -1}}

        assert_raise InvalidModel, ~r/the argument of #{name} is no list of values/, fn ->
          node_of(fn -> apply(Language, name, [1]) end)
        end
      end
    end

    test "contract as Nx does" do
      assert node_of(fn -> Language.dot(1, 2) end)["opts"] == %{}

      assert node_of(fn -> Language.dot(1, [0], [], 2, [-1], []) end) ==
               node_of(fn -> Language.dot(1, [0], 2, [-1]) end)

      assert node_of(fn -> Language.dot(1, [1], [0], 2, [2], [0]) end)["opts"] ==
               %{"contract_a" => [1], "batch_a" => [0], "contract_b" => [2], "batch_b" => [0]}
    end

    test "refuse unknown options and wrong ones" do
      for {wrong, fault} <- [
            {fn -> Language.sum(1, axis: 0) end, ~r/sum has no option :axis; expected :axes, :keep_axes/},
            {fn -> Language.sum(1, axes: 1.5) end,
             ~r/invalid :axes of sum; expected an axis, or a list of axes; found 1.5/},
            {fn -> Language.sum(1, 0) end, ~r/the options of sum are no keyword list/},
            {fn -> Language.reshape(1, [2]) end, ~r/invalid :shape of reshape; expected a tuple/},
            {fn -> Language.as_type(1, "f99") end, ~r/invalid :type of as_type; expected a type/},
            {fn -> Language.eye({3}) end, ~r/invalid :shape of eye; expected a number of rows, or a tuple/},
            {fn -> Language.pad(1, 0, [{1, 2}]) end,
             ~r/invalid :padding_config of pad; expected a {low, high, int/},
            {fn -> Language.window_sum(1, {1}, padding: :full) end,
             ~r/expected :valid, :same, or a {low, high}/},
            {fn -> Language.window_sum(1, {1}, strides: 0) end, ~r/expected a positive integer, or a list/},
            {fn -> Language.norm(1, ord: :two) end, ~r/expected a number, or one of :inf, :neg_inf/},
            {fn -> Language.quantile(1, :half) end, ~r/invalid :q of quantile; expected a number/},
            {fn -> Language.tril(1, k: 0.5) end, ~r/invalid :k of tril; expected an integer/},
            {fn -> Language.slice(1, [-1], [1]) end, ~r/invalid :starts of slice/},
            {fn -> Language.slice(1, [0], [0]) end, ~r/invalid :lengths of slice/}
          ] do
        assert_raise InvalidModel, fault, fn -> node_of(wrong) end
      end
    end

    test "refuse what is no value, and say where" do
      for {value, fault} <- [
            {:mu, ~r/argument 1 of exp is not a value: not a number; expected a number.*; found :mu/},
            {nil, ~r/not a number.*found nil/},
            {true, ~r/not a number.*found true/},
            {%{a: 1}, ~r/not a number.*found %{a: 1}/},
            {"text", ~r/not a number.*found "text"/},
            {{1, 2}, ~r/not a number.*found {1, 2}/},
            {[[1, 2], [3]], ~r/lists of unequal lengths \(at \[1\]\)/},
            {[], ~r/an empty list/},
            {2 ** 64, ~r/argument 1 of exp is too large/}
          ] do
        assert_raise InvalidModel, fault, fn -> node_of(fn -> Language.exp(value) end) end
      end

      assert_raise InvalidModel, ~r/not a number \(at \[1\]\).*stack\(\[\.\.\.\]\) joins nodes/, fn ->
        model do
          x <~ normal(0, 1)
          sum([1.0, x])
        end
      end
    end

    test "numbers that are not finite become tensors" do
      assert %{"blob" => {:bin, _}} = node_of(fn -> Language.tensor(:infinity) end)
    end
  end

  defmodule Part do
    use Nutkin.Model.Language

    def scaled(x, by) when by > 0, do: -x * by ** 2
  end

  test "functions elsewhere can write a part of a model" do
    built =
      model do
        x <~ normal(0, 1)
        factor(:f, Part.scaled(x, 3))
      end

    assert [_, _, _, %{"op" => "negate"}, %{"value" => 9}, %{"op" => "multiply"}, _] = built.nodes
  end

  defmodule Namesake do
    use Nutkin.Model.Language, except: [data: 1]

    def data(name), do: Nutkin.Model.Language.data("#{name}_of_ours", type: :f64)
    def doubled(name), do: 2 * data(name)
  end

  test "functions of the language may be left out" do
    built = Nutkin.Model.build(fn -> Namesake.doubled(:y) end)
    assert [%{"name" => "y_of_ours", "type" => "f64"}, %{"value" => 2}, %{"op" => "multiply"}] = built.nodes
  end

  test "every function is documented, with its types" do
    {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(Language)
    {:ok, specs} = Code.Typespec.fetch_specs(Language)
    specified = for {{name, arity}, _} <- specs, do: {name, arity}

    for {{:function, name, arity}, _, _, doc, meta} <- docs, name != :__free__ do
      assert %{"en" => _text} = doc
      lowest = arity - Map.get(meta, :defaults, 0)
      assert Enum.any?(lowest..arity, &({name, &1} in specified)), "#{name}/#{arity} has no @spec"
    end

    for arity <- 1..3, do: assert({:normal, arity} in specified)
  end

  defp kernel_names, do: Keyword.keys(Operators.kernel_names())

  defp node_of(fun), do: fun |> nodes_of() |> List.last()
  defp nodes_of(fun), do: Nutkin.Model.build(fun).nodes

  # The call among the nodes, behind which are those that take its values.
  defp call_of(fun), do: fun |> nodes_of() |> Enum.find(&(&1["kind"] == "call"))

  defp value_of(fun) do
    Nutkin.Model.build(fn -> send(self(), {:value, fun.()}) end)
    assert_received {:value, value}
    value
  end
end
