defmodule Nutkin.Error.Timeout do
  @moduledoc """
  The time given was up before there was anything to return.

  Besides the fields described in `Nutkin.Error`: `:timeout`, in milliseconds.
  """

  use Nutkin.Error.Definition, fields: [timeout: non_neg_integer() | nil]

  @impl true
  def message(%{message: nil, timeout: timeout} = error) do
    sentence(error, "no result within #{timeout} ms")
  end

  def message(error), do: sentence(error, error.message)
end
