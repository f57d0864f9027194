defmodule Nutkin.Worker.ProgramTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.WorkerExit
  alias Nutkin.Worker.{Options, Program}

  defp program(opts), do: opts |> Options.validate!() |> Program.new()

  test "the arguments come after the module, and python_path goes in front of PYTHONPATH" do
    program =
      program(
        python: "py",
        args: ["--stdio"],
        env: %{"PYTHONPATH" => "/c", "A" => "b"},
        python_path: ["/a", "/b"]
      )

    assert program.python == "py"
    assert program.args == ["-P", "-m", "nutkin_port", "--stdio"]
    assert Enum.sort(program.env) == [{"A", "b"}, {"PYTHONPATH", "/a:/b:/c"}]
  end

  test "without python_path the environment is as given" do
    assert program(env: [{"A", "b"}]).env == [{"A", "b"}]
  end

  test "a path from the home folder is expanded" do
    assert program(python: "~/bin/python").python == Path.expand("~/bin/python")
    assert program(python: "python3.12").python == "python3.12"
    assert program(python: ".venv/bin/python").python == Path.expand(".venv/bin/python")
  end

  test "a defect of ours is not taken for a refusal of the operating system" do
    assert {:error, %WorkerExit{}} = Program.open(program(python: "/nowhere/python3"))
    assert_raise ArgumentError, fn -> Program.open(%Program{python: "sh", args: [1], env: []}) end
  end

  test "the hint fits what Python says" do
    program = program(python: "py")
    hint = fn lines -> Program.never_ready(program, 1, lines).hint end
    assert hint.(["ModuleNotFoundError: No module named 'msgpack'"]) =~ "`py -m pip install PATH`"

    assert hint.(["/usr/bin/py: No module named nutkin_port"]) =~
             "install the package nutkin into that Python"

    assert hint.(["Unknown option: -P", "usage: py [option]"]) =~ "needs Python 3.11 or later"
    assert hint.(["ImportError: no libxla"]) == "run `py -P -m nutkin_port` to see why"
  end

  test "a program that was killed is gone, and its port closed" do
    # Any program that waits for its input will do.
    script = Path.join(Nutkin.Test.TemporaryFolder.temporary_folder().folder, "waits")
    File.write!(script, "#!/bin/sh\nexec sleep 60\n")
    File.chmod!(script, 0o755)
    Process.flag(:trap_exit, true)
    {:ok, port, os_pid} = Program.open(program(python: script))
    assert File.exists?("/proc/#{os_pid}")
    assert :ok = Program.write(port, "a frame")
    assert :ok = Program.kill(port, os_pid)
    assert_receive {:EXIT, ^port, :normal}
    assert Port.info(port) == nil
    assert :closed = Program.write(port, "a frame")
    # A second time there is nothing to do.
    assert :ok = Program.kill(port, os_pid)
  end
end
