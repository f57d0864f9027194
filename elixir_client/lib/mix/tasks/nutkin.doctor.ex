defmodule Mix.Tasks.Nutkin.Doctor do
  @shortdoc "Checks whether Nutkin can work on this machine"

  @moduledoc """
  Checks whether Nutkin can work on this machine, see `Nutkin.Doctor`.

      mix nutkin.doctor [--python PATH]

  Each check is a line that says what was found, or what is wrong and what to do. The exit status is 1 if anything is wrong.
  `--python` is the option `:python` of `Nutkin.start_link/1`.
  """

  use Mix.Task

  @impl true
  def run(args) do
    {opts, rest} = OptionParser.parse!(args, strict: [python: :string])

    if rest != [],
      do: Mix.raise("mix nutkin.doctor takes no arguments but --python; found #{Enum.join(rest, " ")}")

    Mix.Task.run("app.config")
    {:ok, _apps} = Application.ensure_all_started(:nutkin)
    # What the program logs is in the line of its check.
    Logger.configure(level: :none)
    fine? = Nutkin.Doctor.run(opts, &Mix.shell().info(Nutkin.Doctor.line(&1)))
    unless fine?, do: exit({:shutdown, 1})
  end
end
