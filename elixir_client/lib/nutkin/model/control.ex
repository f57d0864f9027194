defmodule Nutkin.Model.Control do
  @moduledoc false
  # Loops and choices of the language: their functions run once, to write a body down.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Bodies, Builder, Container, Node, Option}

  @spec scan(term(), term(), (term(), term() -> {term(), term()}), keyword()) :: {term(), term()}
  def scan(xs, acc, fun, opts) do
    opts = Option.to_wire!(opts, [reverse: :boolean], "scan")
    function!(fun, 2, "the function of scan", "fn x, acc -> {y, acc} end")
    {rows, row_form} = xs |> rows() |> Container.flatten()
    {init, form} = Container.flatten(acc)
    count = length(init)

    {body, captures, collected} =
      Builder.body(count + length(rows), "the body of scan", fn arguments ->
        {carried, row} = Enum.split(arguments, count)
        {ys, next} = pair!(fun.(Container.restore(row, row_form), Container.restore(carried, form)))
        {collected, collected_form} = if ys == nil, do: {[], nil}, else: Container.flatten(ys)
        {same!(next, form, "scan") ++ collected, {length(collected), collected_form}}
      end)

    {number, collected_form} = collected

    {last, gathered} =
      %{
        "kind" => "scan",
        "init" => references(init, "the start of scan"),
        "xs" => references(rows, "what scan runs over"),
        "captures" => captures,
        "body" => body
      }
      |> Map.merge(opts)
      |> Builder.several(count + number)
      |> Enum.split(count)

    {collected_form && Container.restore(gathered, collected_form), Container.restore(last, form)}
  end

  @spec while(term(), (term() -> term()), (term() -> term()), keyword()) :: term()
  def while(acc, condition, fun, opts) do
    opts = Option.to_wire!(opts, [max_steps: :count], "while")

    unless Map.has_key?(opts, "max_steps") do
      raise InvalidModel,
        message: "while has no :max_steps",
        expected: "while(acc, condition, fun, max_steps: 1000)",
        hint: "the gradient needs room for what enters each step; a loop that goes on longer gives NaN"
    end

    function!(condition, 1, "the condition of while", "fn acc -> acc > 0 end")
    function!(fun, 1, "the function of while", "fn acc -> acc / 2 end")
    {init, form} = Container.flatten(acc)
    count = length(init)

    {condition, seen, nil} =
      Builder.body(count, "the condition of while", &{[condition.(Container.restore(&1, form))], nil})

    # The captures of both bodies are arguments of both.
    {body, captures, nil} =
      Builder.body(count, "the body of while", fn carried ->
        {carried |> Container.restore(form) |> fun.() |> same!(form, "while"), nil}
      end)

    all = Enum.uniq(seen ++ captures)

    %{
      "kind" => "while",
      "init" => references(init, "the start of while"),
      "captures" => all,
      "condition" => Bodies.with_captures(condition, count, seen, all),
      "body" => Bodies.with_captures(body, count, captures, all)
    }
    |> Map.merge(opts)
    |> Builder.several(count)
    |> Container.restore(form)
  end

  @spec ode(term(), term(), term(), (term(), term() -> term()), keyword()) :: term()
  def ode(state, start, times, fun, opts) do
    methods = [:tsit5, :dopri5, :dopri8, :kvaerno3, :kvaerno5]

    opts =
      Option.to_wire!(
        opts,
        [method: {:one_of, methods}, rtol: :tolerance, atol: :tolerance, max_steps: :count],
        "ode"
      )

    function!(fun, 2, "the function of ode", "fn t, state -> -state end")
    {init, form} = Container.flatten(state)
    count = length(init)

    {body, captures, nil} =
      Builder.body(count + 1, "the derivatives of ode", fn [t | state] ->
        {t |> fun.(Container.restore(state, form)) |> same!(form, "ode"), nil}
      end)

    %{
      "kind" => "ode",
      "init" => references(init, "the state of ode"),
      "start" => Builder.reference(start, "the start of ode"),
      "times" => Builder.reference(times, "the times of ode"),
      "captures" => captures,
      "body" => body
    }
    |> Map.merge(opts)
    |> Builder.several(count)
    |> Container.restore(form)
  end

  @doc "What an `if` gives that is decided by a node."
  @spec choose(Node.t(), (() -> term()), (() -> term())) :: term()
  def choose(predicate, on_true, on_false) do
    {left, seen, form} = side(on_true, "true")
    {right, captures, other} = side(on_false, "false")

    if form != other do
      raise InvalidModel,
        message: "both sides of an `if` that a node decides must give values of one form",
        expected: Container.describe(form),
        found: Container.describe(other)
    end

    all = Enum.uniq(seen ++ captures)

    %{
      "kind" => "cond",
      "predicate" => predicate.index,
      "captures" => all,
      "on_true" => Bodies.with_captures(left, 0, seen, all),
      "on_false" => Bodies.with_captures(right, 0, captures, all)
    }
    |> Builder.several(length(left["results"]))
    |> Container.restore(form)
  end

  defp side(fun, side) do
    Builder.body(0, "the value of `if` on #{side}", fn [] ->
      case fun.() do
        nil ->
          raise InvalidModel,
            message: "an `if` that a node decides has no value on #{side}",
            expected: "a value on both sides",
            found: "nil",
            hint: "give it an `else`, as in if(x > 0, do: x, else: 0)"

        value ->
          Container.flatten(value)
      end
    end)
  end

  defp rows(first..last//step), do: Enum.to_list(first..last//step)
  defp rows(xs), do: xs

  defp function!(fun, arity, _what, _example) when is_function(fun, arity), do: :ok

  defp function!(other, arity, what, example) do
    arguments = &if &1 == 1, do: "1 argument", else: "#{&1} arguments"

    found =
      if is_function(other),
        do: "a function of #{arguments.(Function.info(other)[:arity])}",
        else: inspect(other, limit: 5)

    raise InvalidModel,
      message: "#{what} must take #{arguments.(arity)}",
      expected: "a function such as #{example}",
      found: found
  end

  defp pair!({ys, next}), do: {ys, next}

  defp pair!(other) do
    raise InvalidModel,
      message: "the function of scan gives no pair",
      expected: "{value, acc}, or {nil, acc} where nothing is collected",
      found: inspect(other, limit: 5)
  end

  defp same!(next, form, name) do
    case Container.flatten(next) do
      {values, ^form} ->
        values

      {_values, other} ->
        raise InvalidModel,
          message: "the function of #{name} must give values in the form of the start",
          expected: Container.describe(form),
          found: Container.describe(other)
    end
  end

  defp references(values, what), do: Enum.map(values, &Builder.reference(&1, what))
end
