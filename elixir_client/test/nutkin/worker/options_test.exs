defmodule Nutkin.Worker.OptionsTest do
  use ExUnit.Case, async: true

  alias Nutkin.Worker.Options

  test "defaults are filled in, and names of variables are strings" do
    assert %{name: Nutkin, python: nil, args: [], env: %{}, heartbeat: 30_000} = Options.validate!([])
    assert Options.validate!(env: [{"A", "1"}, {:B, "2"}]).env == %{"A" => "1", "B" => "2"}
    assert Options.validate!(env: %{C: "3"}).env == %{"C" => "3"}
    assert Options.validate!(name: {:global, :sampler}).name == {:global, :sampler}
  end

  for {opts, message} <- [
        {[name: "sampler"], ~r/option :name of a worker; expected an atom, .* found "sampler"/},
        {[name: nil], ~r/option :name of a worker/},
        {[python: :python3],
         ~r/option :python of a worker; expected a path or name, as a string; found :python3/},
        {[python_path: "/tmp"],
         ~r/option :python_path of a worker; expected a list of strings; found "\/tmp"/},
        {[args: [1]], ~r/option :args of a worker; expected a list of strings/},
        {[env: [FOO: 1]],
         ~r/option :env of a worker; expected names .* with strings as values; found \[FOO: 1\]/},
        {[env: ["FOO"]], ~r/option :env of a worker; expected a map or list of pairs/},
        {[env: %{"A=B" => "1"}], ~r/option :env of a worker/},
        {[env: %{"A" => <<0>>}], ~r/option :env of a worker/},
        {[heartbeat: :never], ~r/option :heartbeat of a worker; expected a positive number of milliseconds/},
        {[start_timeout: "1"], ~r/option :start_timeout of a worker/},
        {[shutdown_timeout: 0], ~r/option :shutdown_timeout of a worker/},
        {[pyton: "x"], ~r/unknown option :pyton of a worker; expected one of :name, :workers, :python, /},
        {%{}, ~r/expected a keyword list; found %{}/},
        {:foo, ~r/expected a keyword list; found :foo/}
      ] do
    @tag opts: opts, message: message
    test "#{inspect(opts)} is refused, wherever it is given", %{opts: opts, message: message} do
      assert_raise ArgumentError, message, fn -> Nutkin.start_link(opts) end
      assert_raise ArgumentError, message, fn -> Nutkin.child_spec(opts) end
    end
  end

  test "the docs show every option" do
    for name <- Map.keys(Options.validate!([])), do: assert(Options.docs() =~ "* `:#{name}` - ")
  end
end
