defmodule Nutkin.Error.CompileFailed do
  @moduledoc """
  XLA refused the program.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
