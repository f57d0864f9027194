defmodule Nutkin.Worker.ProgramTest do
  use ExUnit.Case, async: true

  alias Nutkin.Worker.Program

  test "the arguments come after the module, and python_path goes in front of PYTHONPATH" do
    program =
      Program.new(
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
    assert Program.new(env: [{"A", "b"}]).env == [{"A", "b"}]
  end

  test "a program that was killed is gone, and its port closed" do
    # Any program that waits for its input will do.
    script = Path.join(Nutkin.Test.TemporaryFolder.temporary_folder().folder, "waits")
    File.write!(script, "#!/bin/sh\nexec sleep 60\n")
    File.chmod!(script, 0o755)
    Process.flag(:trap_exit, true)
    {:ok, port, os_pid} = Program.open(Program.new(python: script))
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
