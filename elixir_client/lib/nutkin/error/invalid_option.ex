defmodule Nutkin.Error.InvalidOption do
  @moduledoc """
  An option is unknown or out of range.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
