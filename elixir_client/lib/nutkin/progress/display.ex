defmodule Nutkin.Progress.Display do
  @moduledoc false
  # How far a run is, on a terminal: a table of its chains, written over again and again, or, where the device is none (a file, a
  # pipe), a line now and then. Nothing is shown of a run that samples for less than half a second.
  #
  # device: what is written to; options: of the run
  # first: when the first progress came, nil before; shown: when it was last written, nil before
  # rows: how many lines are to be written over
  # chains: the last progress of each

  alias Nutkin.{Progress, Protocol}

  @enforce_keys [:device, :options]
  defstruct [:device, :options, :first, :shown, rows: 0, chains: %{}]

  @type t :: %__MODULE__{
          device: IO.device(),
          options: Nutkin.Options.valid(),
          first: integer() | nil,
          shown: integer() | nil,
          rows: non_neg_integer(),
          chains: %{non_neg_integer() => Progress.t()}
        }

  # Milliseconds.
  @patience 500
  @refresh 100
  @a_line_each 10_000

  @head ["chain", "phase", "draws", "divergences", "step size", "depth", "leapfrogs/s", "left"]

  @doc "The display of a run with these options; nil where it has none."
  @spec new(Nutkin.Options.valid()) :: t() | nil
  def new(%{progress: device} = options) when device != nil, do: %__MODULE__{device: device, options: options}
  def new(_options), do: nil

  @doc "Shows what has come of a run, if it is time to."
  @spec put(t() | nil, Protocol.event(), integer()) :: t() | nil
  def put(display, event, now \\ System.monotonic_time(:millisecond))
  def put(nil, _event, _now), do: nil

  def put(display, {:progress, progress}, now) do
    display = %{
      display
      | first: display.first || now,
        chains: Map.put(display.chains, progress.chain, progress)
    }

    size = terminal_size(display.device)
    pause = if size, do: @refresh, else: @a_line_each

    if now - display.first < @patience or (display.shown && now - display.shown < pause),
      do: display,
      else: write(display, text(display, size), size, now)
  end

  def put(%{shown: shown} = display, {:done, done}, now) when shown != nil do
    write(display, [ended(done, now - display.first)], terminal_size(display.device), now)
  end

  def put(display, _event, _now), do: display

  defp text(display, size) do
    chains = display.chains |> Enum.sort() |> Enum.map(fn {_number, progress} -> progress end)

    # Below the last line is that of the cursor.
    case size do
      {rows, columns} -> table(chains, display.options, max(rows - 1, 3), columns)
      nil -> [total(chains, display.options)]
    end
  end

  @doc """
  A table of the chains, in at most `most` lines of at most `columns` characters. Where there are more chains than
  that, the last line is that of `total/2`.
  """
  @spec table([Progress.t()], Nutkin.Options.valid(), pos_integer(), pos_integer()) :: [String.t()]
  def table(chains, options, most, columns) do
    {shown, rest} =
      if length(chains) < most,
        do: {chains, []},
        else: {Enum.take(chains, most - 2), [total(chains, options)]}

    rows = [@head | Enum.map(shown, &row(&1, options))]

    widths =
      rows
      |> Enum.zip_with(& &1)
      |> Enum.map(fn column -> column |> Enum.map(&String.length/1) |> Enum.max() end)

    lines = for row <- rows, do: row |> Enum.zip_with(widths, &String.pad_leading/2) |> Enum.join("  ")
    Enum.map(lines ++ rest, &String.slice(&1, 0, columns))
  end

  defp row(progress, options) do
    {done, all} = done(progress, options)

    [
      "#{progress.chain}",
      "#{progress.phase}",
      "#{done}/#{all}",
      grouped(progress.divergences),
      significant(progress.step_size),
      :erlang.float_to_binary(progress.tree_depth * 1.0, decimals: 1),
      grouped(round(progress.gradients_per_second)),
      if(progress.seconds_left, do: duration(progress.seconds_left), else: "")
    ]
  end

  @doc "One line for all chains."
  @spec total([Progress.t()], Nutkin.Options.valid()) :: String.t()
  def total(chains, options) do
    warming = Enum.count(chains, &(&1.phase == :warmup))
    drawn = for(%{phase: :sample} = chain <- chains, do: chain.draws) |> Enum.sum()
    divergent = for(%{phase: :sample} = chain <- chains, do: chain.divergences) |> Enum.sum()
    # It ends with the last chain; nobody knows when while one of them does not.
    lefts = Enum.map(chains, & &1.seconds_left)
    warmup = if warming > 0, do: ["#{warming} of #{count(options.chains, "chain")} in warmup"], else: []

    (warmup ++
       [
         "#{grouped(drawn)} of #{grouped(options.chains * options.draws)} draws",
         count(divergent, "divergence"),
         "#{grouped(round(Enum.sum(Enum.map(chains, & &1.gradients_per_second))))} leapfrogs/s"
         | left(if(nil in lefts, do: nil, else: Enum.max(lefts)))
       ])
    |> Enum.join(", ")
  end

  defp ended(done, milliseconds) do
    sum = fn name -> done.chains |> Enum.map(&Map.fetch!(&1, name)) |> Enum.sum() end
    status = done.status |> Atom.to_string() |> String.replace("_", " ")
    drawn = "#{grouped(sum.(:draws))} draws of #{count(length(done.chains), "chain")}"
    "#{status}: #{drawn} in #{duration(milliseconds / 1000)}, #{count(sum.(:divergences), "divergence")}"
  end

  # What of a phase is done: draws of the sampling, iterations of the warmup, which are as many as are planned now.
  defp done(%{phase: :sample, draws: draws}, options), do: {draws, options.draws}

  defp done(progress, options) do
    {progress.iteration, max(progress.total - options.draws * options.thin, progress.iteration)}
  end

  defp left(nil), do: []
  defp left(seconds), do: ["#{duration(seconds)} left"]

  @doc """
  A time in seconds, as short as is of use.

      iex> for seconds <- [0.04, 3.21, 61, 3725, 200_000], do: Nutkin.Progress.Display.duration(seconds)
      ["0.0 s", "3.2 s", "1:01 min", "1:02 h", "55:33 h"]
  """
  @spec duration(number()) :: String.t()
  def duration(seconds) when seconds < 10, do: "#{:erlang.float_to_binary(seconds * 1.0, decimals: 1)} s"
  def duration(seconds) when seconds < 60, do: "#{round(seconds)} s"
  def duration(seconds) when seconds < 3600, do: "#{sixtieths(seconds)} min"
  def duration(seconds), do: "#{sixtieths(seconds / 60)} h"

  defp sixtieths(number) do
    number = trunc(number)
    "#{div(number, 60)}:#{String.pad_leading("#{rem(number, 60)}", 2, "0")}"
  end

  defp count(1, what), do: "1 #{what}"
  defp count(number, what), do: "#{grouped(number)} #{what}s"

  defp grouped(number), do: number |> Integer.to_string() |> String.replace(~r/\B(?=(\d{3})+$)/, ",")

  defp significant(number), do: "~.3g" |> :io_lib.format([number * 1.0]) |> IO.iodata_to_binary()

  # The lines before are written over where the device is a terminal.
  defp write(display, lines, size, now) do
    back = if display.rows > 0, do: [IO.ANSI.cursor_up(display.rows), "\r\e[J"], else: []
    IO.write(display.device, [back | Enum.map(lines, &[&1, ?\n])])
    %{display | shown: now, rows: if(size, do: length(lines), else: 0)}
  end

  # Rows and columns; nil where it is no terminal, or none that can be written over.
  defp terminal_size(device) do
    with true <- IO.ANSI.enabled?(),
         {:ok, rows} <- :io.rows(erlang(device)),
         {:ok, columns} <- :io.columns(erlang(device)) do
      {rows, columns}
    else
      _ -> nil
    end
  end

  # As Elixir names them, and as Erlang does.
  defp erlang(:stdio), do: Process.group_leader()
  defp erlang(:stderr), do: :standard_error
  defp erlang(device), do: device
end
