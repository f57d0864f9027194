defmodule Nutkin.Nx.GuideTest do
  @moduledoc """
  The examples of docs/nx.md do what it says: they match their own results.
  """

  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Test.Guide

  @path Path.expand("../../../../docs/nx.md", __DIR__)
  @external_resource @path

  @tag :nx
  @tag :port
  @tag timeout: 300_000
  test "all of them, one after the other" do
    start_supervised!({Nutkin, port_options()})
    examples = Guide.examples(@path)
    assert length(examples) > 5

    Enum.reduce(examples, {[], Code.env_for_eval(file: @path)}, fn {line, code}, {binding, env} ->
      quoted = Code.string_to_quoted!(code, file: @path, line: line)
      {_value, binding, env} = Code.eval_quoted_with_env(quoted, binding, env)
      {binding, env}
    end)
  end
end
