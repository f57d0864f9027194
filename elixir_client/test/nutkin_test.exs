defmodule NutkinTest do
  use ExUnit.Case, async: true

  doctest Nutkin

  test "several workers go under one supervisor, each under its name" do
    ids = for name <- [First, Second], do: Nutkin.child_spec(name: name).id
    assert ids == [First, Second]
    assert Nutkin.child_spec([]).id == Nutkin
  end

  test "a worker outlives the time that its program may take to end" do
    # Of a supervisor, that is its own affair.
    assert %{type: :supervisor} = spec = Nutkin.child_spec(shutdown_timeout: 10_000)
    refute Map.has_key?(spec, :shutdown)

    {:ok, {_, [_pool, workers]}} =
      Nutkin.Supervisor.init(Nutkin.Worker.Options.validate!(shutdown_timeout: 10_000))

    assert %{start: {Supervisor, :start_link, [[%{shutdown: shutdown}], _]}} = workers
    assert shutdown > 11_000
  end
end
