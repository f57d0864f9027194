defmodule Nutkin.Error.InvalidData do
  @moduledoc """
  A value is missing, unreadable, of the wrong shape or type, or impossible where it stands.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
