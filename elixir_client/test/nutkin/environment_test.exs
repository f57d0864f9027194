defmodule Nutkin.EnvironmentTest do
  # The task prints.
  use ExUnit.Case, async: false

  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Environment

  @root Path.expand("../../..", __DIR__)

  setup :temporary_folder

  # Sources, and a Python that writes down what it is asked to do, makes environments that hold a copy of itself, and fails where its
  # arguments have the text in the file `fails`.
  setup %{folder: folder} do
    source = Path.join(folder, "source")
    for package <- ["python/nutkin", "bridge/nutkin_port"], do: File.mkdir_p!(Path.join(source, package))

    for file <- ["requirements-runtime.lock", "pyproject.toml", "python/nutkin/a.py"],
        do: write(source, file, "1")

    python = Path.join(folder, "python3")

    File.write!(python, """
    #!/bin/sh
    [ "$1" = -c ] && printf '/usr/bin/python3\\n3.12.1\\n' && exit
    echo "$0 $*" >>#{folder}/calls
    if [ -f #{folder}/fails ] && echo "$*" | grep -q "$(cat #{folder}/fails)"; then echo "no such thing"; exit 4; fi
    if [ "$3" = venv ]; then rm -rf "$5"; mkdir -p "$5/bin" "$5/lib"; ln -s lib "$5/lib64"; cp "$0" "$5/bin/python"; fi
    [ "$2" = -c ] && echo nutkin 0.1.0
    exit 0
    """)

    File.chmod!(python, 0o755)
    made = Path.join(folder, "my_app/priv/nutkin")
    {:ok, environment} = Environment.new(made, python, ["/nowhere", source])
    %{environment: environment, source: source, python: python, made: made}
  end

  defp write(folder, file, text), do: File.write!(Path.join(folder, file), text)

  # What was asked of Python since the last call, without the folders.
  defp calls(%{folder: folder}) do
    path = Path.join(folder, "calls")
    calls = if File.exists?(path), do: File.read!(path), else: ""
    File.rm(path)
    calls |> String.replace(folder <> "/", "") |> String.split("\n", trim: true)
  end

  defp install(environment), do: Environment.install(environment, &send(self(), {:told, &1}))

  defp try_it?(call), do: call =~ "my_app/priv/nutkin/bin/python -I -c import nutkin_port.__main__, nutkin;"

  test "is made from the lock file, its digests required, then tried", %{made: made} = context do
    assert install(context.environment) == {:ok, "nutkin 0.1.0"}
    pip = "my_app/priv/nutkin/bin/python -I -m pip install --disable-pip-version-check --no-input"
    assert [venv, packages, nutkin, trial] = calls(context)
    assert venv == "python3 -I -m venv --clear my_app/priv/nutkin"

    assert packages ==
             "#{pip} --require-hashes --only-binary :all: --no-binary erlang-py -r source/requirements-runtime.lock"

    assert nutkin == "#{pip} --no-deps --no-build-isolation source"
    assert try_it?(trial)
    refute File.exists?(Path.join(made, "lib64"))
    assert Environment.python(context.environment) == Path.join(made, "bin/python")
    told = for _ <- 1..4, do: receive(do: ({:told, text} -> text))

    assert ["making " <> _, "installing the packages of " <> _, "installing nutkin from " <> _, "trying it"] =
             told
  end

  test "is not made again where nothing has changed, but tried", context do
    {:ok, _} = install(context.environment)
    calls(context)
    assert install(context.environment) == {:ok, "nutkin 0.1.0"}
    assert [trial] = calls(context)
    assert try_it?(trial)
    as_it_should_be = "#{context.made} is as it should be"
    assert_received {:told, ^as_it_should_be}
  end

  test "is made again for another lock file, other sources, another Python, and where it was not finished",
       context do
    {:ok, _} = install(context.environment)
    calls(context)
    python = File.read!(context.python)

    for change <- [
          fn -> write(context.source, "requirements-runtime.lock", "2") end,
          fn -> write(context.source, "python/nutkin/a.py", "2") end,
          fn -> write(context.source, "bridge/nutkin_port/b.py", "") end,
          fn -> File.write!(context.python, String.replace(python, "3.12.1", "3.12.2")) end
        ] do
      change.()
      assert {:ok, _} = install(context.environment)
      assert length(calls(context)) == 4
    end

    for step <- ["require-hashes", "no-deps", "import nutkin_port"] do
      write(context.source, "pyproject.toml", step)
      write(context.folder, "fails", step)
      assert {:error, error} = install(context.environment)
      assert error =~ ~r/ended with status 4:\n    no such thing$/
      File.rm!(Path.join(context.folder, "fails"))
      calls(context)
      assert {:ok, _} = install(context.environment)
      assert length(calls(context)) == 4
    end
  end

  test "leaves a folder alone that has something else in it", context do
    File.mkdir_p!(context.made)
    write(context.made, "pyvenv.cfg", "of somebody else")
    assert {:error, error} = install(context.environment)
    assert error =~ "#{context.made} has something else in it"
    assert calls(context) == []
    assert File.ls!(context.made) == ["pyvenv.cfg"]
  end

  test "needs a Python that is new enough, and sources", context do
    File.write!(context.python, "#!/bin/sh\necho /usr/bin/python3; echo 3.10.2\n")
    assert {:error, error} = install(context.environment)
    assert error =~ "/usr/bin/python3 is Python 3.10.2, and nutkin needs 3.11 or later; give another Python"
    assert {:error, error} = Environment.new("x", "python3", ["/nowhere", "/else"])
    assert error =~ "there is no requirements-runtime.lock in /nowhere or /else"
  end

  test "the sources of this repository are such" do
    assert {:ok, %Environment{source: @root}} = Environment.new("x", "python3", ["/nowhere", @root])

    assert for(package <- ["python/nutkin", "bridge/nutkin_port"], do: File.ls!(Path.join(@root, package))) !=
             []
  end

  test "the task says how to use it", %{python: python} = context do
    shell = Mix.shell()
    Mix.shell(Mix.Shell.Process)
    on_exit(fn -> Mix.shell(shell) end)
    Mix.Tasks.Nutkin.Install.run(["--path", context.made, "--python", python])
    assert_received {:mix_shell, :info, ["making " <> _]}
    assert_received {:mix_shell, :info, ["nutkin 0.1.0\n\nIn your supervision tree:" <> text]}
    assert text =~ ~s({Nutkin, python: "#{context.made}/bin/python"})
    assert Enum.any?(calls(context), &(&1 =~ "-r #{@root}/requirements-runtime.lock"))

    write(context.folder, "fails", "import")

    assert_raise Mix.Error, ~r/no such thing/, fn ->
      Mix.Tasks.Nutkin.Install.run(["--path", context.made, "--python", python])
    end

    assert_raise Mix.Error, ~r/takes no arguments/, fn -> Mix.Tasks.Nutkin.Install.run(["here"]) end
  end
end
