defmodule Nutkin.Error.SuggestionTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.Suggestion

  doctest Suggestion

  test "nothing is like a name where nothing is known" do
    assert Suggestion.closest(:weight, []) == nil
  end
end
