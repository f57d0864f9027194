defmodule Mix.Tasks.Nutkin.Install do
  @shortdoc "Makes the Python environment that Nutkin runs in"

  @moduledoc """
  Makes a Python environment with the engine, from the lock file of this version of Nutkin, and tries it.

      mix nutkin.install [--path FOLDER] [--python PATH]

    * `--path` - where, by default `priv/nutkin` of this project: there it is part of a release
    * `--python` - the Python that makes it, 3.11 or later, by default `python3` of the PATH. The machine that runs the release needs the
      same one at the same place, and the same operating system and processor

  The packages come from where pip gets them, and have the digests of the lock file. Run again, it does nothing where nothing has
  changed. In the application:

      {Nutkin, python: Application.app_dir(:my_app, "priv/nutkin/bin/python")}
  """

  use Mix.Task

  alias Nutkin.Environment

  @impl true
  def run(args) do
    {opts, rest} = OptionParser.parse!(args, strict: [path: :string, python: :string])

    if rest != [],
      do:
        Mix.raise(
          "mix nutkin.install takes no arguments but --path and --python; found #{Enum.join(rest, " ")}"
        )

    Mix.Task.run("app.config")
    folder = opts[:path] || "priv/nutkin"
    nutkin = Mix.Project.deps_paths()[:nutkin] || File.cwd!()
    # A checkout has the sources around it, a package inside.
    sources = [Path.dirname(nutkin), Path.join(nutkin, "priv/python")]

    with {:ok, environment} <- Environment.new(folder, opts[:python] || "python3", sources),
         {:ok, versions} <- Environment.install(environment, &Mix.shell().info/1) do
      Mix.shell().info("#{versions}\n\n#{how_to_use(environment, opts[:path])}")
    else
      {:error, text} -> Mix.raise(text)
    end
  end

  defp how_to_use(environment, nil) do
    """
    In your supervision tree, and in releases too:

        {Nutkin, python: Application.app_dir(#{inspect(Mix.Project.config()[:app])}, "priv/nutkin/bin/python")}

    It belongs to this machine: keep #{Path.relative_to_cwd(environment.folder)} out of version control.
    """
  end

  defp how_to_use(environment, _path) do
    """
    In your supervision tree:

        {Nutkin, python: #{inspect(Environment.python(environment))}}
    """
  end
end
