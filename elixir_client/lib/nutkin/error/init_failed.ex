defmodule Nutkin.Error.InitFailed do
  @moduledoc """
  No starting point has a finite log density and gradient.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
