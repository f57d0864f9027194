defmodule Nutkin.Progress.DisplayTest do
  # Whether there is ANSI is a setting of the VM.
  use Nutkin.Test.WorkerCase, async: false

  import ExUnit.CaptureIO

  alias Nutkin.{Options, Progress}
  alias Nutkin.Progress.Display
  alias Nutkin.Test.Models

  doctest Display

  defp options(opts \\ []) do
    {:ok, options} = Options.validate(opts, [:chains, :draws, :thin, :progress])
    options
  end

  defp progress(chain, fields \\ []) do
    defaults = %{
      phase: :sample,
      iteration: 702,
      total: 1190,
      divergences: 0,
      step_size: 0.41237,
      tree_depth: 2.84,
      gradients: 9000,
      draws: 512,
      gradients_per_second: 120_345.6,
      seconds_left: 3.21
    }

    struct!(Progress, defaults |> Map.put(:chain, chain) |> Map.merge(Map.new(fields)))
  end

  defp warming(chain), do: progress(chain, phase: :warmup, iteration: 95, draws: 0, seconds_left: nil)

  test "a table of the chains" do
    chains = [progress(0), warming(1), progress(10, divergences: 1234, step_size: 1.0e-5, seconds_left: 4000)]

    assert Display.table(chains, options(chains: 11), 24, 80) == [
             "chain   phase     draws  divergences  step size  depth  leapfrogs/s    left",
             "    0  sample  512/1000            0      0.412    2.8      120,346   3.2 s",
             "    1  warmup    95/190            0      0.412    2.8      120,346        ",
             "   10  sample  512/1000        1,234    1.00e-5    2.8      120,346  1:06 h"
           ]
  end

  test "fits into the terminal" do
    lines = Display.table(Enum.map(0..99, &progress/1), options(chains: 100), 10, 40)
    assert length(lines) == 10
    assert Enum.all?(lines, &(String.length(&1) <= 40))
    assert List.last(lines) == "51,200 of 100,000 draws, 0 divergences, "
  end

  test "the iterations of the warmup are those planned, also of a run that is thinned" do
    [_, line] = Display.table([warming(0)], options(thin: 1, draws: 1095), 24, 80)
    assert line =~ " 95/95 "
    [_, line] = Display.table([warming(0)], options(thin: 5, draws: 200), 24, 80)
    assert line =~ " 95/190 "
  end

  test "one line for all chains" do
    assert Display.total([progress(0, divergences: 1), progress(1, seconds_left: 75)], options(chains: 2)) ==
             "1,024 of 2,000 draws, 1 divergence, 240,691 leapfrogs/s, 1:15 min left"

    assert Display.total([progress(0), warming(1)], options(chains: 2)) ==
             "1 of 2 chains in warmup, 512 of 2,000 draws, 0 divergences, 240,691 leapfrogs/s"
  end

  defp done(draws), do: {:done, %{status: :max_time, chains: [%{draws: draws, divergences: 2}]}}

  # What is written for events at these milliseconds.
  defp written(events, device_options \\ []) do
    capture_io(fn ->
      display = Display.new(Map.merge(options(chains: 1, progress: true), Map.new(device_options)))
      for {now, event} <- events, reduce: display, do: (display -> Display.put(display, event, now))
    end)
  end

  describe "what is no terminal" do
    test "gets a line now and then, and one at the end" do
      events =
        for now <- [0, 400, 500, 5_000, 10_499, 10_500], do: {now, {:progress, progress(0, draws: now)}}

      assert written(events ++ [{12_300, {:compiled, %{}}}, {12_345, done(1000)}]) == """
             500 of 1,000 draws, 0 divergences, 120,346 leapfrogs/s, 3.2 s left
             10,500 of 1,000 draws, 0 divergences, 120,346 leapfrogs/s, 3.2 s left
             max time: 1,000 draws of 1 chain in 12 s, 2 divergences
             """
    end

    test "gets nothing of a run that is short" do
      assert written([{0, {:progress, progress(0)}}, {499, {:progress, progress(0)}}, {501, done(9)}]) == ""
      assert written([{0, {:error, :any}}, {900, :timeout}]) == ""
    end
  end

  describe "a terminal" do
    setup do
      before = Application.fetch_env(:elixir, :ansi_enabled)
      Application.put_env(:elixir, :ansi_enabled, true)

      on_exit(fn ->
        case before do
          {:ok, enabled} -> Application.put_env(:elixir, :ansi_enabled, enabled)
          :error -> Application.delete_env(:elixir, :ansi_enabled)
        end
      end)
    end

    # A device that has rows and columns, and sends what it gets to the test.
    defp terminal(test) do
      receive do
        {:io_request, from, ref, {:get_geometry, :rows}} ->
          send(from, {:io_reply, ref, 24})

        {:io_request, from, ref, {:get_geometry, :columns}} ->
          send(from, {:io_reply, ref, 80})

        {:io_request, from, ref, {:put_chars, :unicode, text}} ->
          send(test, {:written, IO.chardata_to_string(text)})
          send(from, {:io_reply, ref, :ok})
      end

      terminal(test)
    end

    test "is written over ten times a second at most, and keeps the end" do
      test = self()
      device = start_supervised!({Task, fn -> terminal(test) end})
      events = for now <- [0, 500, 599, 600], do: {now, {:progress, progress(0, draws: now)}}
      assert written(events ++ [{700, done(1000)}], progress: device) == ""
      assert_received {:written, "chain" <> first}
      assert first =~ ~r/ 500\/1000 .*\n$/
      assert_received {:written, "\e[2A\r\e[Jchain" <> second}
      assert second =~ ~r/ 600\/1000 .*\n$/
      assert_received {:written, "\e[2A\r\e[Jmax time: 1,000 draws of 1 chain in 0.7 s, 2 divergences\n"}
      refute_received {:written, _}
    end
  end

  test "no option, no display" do
    assert Display.new(options()) == nil
    assert Display.new(%{}) == nil
    assert Display.put(nil, {:progress, progress(0)}) == nil
    assert {:error, error} = Options.validate([progress: "yes"], [:progress])
    assert Exception.message(error) =~ "expected true, false, or a device such as :stderr"
  end

  @tag :port
  test "of a run" do
    worker = start_worker!(port_options())
    options = [data: [y: [1.0]], worker: worker, draws: 100_000_000, chains: 2, thin: 10, max_time: 800]
    written = capture_io(:stderr, fn -> Nutkin.sample!(Models.mean(), [progress: :stderr] ++ options) end)
    assert [line, last, ""] = String.split(written, "\n")
    assert line =~ ~r/^[\d,]+ of 200,000,000 draws, \d+ divergences?, [\d,]+ leapfrogs\/s, .* left$/
    assert last =~ ~r/^max time: [\d,]+ draws of 2 chains in 0\.\d s, /
  end
end
