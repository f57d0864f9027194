defmodule Nutkin.DefnTest do
  # With the real Nx, and the real port: what Nutkin.Defn gives is what Nx.Defn.Evaluator gives.
  use Nutkin.Test.WorkerCase, async: true

  alias Nutkin.Error

  @compile {:no_warn_undefined, [Nx, Nx.Constants, Nx.Defn, Nx.Random, Nx.LinAlg]}
  @moduletag :nx
  @moduletag :port

  setup_all do
    %{worker: start_worker!(port_options())}
  end

  # A defn, which only a module that is compiled with Nx can have.
  @numerical """
  defmodule Nutkin.DefnTest.Numerical do
    import Nx.Defn

    defn softmax(x), do: Nx.exp(x) / Nx.sum(Nx.exp(x))

    defn with_gradient(x, y), do: {softmax(x), %{gradient: grad(x, fn x -> Nx.sum(softmax(x) * y) end)}}

    defn newton(a) do
      {_a, x, _steps} =
        while {a, x = Nx.as_type(a, Nx.type(a)), i = 0}, Nx.abs(x * x - a) > 1.0e-12 and i < 100 do
          {a, 0.5 * (x + a / x), i + 1}
        end

      x
    end

    defn sign_of(x) do
      cond do
        x > 0 -> 1
        x < 0 -> -1
        true -> 0
      end
    end

    defn of_rows(x) do
      row = Nx.vectorize(x, :row)

      y =
        cond do
          row > 0.8 -> row ** 3
          row > 0.3 -> Nx.sin(row)
          true -> -row
        end

      {doubled, steps} =
        while {y, steps = 0}, y < 3.0 and steps < 9 do
          {y * 2, steps + 1}
        end

      {Nx.devectorize(doubled), Nx.devectorize(steps)}
    end

    defn factored(a) do
      {a, _i} =
        while {a, i = 0}, i < 3 do
          lower = Nx.LinAlg.cholesky(a)
          {Nx.dot(Nx.transpose(lower), lower) + 0.1, i + 1}
        end

      %{a: a, solved: {Nx.LinAlg.solve(a, a[0]), Nx.LinAlg.determinant(a)}}
    end

    defn slope(x) do
      grad(x, fn x ->
        y = if Nx.sum(x) > 1, do: Nx.sum(x ** 3), else: Nx.sum(Nx.sin(x))

        {%{y: y}, _x, _i} =
          while {sums = %{y: y}, x, i = 0}, i < 3 do
            {%{y: sums.y * 1.5 + Nx.sum(x * stop_grad(x))}, x, i + 1}
          end

        y
      end)
    end

    defn hooked(x), do: hook(x + 1, :seen, &send(self(), {:seen, &1})) * 2

    defn uniform(key) do
      {values, _key} = Nx.Random.uniform(key, shape: {3})
      values
    end
  end
  """

  setup_all do
    unless Code.ensure_loaded?(Nutkin.DefnTest.Numerical), do: Code.eval_string(@numerical)
    %{numerical: Nutkin.DefnTest.Numerical}
  end

  defp assert_same(fun, arguments, worker) do
    found = Nx.Defn.jit_apply(fun, arguments, compiler: Nutkin.Defn, worker: worker)
    expected = Nx.Defn.jit_apply(fun, arguments, compiler: Nx.Defn.Evaluator)
    assert_close(found, expected)
    found
  end

  defp assert_close(found, expected) when is_tuple(found) do
    for {a, b} <- Enum.zip(Tuple.to_list(found), Tuple.to_list(expected)), do: assert_close(a, b)
  end

  defp assert_close(%{__struct__: Nx.Tensor} = found, expected) do
    assert {found.type, found.shape, found.names} == {expected.type, expected.shape, expected.names}

    for {a, b} <- Enum.zip(Nx.to_flat_list(found), Nx.to_flat_list(expected)),
        do: assert_in_delta(a, b, 1.0e-6 * max(1, abs(b)))
  end

  defp assert_close(%{} = found, expected) do
    assert Map.keys(found) == Map.keys(expected)
    for {key, value} <- found, do: assert_close(value, expected[key])
  end

  test "containers and gradients", %{worker: worker, numerical: numerical} do
    x = Nx.tensor([0.1, -2.0, 1.5], type: :f64, names: [:class])
    assert_same(&numerical.with_gradient/2, [x, Nx.tensor([1, 2, 3])], worker)
  end

  test "loops and choices", %{worker: worker, numerical: numerical} do
    assert_same(&numerical.newton/1, [Nx.tensor(2.0, type: :f64)], worker)
    for x <- [-3, 0, 2.5], do: assert_same(&numerical.sign_of/1, [x], worker)
  end

  test "vectorized choices and loops, factors in loops, gradients of both", %{
    worker: worker,
    numerical: numerical
  } do
    assert_same(&numerical.of_rows/1, [Nx.tensor([1.0, 0.5, 0.1, -2.0], type: :f64)], worker)
    assert_same(&numerical.factored/1, [Nx.tensor([[2.0, 0.5], [0.5, 1.0]], type: :f64)], worker)

    for x <- [[0.9, 0.5], [0.2, -0.5]],
        do: assert_same(&numerical.slope/1, [Nx.tensor(x, type: :f64)], worker)
  end

  test "hooks are left out", %{worker: worker, numerical: numerical} do
    assert Nx.Defn.jit_apply(&numerical.hooked/1, [1], compiler: Nutkin.Defn, worker: worker) == Nx.tensor(4)
    refute_received {:seen, _value}
  end

  test "random numbers are those of Nx", %{worker: worker, numerical: numerical} do
    assert_same(&numerical.uniform/1, [Nx.Random.key(42)], worker)
  end

  test "plain functions, and linear algebra", %{worker: worker} do
    a = Nx.tensor([[2.0, 0.5], [0.5, 1.0]], type: :f64)
    assert_same(fn a, b -> Nx.LinAlg.solve(a, b) end, [a, Nx.tensor([1.0, 2.0], type: :f64)], worker)
    assert_same(&Nx.LinAlg.cholesky/1, [a], worker)
  end

  test "what Nx has conventions for", %{worker: worker} do
    whole = Nx.tensor([-1.5, 300.7, 2.0], type: :f64)
    for type <- [:u8, :s16, :u64], do: assert_same(&Nx.as_type(&1, type), [whole], worker)
    complex = Nx.complex(Nx.tensor([1.0, -0.5]), Nx.tensor([0.25, 2.0]))

    assert Nx.Defn.jit_apply(&Nx.as_type(&1, :u8), [complex], compiler: Nutkin.Defn, worker: worker) ==
             Nx.tensor([1, 0], type: :u8)

    assert_same(&Nx.phase/1, [Nx.tensor([1, -2, 0])], worker)
    assert_same(&Nx.LinAlg.cholesky/1, [Nx.tensor([[4.0, 99.0], [1.0, 3.0]], type: :f64)], worker)
    assert_same(&Nx.argmax(&1, keep_axis: true), [Nx.tensor([[1, 5], [3, 2]])], worker)

    assert_same(
      fn x -> Nx.max(x, Nx.Constants.neg_infinity(:bf16)) end,
      [Nx.tensor([1.5, -2.0], type: :bf16)],
      worker
    )
  end

  # Their types depend on the version of Nx.
  test "sums, indices and factors of integers of each type", %{worker: worker} do
    for type <- [:u8, :u32, :u64, :s8, :s32, :s64] do
      x = Nx.tensor([[3, 1], [1, 2]], type: type)
      of = fn x -> {Nx.sum(x), Nx.product(x, axes: [0]), Nx.mean(x), Nx.top_k(x, k: 1), Nx.LinAlg.lu(x)} end
      assert_same(of, [x], worker)
    end
  end

  test "several vectorized axes", %{worker: worker} do
    x = Nx.iota({2, 3, 2}, type: :f64) |> Nx.vectorize(:a) |> Nx.vectorize(:b)
    found = Nx.Defn.jit_apply(&Nx.add(&1, 1), [x], compiler: Nutkin.Defn, worker: worker)
    assert found == Nx.add(x, 1)
  end

  test "vectorized tensors", %{worker: worker} do
    x = Nx.tensor([[1.0, 2.0], [3.0, 4.0]]) |> Nx.vectorize(:rows)
    found = Nx.Defn.jit_apply(&Nx.sum/1, [x], compiler: Nutkin.Defn, worker: worker)
    assert found == Nx.sum(x)
  end

  test "a function that was compiled before takes other values", %{worker: worker} do
    double = Nx.Defn.compile(&Nx.add(&1, &1), [Nx.template({2}, :s64)], compiler: Nutkin.Defn, worker: worker)
    {:ok, before} = Nutkin.ping(worker)
    assert double.(Nx.tensor([1, 2], type: :s64)) == Nx.tensor([2, 4], type: :s64)
    {:ok, first} = Nutkin.ping(worker)
    assert double.(Nx.tensor([5, -1], type: :s64)) == Nx.tensor([10, -2], type: :s64)
    {:ok, second} = Nutkin.ping(worker)
    assert {first.compilations - before.compilations, second.compilations - first.compilations} == {1, 0}
  end

  test "results of many megabytes", %{worker: worker} do
    n = 3_000_000
    result = Nx.Defn.jit_apply(fn -> Nx.iota({n}, type: :f64) end, [], compiler: Nutkin.Defn, worker: worker)
    assert Nx.to_number(result[n - 1]) == n - 1.0
    assert Nx.shape(result) == {n}
  end

  test "an error is raised", %{worker: worker} do
    outside = Nx.template({2}, :f32)

    assert_raise Error.InvalidModel, ~r/not on the host/, fn ->
      Nx.Defn.jit_apply(fn x -> Nx.add(x, outside) end, [1], compiler: Nutkin.Defn, worker: worker)
    end

    assert_raise Error.WorkerExit, ~r/no worker runs as :nobody/, fn ->
      Nx.Defn.jit_apply(&Nx.add(&1, 1), [1], compiler: Nutkin.Defn, worker: :nobody)
    end
  end
end
