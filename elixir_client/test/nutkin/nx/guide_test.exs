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
    assert length(Guide.examples(@path)) > 5
    Guide.run!(@path)
  end
end
