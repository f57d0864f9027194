defmodule Nutkin.Error.Internal do
  @moduledoc """
  A defect of the port program; the message says where.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
