defmodule Nutkin.Error.InvalidModel do
  @moduledoc """
  The model is wrong: an unknown operation or distribution, a bad reference, shapes that do not fit.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
