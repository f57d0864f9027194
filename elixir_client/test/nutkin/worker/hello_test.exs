defmodule Nutkin.Worker.HelloTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error
  alias Nutkin.Protocol
  alias Nutkin.Worker.Hello

  @limits %{"frame" => 1000, "chunk" => 100}

  test "a program of this protocol, with its limits, is understood" do
    assert Hello.check(%{protocol: Protocol.version(), limits: @limits}) == :ok
  end

  test "another protocol, and limits that are none, are told" do
    assert {:error, %Error.Protocol{found: "version 99"}} = Hello.check(%{protocol: 99, limits: @limits})

    for limits <- [%{}, %{@limits | "chunk" => 0}, %{@limits | "frame" => "1000"}] do
      assert {:error, %Error.Protocol{path: "$.limits"}} =
               Hello.check(%{protocol: Protocol.version(), limits: limits})
    end
  end
end
