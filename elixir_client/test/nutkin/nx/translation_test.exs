defmodule Nutkin.Nx.TranslationTest do
  # How a graph is written down, without Nx and without a worker.
  use ExUnit.Case, async: true

  import Nutkin.Test.Expressions

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Nx.{Counted, Function}

  defp nodes(graph, count \\ 1), do: Function.new(graph, List.duplicate({"f64", []}, count)).model.nodes

  defp ops(nodes), do: for(%{"op" => op} <- nodes, do: op)

  describe "sharing" do
    test "an expression is written once, however often it is used" do
      chain = Enum.reduce(1..300, parameter(0), fn _, x -> add(x, x) end)
      assert length(ops(nodes(chain))) == 300
    end

    test "what one branch needs is in it, what both need is before them" do
      x = parameter(0)
      {left, right, shared} = {add(x, number(1.0)), add(x, number(2.0)), expression(:exp, [x])}
      graph = choice(greater(x, number(0.0)), add(left, shared), add(right, shared))
      nodes = nodes(graph)

      assert [%{"on_true" => on_true, "on_false" => on_false}] =
               for(%{"kind" => "cond"} = node <- nodes, do: node)

      assert "exp" in ops(nodes)
      refute "add" in ops(nodes)
      for body <- [on_true, on_false], do: assert(Enum.count(ops(body["nodes"]), &(&1 == "add")) == 2)
    end

    test "what is needed outside too is before them" do
      x = parameter(0)
      once = expression(:exp, [x])
      graph = add(choice(greater(x, number(0.0)), once, x), once)
      assert Enum.count(ops(nodes(graph)), &(&1 == "exp")) == 1
    end

    test "a chain of choices does not double with each" do
      x = parameter(0)
      chain = Enum.reduce(1..40, x, fn _, y -> choice(greater(x, number(0.0)), add(y, x), add(x, y)) end)
      nodes = nodes(chain)
      assert Enum.count(nodes, &(&1["kind"] == "cond")) == 40
      assert length(nodes) < 200
    end

    test "many branches are nested by halves" do
      x = parameter(0)
      clauses = for i <- 1..200, do: {greater(x, number(1.0 * i)), add(x, number(1.0 * i))}
      graph = expression(:cond, [clauses, x])
      assert depth(Function.new(graph, [{"f64", []}]).model.nodes) <= 9
    end

    defp depth(nodes) do
      inner =
        for %{"kind" => "cond"} = node <- nodes,
            side <- ["on_true", "on_false"],
            do: depth(node[side]["nodes"])

      1 + Enum.max(inner, fn -> 0 end)
    end

    test "another use of an expression may have another shape" do
      x = expression(:parameter, [0], shape: {2, 3})
      other = %{x | shape: {6}}
      sum = expression(:add, [other, other], shape: {6})
      nodes = Function.new({x, sum}, [{"f64", [2, 3]}]).model.nodes

      assert [%{"op" => "reshape", "opts" => %{"shape" => [6]}} | _] =
               for(%{"op" => _} = node <- nodes, do: node)
    end

    test "a captured tensor is one blob" do
      state = for i <- 1..6, into: <<>>, do: <<1.0 * i::float-little-64>>
      tensor = %{expression(:none, [], shape: {6}) | data: %{__struct__: Nx.BinaryBackend, state: state}}
      # Nx makes an expression for each use.
      [a, b] = for _ <- 1..2, do: expression(:tensor, [tensor], shape: {6})
      function = Function.new(expression(:add, [a, b], shape: {6}), [])
      assert map_size(function.model.blobs) == 1
      assert Enum.count(function.model.nodes, &(&1["kind"] == "constant")) == 1
    end
  end

  describe "types" do
    test "are converted as Nx announces them" do
      byte = expression(:parameter, [0], type: {:u, 8})
      graph = expression(:add, [byte, number(255, {:s, 32})], type: {:u, 8})

      assert [
               %{"op" => "as_type", "opts" => %{"type" => "s32"}},
               %{"op" => "as_type", "opts" => %{"type" => "u8"}},
               add
             ] = graph |> nodes() |> Enum.filter(& &1["op"])

      assert {add["op"], add["type"], add["shape"]} == {"add", "u8", []}
    end

    test "of sums of unsigned integers, which Nx had before 0.9, are signed in between" do
      bytes = expression(:parameter, [0], type: {:u, 8})
      graph = expression(:sum, [bytes, [axes: nil, keep_axes: false]], type: {:u, 64})

      assert [%{"opts" => %{"type" => "s64"}}, %{"op" => "sum", "type" => "s64"}, last] =
               graph |> nodes() |> Enum.filter(& &1["op"])

      assert {last["op"], last["opts"]["type"]} == {"as_type", "u64"}
    end

    test "of what the worker has a function for are those that Nx announces" do
      x = expression(:parameter, [0], shape: {3})

      results =
        {expression(:parameter, [0], shape: {1}), expression(:parameter, [1], type: {:s, 64}, shape: {1})}

      top_k = expression(:optional, [expression(:top_k, [x, [k: 1]]), results, nil], type: {:tuple, 2})
      nodes = nodes(expression(:elem, [top_k, 1], type: {:s, 64}, shape: {1}))
      assert %{"op" => "as_type", "opts" => %{"type" => "s64"}} = List.last(nodes)
    end
  end

  describe "loops" do
    for {start, relation, limit, change, steps} <- [
          {0, :less, 10, 1, 10},
          {0, :less, 10, 3, 4},
          {0, :less_equal, 10, 5, 3},
          {10, :greater, 0, -1, 10},
          {10, :greater_equal, 0, -4, 3},
          {5, :less, 5, 1, 0},
          {0, :less, 10, -1, nil},
          {0, :less, 10, 0, nil},
          {0, :not_equal, 10, 1, nil}
        ] do
      test "from #{start} while #{relation} #{limit} by #{change}: #{inspect(steps)} steps" do
        step = &add(&1, number(unquote(change), {:s, 32}))
        loop = loop(unquote(start), unquote(relation), unquote(limit), step)
        assert Counted.steps(loop.data.args) == unquote(steps)

        mirrored =
          loop(
            unquote(start),
            unquote(relation),
            unquote(limit),
            &expression(:subtract, [&1, number(-unquote(change))])
          )

        assert Counted.steps(mirrored.data.args) == unquote(steps)
      end
    end

    test "of a known number of steps are scans, which have a gradient, and others have no bound" do
      counted = loop(0, :less, 4, &add(&1, number(1, {:s, 32})))
      other = loop(0, :less, 4, &add(&1, &1))
      take = &expression(:elem, [&1, 1])
      assert [%{"length" => 4}] = for(%{"kind" => "scan"} = node <- nodes(take.(counted)), do: node)
      assert [loop] = for(%{"kind" => "while"} = node <- nodes(take.(other)), do: node)
      refute is_map_key(loop, "max_steps")
    end
  end

  test "what the worker cannot do is refused by name" do
    assert_raise InvalidModel, ~r/no operation tensor_product of Nx/, fn ->
      nodes(expression(:tensor_product, [parameter(0)]))
    end
  end
end
