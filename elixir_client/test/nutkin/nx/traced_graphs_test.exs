defmodule Nutkin.Nx.TracedGraphsTest do
  # Graphs that Nx traced, evaluated by the worker: values, types and shapes as Nx computed them.
  use Nutkin.Test.WorkerCase, async: true

  alias Nutkin.{Error, Model, Tensor}
  alias Nutkin.Model.Language
  alias Nutkin.Nx.{Function, Translation}
  alias Nutkin.Test.TracedGraphs

  @moduletag :port
  @moduletag timeout: 120_000

  setup_all do
    %{worker: start_worker!(port_options())}
  end

  for name <- TracedGraphs.names() -- ["runtime_call"] do
    test "#{name}", %{worker: worker} do
      %{"points" => points, "tol" => tolerance} = TracedGraphs.recorded!(unquote(name))
      [first | _] = inputs = for point <- points, do: TracedGraphs.parameters(point["input"])

      parameters =
        for %{type: type, shape: shape} <- first, do: {Tensor.Type.name(type), Tuple.to_list(shape)}

      function = Function.new(TracedGraphs.graph!(unquote(name)), parameters)

      for {point, input} <- Enum.zip(points, inputs) do
        {:ok, found} = Function.call(function, input, worker)
        assert_close(found, TracedGraphs.results(point["output"]), tolerance)
      end
    end
  end

  for name <- TracedGraphs.names(), TracedGraphs.recorded!(name)["grad"] do
    test "the gradient of #{name}", %{worker: worker} do
      graph = TracedGraphs.graph!(unquote(name))
      %{"points" => points} = recorded = TracedGraphs.recorded!(unquote(name))
      inputs = for point <- points, do: TracedGraphs.parameters(point["input"])
      model = model(graph, hd(inputs))

      for {point, input} <- Enum.zip(points, inputs) do
        position = Enum.flat_map(input, &Tensor.to_flat_list/1)
        {:ok, %{gradient: gradient}} = Nutkin.log_density(model, position, worker: worker)
        expected = for tensor <- point["grad_jax"], value <- tensor["values"], do: value
        tolerance = max(recorded["gtol"] || 0, max(recorded["tol"], 1.0e-9))

        for {a, b} <- Enum.zip(Tensor.to_flat_list(gradient), expected) do
          assert close?(a, b * 1.0, tolerance), "#{inspect(gradient)} is not #{inspect(expected)}"
        end
      end
    end
  end

  # The graph as a factor of a model whose parameters are its own.
  defp model(graph, tensors) do
    Model.build(fn ->
      parameters =
        for {%{shape: shape}, place} <- Enum.with_index(tensors) do
          {Language.__free__("p#{place}", Language.flat(shape: shape)), Tuple.to_list(shape)}
        end

      [{value, _shape}] = Translation.write(graph, parameters, types: :model, max_steps: 1000)
      Language.factor(:graph, value)
    end)
  end

  defp assert_close(found, expected, tolerance) do
    assert Enum.map(found, &{&1.type, &1.shape}) == Enum.map(expected, &{&1.type, &1.shape})

    for {left, right} <- Enum.zip(found, expected),
        {a, b} <- Enum.zip(Tensor.to_flat_list(left), Tensor.to_flat_list(right)) do
      assert close?(a, b, tolerance(tolerance, left.type)), "#{inspect(left)} is not #{inspect(right)}"
    end
  end

  # What Nx itself computes in a narrow type, in another order.
  defp tolerance(tolerance, {kind, 16}) when kind in [:f, :bf],
    do: max(tolerance, if(kind == :f, do: 2.0e-3, else: 2.0e-2))

  defp tolerance(tolerance, {kind, 8}) when kind not in [:s, :u], do: max(tolerance, 2.0e-2)
  defp tolerance(tolerance, type) when type in [{:f, 32}, {:c, 64}], do: max(tolerance, 3.0e-6)
  defp tolerance(tolerance, _type), do: tolerance

  defp close?({a, b}, {c, d}, tolerance), do: close?(a, c, tolerance) and close?(b, d, tolerance)

  defp close?(a, b, tolerance) when is_float(a) and is_float(b),
    do: abs(a - b) <= tolerance * max(1.0, abs(b))

  defp close?(a, b, _tolerance), do: a == b

  test "a function that calls back into Elixir is refused by name" do
    assert_raise Error.InvalidModel, ~r/runtime_call/, fn ->
      Function.new(TracedGraphs.graph!("runtime_call"), [{"f64", [3]}])
    end
  end
end
