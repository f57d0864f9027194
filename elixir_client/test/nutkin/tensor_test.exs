defmodule Nutkin.TensorTest do
  use ExUnit.Case, async: true

  alias Nutkin.Tensor

  doctest Nutkin.Tensor
end
