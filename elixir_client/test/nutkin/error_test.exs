defmodule Nutkin.ErrorTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error

  doctest Nutkin.Error

  @golden Path.expand("../../../bridge/golden", __DIR__)

  test "every code of the protocol has its exception" do
    for {code, module} <- [
          {"invalid_model", Error.InvalidModel},
          {"invalid_data", Error.InvalidData},
          {"invalid_option", Error.InvalidOption},
          {"compile_failed", Error.CompileFailed},
          {"init_failed", Error.InitFailed},
          {"limit", Error.LimitExceeded},
          {"protocol", Error.Protocol},
          {"cancelled", Error.Cancelled},
          {"internal", Error.Internal}
        ] do
      assert Error.from_wire(%{"code" => code, "message" => "m"}) == module.exception(message: "m")
    end
  end

  test "a recorded error has all its fields" do
    {:ok, ["error", _id, body]} = Nutkin.Msgpack.decode(File.read!(Path.join(@golden, "port_error.frame")))
    error = Error.from_wire(body)

    for field <- [:message, :node, :index, :path, :expected, :found, :hint], value = body["#{field}"] do
      assert Map.fetch!(error, field) == value
    end

    assert error.message == body["message"]
  end

  test "an unknown code is an internal error that names it" do
    error = Error.from_wire(%{"code" => "brand_new", "message" => "m", "node" => "mu"})
    assert %Error.Internal{node: "mu"} = error
    assert Exception.message(error) == ~s[m (unknown error code "brand_new") (node mu)]
  end

  test "a body that is not of the documented form is a protocol error" do
    for body <- [
          %{},
          nil,
          [],
          %{"code" => "limit"},
          %{"code" => 3, "message" => "m"},
          %{"code" => "limit", "message" => nil},
          %{"code" => "limit", "message" => "m", "index" => "3"},
          %{"code" => "limit", "message" => "m", "hint" => 3}
        ] do
      assert %Error.Protocol{message: "an error message that cannot be read"} = Error.from_wire(body)
    end
  end

  test "the message puts the fields together, and says nothing twice" do
    fields = [node: "theta", index: 3, path: "$.shape", expected: "{8}", found: "{7}", hint: "check the data"]

    assert Exception.message(Error.InvalidModel.exception([message: "shapes differ"] ++ fields)) ==
             "shapes differ (node theta, at $.shape); expected {8}; found {7}; check the data"

    assert Exception.message(Error.InvalidModel.exception(message: "theta has no shape", node: "theta")) ==
             "theta has no shape"

    # Not as a part of another word or place; and "a" is an English word.
    for {message, fields, told} <- [
          {"impossible values", [node: "s"], "impossible values (node s)"},
          {"y: 1 value is impossible", [node: "y"], "y: 1 value is impossible"},
          {"no value for `y`", [node: "y"], "no value for `y`"},
          {"the slot y", [node: "y"], "the slot y"},
          {"a value is missing", [node: "a"], "a value is missing (node a)"},
          {"a value is missing", [index: 3], "a value is missing (node 3 of the model)"},
          {"y.1 and xy", [node: "y"], "y.1 and xy (node y)"},
          {"the c++", [node: "c++"], "the c++"},
          {"wrong, as in [1][0]", [path: "[1]"], "wrong, as in [1][0] (at [1])"},
          {"wrong in [1]", [path: "[1]"], "wrong in [1]"}
        ] do
      assert Exception.message(Error.InvalidData.exception([message: message] ++ fields)) == told
    end

    assert_raise Error.Cancelled, "the request was cancelled", fn ->
      raise Error.Cancelled, "the request was cancelled"
    end

    assert_raise KeyError, fn -> Error.InvalidData.exception(nodes: "theta") end
  end

  test "a worker's exit tells its signal and its last lines" do
    assert Exception.message(Error.WorkerExit.exception(status: 137)) ==
             "the worker ended (exit status 137: SIGKILL); the system may have run out of memory; " <>
               "the worker starts again by itself"

    assert Exception.message(Error.WorkerExit.exception(status: 2)) == "the worker ended (exit status 2)"

    error =
      Error.WorkerExit.exception(message: "the worker did not start", hint: "set python:", log: ["a", "b"])

    assert Exception.message(error) == "the worker did not start; set python:; its last lines:\n    a\n    b"
  end

  test "a timeout tells its time" do
    assert Exception.message(Error.Timeout.exception(timeout: 500)) == "no result within 500 ms"
    assert Exception.message(Error.Timeout.exception(message: "no answer", timeout: 500)) == "no answer"
  end
end
