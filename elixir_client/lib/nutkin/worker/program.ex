defmodule Nutkin.Worker.Program do
  @moduledoc false
  # The port program as an operating system process: how it is found, started, examined and killed.

  alias Nutkin.Error.WorkerExit

  @enforce_keys [:python, :args, :env]
  defstruct @enforce_keys

  @type t :: %__MODULE__{python: String.t() | nil, args: [String.t()], env: [{String.t(), String.t()}]}

  # -P: a file of the working directory must not take the place of a module.
  @run ["-P", "-m", "nutkin_port"]
  # The module that is run, since its package alone needs nothing that might be missing.
  @try_import ["-P", "-c", "import nutkin_port.__main__"]

  @say_version "import platform, sys; print(sys.executable, platform.python_version(), sep='\\n')"
  @oldest_python "3.11.0"
  @version_ms 30_000

  # The worker answers nobody in the meantime.
  @diagnosis_ms 3_000

  # What `Port.open/2` says of the operating system, not of its arguments.
  @refusals [:system_limit, :enomem, :eagain, :enametoolong, :emfile, :enfile, :eacces, :enoent]

  @doc "The program that the checked options of a worker describe."
  @spec new(Nutkin.Worker.Options.valid()) :: t()
  def new(options) do
    %__MODULE__{
      python: python(options.python || System.get_env("NUTKIN_PYTHON")),
      args: @run ++ limits(options.limits) ++ options.args,
      env: env(options.env, options.python_path)
    }
  end

  defp limits(limits), do: Enum.flat_map(limits, fn {name, value} -> ["--limit", "#{name}=#{value}"] end)

  # As a shell does, which is not there to do it: ~ is the home, and only a name without a slash is looked for on the PATH.
  defp python(nil), do: nil
  defp python(path), do: if(path =~ "/" or path =~ ~r/^~/, do: Path.expand(path), else: path)

  defp env(env, []), do: Enum.to_list(env)

  defp env(env, python_path) do
    inherited = env["PYTHONPATH"] || System.get_env("PYTHONPATH")
    path = Enum.map(python_path, &Path.expand/1) ++ List.wrap(inherited)
    env |> Map.put("PYTHONPATH", Enum.join(path, ":")) |> Enum.to_list()
  end

  @doc "Starts the program, and gives its port, which the calling process owns, and its process id."
  @spec open(t()) :: {:ok, port(), pos_integer() | nil} | {:error, WorkerExit.t()}
  def open(program) do
    with {:ok, executable} <- executable(program) do
      env = for {name, value} <- program.env, do: {String.to_charlist(name), String.to_charlist(value)}

      opts = [:binary, :exit_status, :nouse_stdio, :hide, packet: 4, args: program.args, env: env]
      port = Port.open({:spawn_executable, executable}, opts)
      {:ok, port, os_pid(port)}
    end
  catch
    :error, reason when reason in @refusals ->
      {:error, not_started(program, "cannot be started: #{:file.format_error(reason)}")}
  end

  defp executable(%{python: python} = program) do
    case System.find_executable(python || "python3") do
      nil when is_nil(python) -> {:error, not_started(program, "is not on the PATH")}
      nil -> {:error, not_started(program, "does not exist or cannot be executed")}
      executable -> {:ok, executable}
    end
  end

  defp not_started(program, what) do
    WorkerExit.exception(
      message: "the worker did not start: #{program.python || "python3"} #{what}",
      hint:
        "give the path of a Python that has the package nutkin, as `python:` of Nutkin.start_link/1 or in NUTKIN_PYTHON"
    )
  end

  @doc """
  The error for a program that ended before it was any use, with what it said, else with what Python says when it
  imports the program: an import that fails is the common reason, and its text went to the terminal.
  """
  @spec never_ready(t(), non_neg_integer() | nil, [String.t()]) :: WorkerExit.t()
  def never_ready(program, status, log) do
    log = if log == [], do: import_error(program), else: log

    WorkerExit.exception(
      message: "the worker ended before it was ready",
      status: status,
      log: log,
      hint: what_to_do(program, Enum.join(log, "\n"))
    )
  end

  defp what_to_do(program, text) do
    python = program.python || "python3"

    cond do
      # Of -P, which came with that version.
      text =~ ~r/unknown option:? -P/i ->
        "nutkin needs Python 3.11 or later: give another one as `python:` of Nutkin.start_link/1 or in NUTKIN_PYTHON"

      text =~ "ModuleNotFoundError" or text =~ "No module named" ->
        "install the package nutkin into that Python: `#{python} -m pip install PATH`, with the path of the package; " <>
          "or make one that has it: `mix nutkin.install`"

      true ->
        "run `#{Enum.join([python | program.args], " ")}` to see why"
    end
  end

  defp import_error(program) do
    with {:ok, {output, status}} when status != 0 <- execute(program, @try_import, @diagnosis_ms) do
      output |> String.split("\n", trim: true) |> Enum.take(-3)
    else
      _nothing_found -> []
    end
  end

  @doc "What its Python prints with other arguments, and the exit status; `:timeout` after so many milliseconds."
  @spec execute(t(), [String.t()], timeout()) ::
          {:ok, {String.t(), non_neg_integer()}} | :timeout | {:error, WorkerExit.t()}
  def execute(program, args, timeout) do
    with {:ok, executable} <- executable(program) do
      task = Task.async(fn -> System.cmd(executable, args, stderr_to_stdout: true, env: program.env) end)
      Task.yield(task, timeout) || Task.shutdown(task, :brutal_kill) || :timeout
    end
  end

  @doc "Its Python as that names itself, and its version; an error where it is none, or too old for nutkin."
  @spec version(t()) :: {:ok, Path.t(), String.t()} | {:error, WorkerExit.t()}
  def version(program) do
    case execute(program, ["-c", @say_version], @version_ms) do
      {:ok, {output, 0}} -> output |> String.split("\n", trim: true) |> Enum.take(-2) |> new_enough()
      {:ok, {output, status}} -> no_python("it ended with status #{status}: #{String.trim(output)}")
      :timeout -> no_python("it did not end within #{div(@version_ms, 1000)} s")
      {:error, error} -> {:error, error}
    end
  end

  defp new_enough(lines) do
    # Without what makes it no version, as in 3.14.0rc1.
    with [executable, version] <- lines,
         [number] <- Regex.run(~r/^\d+\.\d+\.\d+/, version) do
      if Version.compare(number, @oldest_python) == :lt,
        do: no_python("#{executable} is Python #{version}, and nutkin needs 3.11 or later"),
        else: {:ok, executable, version}
    else
      _ -> no_python("it is no Python: it says #{Enum.join(lines, " ")}")
    end
  end

  defp no_python(text) do
    {:error, WorkerExit.exception(message: text, hint: "give another Python, with --python or as `python:`")}
  end

  defp os_pid(port) do
    case Port.info(port, :os_pid) do
      {:os_pid, pid} -> pid
      nil -> nil
    end
  end

  @doc "Closes the port and kills the program, which may have ended already."
  @spec kill(port(), pos_integer() | nil) :: :ok
  def kill(port, os_pid) do
    close(port)
    signal(os_pid, :KILL)
  end

  @doc "Sends a signal to a program, if it is there."
  @spec signal(pos_integer() | nil, :TERM | :KILL) :: :ok
  def signal(nil, _signal), do: :ok

  def signal(os_pid, signal) do
    System.cmd("sh", ["-c", "kill -#{signal} #{os_pid}"], stderr_to_stdout: true)
    :ok
  end

  defp close(port) do
    Port.close(port)
  rescue
    # It closed by itself in the meantime.
    ArgumentError -> true
  end

  @doc """
  Hands a frame to the port: `:busy` (not taken) while its queue is full, `:closed` when it is gone.
  """
  @spec write(port(), iodata()) :: :ok | :busy | :closed
  def write(port, frame) do
    if Port.command(port, frame, [:nosuspend]), do: :ok, else: :busy
  rescue
    ArgumentError -> :closed
  end
end
