defmodule Nutkin.Test.TemporaryFolder do
  @moduledoc """
  A folder for one test: `setup :temporary_folder`, imported from here, gives it as `:folder`. It is outside of the project,
  where the user who runs the tests may not be allowed to write.
  """

  @doc "Makes the folder, and deletes it when the test ends."
  def temporary_folder(_context \\ %{}) do
    name = "nutkin_test_#{System.pid()}_#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), name)
    File.mkdir_p!(folder)
    ExUnit.Callbacks.on_exit(fn -> File.rm_rf!(folder) end)
    %{folder: folder}
  end
end
