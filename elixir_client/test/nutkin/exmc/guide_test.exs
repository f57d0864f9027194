defmodule Nutkin.Exmc.GuideTest do
  @moduledoc """
  The examples of docs/exmc.md do what it says: they match their own results. `Exmc.Builder` is that of test/support.
  """

  use Nutkin.Test.WorkerCase, async: false

  import ExUnit.CaptureIO
  import Nutkin.Test.ExmcTerms

  alias Nutkin.Test.Guide

  @path Path.expand("../../../../docs/exmc.md", __DIR__)
  @external_resource @path

  @tag :nx
  @tag :port
  @tag timeout: 300_000
  test "all of them, one after the other" do
    start_supervised!({Nutkin, port_options()})
    {_binding, output} = with_io(fn -> Guide.run!(@path) end)
    assert [String.trim(output)] == Guide.printed(@path)
  end

  test "a model prints as shown" do
    {model, _data} =
      Nutkin.Exmc.model(
        ir([
          rv("mu", :Normal, %{mu: nx(0.0, {:f, 32}), sigma: nx(5.0)}),
          rv("tau", :HalfNormal, %{sigma: nx(5.0, {:f, 32})}),
          rv("theta", :Normal, %{mu: "mu", sigma: "tau"}, shape: {8}),
          rv("y", :Normal, %{mu: "theta", sigma: nx(List.duplicate(1.0, 8))}),
          obs("y_obs", "y", nx(List.duplicate(1.0, 8)))
        ])
      )

    assert [inspect(model)] == Guide.printed(@path)
  end
end
