defmodule Nutkin.DoctorTest do
  # The task sets the level of Logger, and prints.
  use Nutkin.Test.WorkerCase, async: false

  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Doctor

  doctest Doctor

  @moduletag :capture_log

  setup :temporary_folder

  # What each check has found, in order, and whether all is well.
  defp look(opts) do
    test = self()
    fine? = Doctor.run(opts, &send(test, {:check, &1}))
    {fine?, checks()}
  end

  defp checks do
    receive do
      {:check, check} -> [{check.name, check.result} | checks()]
    after
      0 -> []
    end
  end

  @not_looked_at for name <- ["devices", "cache", "round trip", "model"], do: {name, :not_looked_at}

  describe "with the engine" do
    @describetag :port

    test "all is well", %{folder: folder} do
      cache = Path.join(folder, "new/cache")
      env = %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => cache}
      assert {true, checks} = look(port_options(env: env))

      assert [
               {"python", {:ok, python}},
               {"packages", {:ok, packages}},
               {"devices", {:ok, "1 cpu (cpu)"}},
               {"cache", {:ok, found}},
               {"round trip", {:ok, time}},
               {"model", {:ok, model}}
             ] = checks

      assert python =~ ~r/^3\.\d+\.\d+, \//
      assert packages =~ ~r/jax \d+.*, jaxlib \d+.*, numpy \d/
      assert found == "#{cache}, can be written, 0 programs, 0.0 MiB"
      assert time =~ ~r/^\d+\.\d+ ms$/
      assert model =~ ~r/in \d+\.\d+ s, 1000 draws in \d+ ms$/
    end

    test "a folder that cannot be written is the only thing that is wrong", %{folder: folder} do
      file = Path.join(folder, "file")
      File.write!(file, "")
      cache = Path.join(file, "cache")
      env = %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => cache}
      assert {false, checks} = look(port_options(env: env))
      assert {:wrong, text, to_do} = checks |> Map.new() |> Map.fetch!("cache")
      assert text == "#{cache} cannot be written: not a directory"
      assert to_do =~ "NUTKIN_CACHE_DIR"
      assert [{"cache", _}] = Enum.reject(checks, &match?({_name, {:ok, _}}, &1))
    end
  end

  describe "with a Python alone" do
    @describetag :python

    test "a package is missing" do
      assert {false, [{"python", {:ok, _}}, {"packages", {:wrong, text, to_do}} | others]} =
               look(fault_options("lacks_a_package"))

      assert text =~ "the worker ended before it was ready (exit status 1)"
      assert text =~ "No module named 'msgpack_of_nobody'"
      assert to_do =~ "install the package nutkin into that Python"
      assert others == @not_looked_at
    end
  end

  test "there is no Python" do
    assert {false, [{"python", {:wrong, text, _}}, {"packages", :not_looked_at} | @not_looked_at]} =
             look(python: "/nowhere/python3")

    assert text =~ "/nowhere/python3 does not exist or cannot be executed"
  end

  test "the Python is too old, or none", %{folder: folder} do
    python = Path.join(folder, "python3")

    for {script, expected} <- [
          {"echo /usr/bin/python3; echo 3.10.14",
           "/usr/bin/python3 is Python 3.10.14, and nutkin needs 3.11 or later"},
          {"echo /usr/bin/python3; echo 3.9.0rc1",
           "/usr/bin/python3 is Python 3.9.0rc1, and nutkin needs 3.11 or later"},
          {"echo no; exit 3", "it ended with status 3: no"},
          {"echo hello", "it is no Python: it says hello"}
        ] do
      File.write!(python, "#!/bin/sh\n[ $1 = -c ] || exit 1\n#{script}\n")
      File.chmod!(python, 0o755)
      assert {false, [{"python", {:wrong, ^expected, to_do}} | _]} = look(python: python)
      assert to_do =~ "--python"
    end
  end

  test "what is wrong is told with what to do" do
    check = %{name: "cache", result: {:wrong, "/x cannot be written\nat all", "choose another folder"}}

    assert Doctor.line(check) == """
           wrong  cache       /x cannot be written
                              at all
                              to do: choose another folder\
           """
  end

  test "the task prints a line for each check, and ends with status 1" do
    level = Logger.level()
    on_exit(fn -> Logger.configure(level: level) end)
    shell = Mix.shell()
    Mix.shell(Mix.Shell.Process)
    on_exit(fn -> Mix.shell(shell) end)
    assert catch_exit(Mix.Tasks.Nutkin.Doctor.run(["--python", "/nowhere/python3"])) == {:shutdown, 1}

    assert_received {:mix_shell, :info,
                     ["wrong  python      the worker did not start: /nowhere/python3 does" <> _]}

    assert_received {:mix_shell, :info, ["-      packages    not looked at"]}
    assert_raise OptionParser.ParseError, fn -> Mix.Tasks.Nutkin.Doctor.run(["--pyton", "x"]) end
    assert_raise Mix.Error, ~r/takes no arguments/, fn -> Mix.Tasks.Nutkin.Doctor.run(["x"]) end
  end
end
