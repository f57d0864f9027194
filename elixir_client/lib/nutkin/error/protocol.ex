defmodule Nutkin.Error.Protocol do
  @moduledoc """
  The two sides do not speak the same protocol: bytes that cannot be read, or an unexpected message.

  The fields are described in `Nutkin.Error`.
  """

  use Nutkin.Error.Definition
end
