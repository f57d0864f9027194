defmodule Nutkin.Error.Cancelled do
  @moduledoc """
  The request was cancelled.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
