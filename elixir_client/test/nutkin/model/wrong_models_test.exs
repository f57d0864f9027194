defmodule Nutkin.Model.WrongModelsTest do
  @moduledoc """
  What people are told of their mistakes: where, what was expected, what was found, in words that need no Python.
  """

  use ExUnit.Case, async: true

  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.{InvalidData, InvalidModel}
  alias Nutkin.Test.{Engine, ImpossibleValues, MismatchedModels, WrongModels}

  # A tuple is Elixir's where the client speaks of it, as in "a tuple of positive integers".
  @python ~r/\b(None|True|False|NoneType|nan|inf|ndarray|dtype|numpy|jax|jnp|kwargs|dict|int64|float64|Traceback)\b|\(\d+,\)|array\(/
  @numbers ~r/\bnodes? \d|\bindex \d+\)|Node<\d/

  for {{what, _write, _data, _told}, place} <- Enum.with_index(WrongModels.all()) do
    @tag place: place
    test "#{what} is told while the model is written", %{place: place} do
      {_what, write, _data, told} = Enum.at(WrongModels.all(), place)
      assert_told(assert_raise(InvalidModel, write), told)
    end
  end

  @tag :python
  test "the others are told when the data come" do
    %{folder: folder} = temporary_folder()
    mistakes = MismatchedModels.all() ++ ImpossibleValues.all()
    models = for {_what, write, data, _told} <- mistakes, do: {write.(), data}

    for {{_mistake, _write, _data, told} = mistake, answer} <-
          Enum.zip(mistakes, Engine.run_all(models, folder)) do
      assert {{:error, %type{} = error}, _} = {answer, mistake}
      assert type in [InvalidModel, InvalidData]
      assert_told(error, told)
      refute Exception.message(error) =~ "tuple"
    end
  end

  defp assert_told(error, told) do
    message = Exception.message(error)

    case String.split(told, "…", parts: 2) do
      [beginning, ""] -> assert String.starts_with?(message, beginning)
      _whole -> assert message == told
    end

    refute message =~ @python
    refute message =~ @numbers
    if error.node, do: assert(message =~ error.node)
  end
end
