defmodule NutkinTest do
  use ExUnit.Case, async: true

  doctest Nutkin

  test "several workers go under one supervisor, each under its name" do
    ids = for name <- [First, Second], do: Nutkin.child_spec(name: name).id
    assert ids == [First, Second]
    assert Nutkin.child_spec([]).id == Nutkin
  end

  test "a worker outlives the time that its program may take to end" do
    assert Nutkin.child_spec(shutdown_timeout: 10_000).shutdown > 10_000
  end
end
