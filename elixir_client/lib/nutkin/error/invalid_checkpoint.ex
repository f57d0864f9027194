defmodule Nutkin.Error.InvalidCheckpoint do
  @moduledoc """
  What should be a checkpoint is none, or one of another model, other data, other options, or another version.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
