defmodule Nutkin.GuideTest do
  @moduledoc """
  The examples of docs/models.md do what the guide says.
  """

  use Nutkin.Test.WorkerCase, async: false

  import ExUnit.CaptureIO
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Test.{Engine, Guide}

  @moduletag :capture_log
  @moduletag timeout: 600_000
  @examples Guide.examples()
  @external_resource Guide.path()

  setup_all do
    start_supervised!({Nutkin, port_options()})
    %{folder: folder} = temporary_folder()
    {outcomes, warnings} = with_io(:stderr, fn -> Guide.evaluate(@examples) end)
    answers = outcomes |> Enum.flat_map(fn {_line, outcome} -> outcome.models end) |> Engine.run_all(folder)
    {outcomes, []} = Enum.map_reduce(outcomes, answers, &answered/2)
    %{outcomes: Map.new(outcomes), warnings: warnings}
  end

  defp answered({line, outcome}, answers) do
    {mine, others} = Enum.split(answers, length(outcome.models))
    {{line, Map.put(outcome, :answers, mine)}, others}
  end

  for {line, code} <- @examples do
    @tag :port
    @tag line_of_guide: line
    @tag announced: Guide.announced(code)
    test "the example at line #{line}", %{outcomes: outcomes, line_of_guide: line, announced: announced} do
      %{raised: raised, answers: answers} = outcomes[line]
      errors = List.wrap(raised) ++ for {:error, error} <- answers, do: error

      assert Enum.map(errors, &Guide.shown/1) == List.wrap(announced)
      for {:ok, %{"log_density" => log_density}} <- answers, do: assert(is_float(log_density))
    end
  end

  @tag :port
  test "the examples give no warnings", %{warnings: warnings} do
    assert warnings == ""
  end
end

defmodule Nutkin.GuideTextTest do
  use ExUnit.Case, async: true

  alias Nutkin.Test.Guide

  test "the table of distributions is that of the language" do
    assert Guide.written_table() == Guide.table(),
           "docs/models.md is behind: MIX_ENV=test mix run --no-start -e 'Nutkin.Test.Guide.write_table()'"
  end

  test "its links lead to headings of it" do
    text = File.read!(Guide.path())
    headings = for [_, heading] <- Regex.scan(~r/^##+ (.*)$/m, text), do: anchor(heading)
    links = for [_, anchor] <- Regex.scan(~r/\]\(#([^)]*)\)/, text), do: anchor

    assert links != []
    assert Enum.uniq(links) -- headings == []
  end

  defp anchor(heading),
    do: heading |> String.downcase() |> String.replace(~r/[^\w -]/, "") |> String.replace(" ", "-")
end
