defmodule Nutkin.Environment do
  @moduledoc """
  The Python environment of an application: a virtual environment with the engine, made by `mix nutkin.install` from the lock file that
  belongs to this version of the client.

  It has what runs, not what tests. Every package must have the digest that the lock file says. It may be moved and copied, as a release
  does with the folder `priv`, to a machine that has the same Python at the same place.
  """

  alias Nutkin.Worker.{Options, Program}

  @enforce_keys [:folder, :source, :python]
  defstruct @enforce_keys

  @typedoc "The folder of the environment, the folder of the sources with their lock file, and the Python that makes it."
  @type t :: %__MODULE__{folder: Path.t(), source: Path.t(), python: Program.t()}

  @lock "requirements-runtime.lock"
  @project "pyproject.toml"
  @packages ["python/nutkin", "bridge/nutkin_port"]

  # Says from what it was made; empty until it is whole. A folder without it is somebody else's.
  @stamp "nutkin.stamp"

  # Isolated: neither variables nor packages of the user have a part in it.
  @isolated "-I"

  # What cannot be loaded here, such as a library for another processor or another libc, is found by loading it.
  @try "import nutkin_port.__main__, nutkin; print(*(f'{k} {v}' for k, v in nutkin.versions().items()), sep=', ')"

  @last_lines 20

  @doc """
  The environment in `folder`, which need not be there yet. `python` is a path or a name on the PATH; `sources` are folders of which the
  first one with a lock file is taken.
  """
  @spec new(Path.t(), String.t(), [Path.t()]) :: {:ok, t()} | {:error, String.t()}
  def new(folder, python, sources) do
    case Enum.find(sources, &File.regular?(Path.join(&1, @lock))) do
      nil ->
        {:error,
         "there is no #{@lock} in #{Enum.join(sources, " or ")}: see that the dependency nutkin is complete"}

      source ->
        program = [python: python] |> Options.validate!() |> Program.new()
        {:ok, %__MODULE__{folder: Path.expand(folder), source: Path.expand(source), python: program}}
    end
  end

  @doc "The Python of the environment."
  @spec python(t()) :: Path.t()
  def python(environment), do: Path.join(environment.folder, "bin/python")

  @doc """
  Makes the environment, or makes it anew where it was made from something else, and tries it. Calls `tell` with a line for each step.
  Says the versions in it. Where it is as it should be nothing is done but the trial.

  A folder with other things in it is left alone. Errors are texts for the user.
  """
  @spec install(t(), (String.t() -> term())) :: {:ok, String.t()} | {:error, String.t()}
  def install(environment, tell) do
    with {:ok, _executable, version} <- Program.version(environment.python),
         stamp = stamp(environment, version),
         {:ok, _} <- make(environment, stamp, tell),
         {:ok, versions} <- run({"trying it", own(environment), [@isolated, "-c", @try]}, tell) do
      File.write!(Path.join(environment.folder, @stamp), stamp)
      {:ok, versions}
    else
      {:error, %{message: message, hint: hint}} -> {:error, "#{message}; #{hint}"}
      {:error, text} -> {:error, text}
    end
  end

  defp make(%{folder: folder} = environment, stamp, tell) do
    case {File.read(Path.join(folder, @stamp)), File.ls(folder)} do
      {{:ok, ^stamp}, _} ->
        tell.("#{folder} is as it should be")
        {:ok, folder}

      # One that was made from something else, or not to its end.
      {{:ok, _other}, _} ->
        make_anew(environment, tell)

      {_none, files} when files in [{:error, :enoent}, {:ok, []}] ->
        make_anew(environment, tell)

      _ ->
        {:error, "#{folder} has something else in it: give another folder with --path, or remove it"}
    end
  end

  defp make_anew(%{folder: folder, source: source} = environment, tell) do
    lock = Path.join(source, @lock)
    venv = [@isolated, "-m", "venv", "--clear", folder]
    pip = [@isolated, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    # What fits this machine, or nothing: only one package, of plain Python, comes as sources.
    packages = pip ++ ["--require-hashes", "--only-binary", ":all:", "--no-binary", "erlang-py", "-r", lock]
    nutkin = pip ++ ["--no-deps", "--no-build-isolation", source]

    with {:ok, _} <- run({"making #{folder}", environment.python, venv}, tell),
         _ = File.write!(Path.join(folder, @stamp), ""),
         # A release follows links, and would hold everything twice; without the link Python looks into both folders.
         _ = File.rm(Path.join(folder, "lib64")),
         {:ok, _} <-
           run({"installing the packages of #{lock}, about a minute", own(environment), packages}, tell) do
      run({"installing nutkin from #{source}", own(environment), nutkin}, tell)
    end
  end

  # Everything that it is made from.
  defp stamp(environment, version) do
    sources = Enum.flat_map(@packages, &Path.wildcard(Path.join([environment.source, &1, "**/*.py"])))

    files = [
      Path.join(environment.source, @lock),
      Path.join(environment.source, @project) | Enum.sort(sources)
    ]

    parts = [version | Enum.map(files, &:crypto.hash(:sha256, File.read!(&1)))]
    Base.encode16(:crypto.hash(:sha256, parts), case: :lower)
  end

  defp own(environment), do: [python: python(environment)] |> Options.validate!() |> Program.new()

  defp run({text, program, args}, tell) do
    tell.(text)

    case Program.execute(program, args, :infinity) do
      {:ok, {output, 0}} ->
        {:ok, String.trim(output)}

      {:ok, {output, status}} ->
        lines = output |> String.split("\n", trim: true) |> Enum.take(-@last_lines)
        command = Enum.join([program.python | args], " ")
        {:error, Enum.join(["#{text}: `#{command}` ended with status #{status}:" | lines], "\n    ")}

      {:error, error} ->
        {:error, Exception.message(error)}
    end
  end
end
