defmodule Nutkin.Error.LimitExceeded do
  @moduledoc """
  A documented limit was exceeded, such as the number of nodes or the bytes of one tensor.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
