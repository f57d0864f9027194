defmodule Nutkin.Summary do
  @moduledoc """
  A table of a fit: for every scalar its mean, standard deviation and 5 % and 95 % quantiles, and what says how far they
  are to be trusted: the Monte Carlo standard error of the mean, bulk and tail effective sample sizes, and R-hat.
  See `Nutkin.Diagnostics`.

  `:rows` has one map a scalar, with its `:name` as printed (`"theta[0]"`), `:variable`, `:index` (a list, empty for a
  scalar variable), and `:mean`, `:sd`, `:q5`, `:q95`, `:mcse_mean`, `:ess_bulk`, `:ess_tail`, `:r_hat`: floats, or
  `:nan` or `:infinity`. `:more` counts the scalars that a limit left out.

  `:warnings` has a sentence for what makes draws useless and no column tells: chains of which every draw is divergent, and
  variables that run off beyond 1.0e100. They are printed below the table.
  """

  alias Nutkin.{Diagnostics, Fit, Tensor}

  @columns [:mean, :sd, :q5, :q95, :mcse_mean, :ess_bulk, :ess_tail, :r_hat]

  # What a fit shows when it is printed, which shells and crash reports do unasked: so many rows, and so many draws behind
  # them.
  @brief_rows 30
  @brief_draws 200_000

  # Where a variable runs off that nothing holds. Its mean or its spread is beyond it too.
  @beyond 1.0e100

  @enforce_keys [:rows, :more, :chains, :draws, :status, :divergences, :warnings, :seconds]
  defstruct @enforce_keys

  @type row :: %{
          name: String.t(),
          variable: String.t(),
          index: [non_neg_integer()],
          mean: Diagnostics.result(),
          sd: Diagnostics.result(),
          q5: Diagnostics.result(),
          q95: Diagnostics.result(),
          mcse_mean: Diagnostics.result(),
          ess_bulk: Diagnostics.result(),
          ess_tail: Diagnostics.result(),
          r_hat: Diagnostics.result()
        }

  @type t :: %__MODULE__{
          rows: [row()],
          more: non_neg_integer(),
          chains: pos_integer(),
          draws: non_neg_integer(),
          status: Fit.status() | nil,
          divergences: non_neg_integer() | nil,
          warnings: [String.t()],
          seconds: %{compile: number() | nil, warmup: number() | nil, sample: number() | nil}
        }

  @doc """
  The summary of a fit. A fit without draws in every chain has no rows. The options:

    * `:variables` - names, all by default
    * `:limit` - how many rows at most, `:infinity` by default
  """
  @spec new(Fit.t(), keyword()) :: t()
  def new(%Fit{} = fit, opts \\ []) do
    opts = Keyword.validate!(opts, variables: nil, limit: :infinity)
    scalars = fit |> scalars(check_names!(opts[:variables])) |> limit(check_limit!(opts[:limit]))
    build(fit, scalars, &on_all_cores(&1, fit))
  end

  defp check_names!(names) when is_nil(names) or is_list(names), do: names

  defp check_names!(other) do
    raise ArgumentError, "expected variables: to be a list of names, such as [:mu], found: #{inspect(other)}"
  end

  defp check_limit!(limit) when limit == :infinity or (is_integer(limit) and limit >= 0), do: limit

  defp check_limit!(other) do
    raise ArgumentError, "expected limit: to be a number of rows, or :infinity, found: #{inspect(other)}"
  end

  # How a fit prints: as the first rows of its table, as far as the work for them stays small and within `limit`, that of
  # `inspect/2`; where there are too many draws for one row, as the names and forms of its variables.
  @doc false
  @spec brief(Fit.t(), non_neg_integer() | :infinity) :: String.t()
  def brief(fit, limit) do
    draws = fit |> Fit.lengths() |> Enum.min()
    affordable = div(@brief_draws, max(draws * fit.options.chains, 1))
    {_, rest} = scalars = fit |> scalars(nil) |> limit(Enum.min([@brief_rows, affordable, limit]))
    summary = build(fit, scalars, fn shown -> Enum.map(shown, &row(&1, columns(fit, &1))) end)

    cond do
      rest == 0 ->
        text(summary, "Nutkin.Fit", table(summary.rows))

      summary.rows == [] ->
        text(summary, "Nutkin.Fit", forms(fit) ++ ["Nutkin.Fit.summary/1 has the table"])

      true ->
        text(summary, "Nutkin.Fit", table(summary.rows) ++ ["... #{rest} more: Nutkin.Fit.summary/1 has all"])
    end
  end

  defp forms(fit) do
    for name <- Fit.names(fit) do
      {type, shape} = Fit.form(fit, name)
      "#{name}  #{Tensor.Type.name(type)} #{inspect(shape)}"
    end
  end

  defp build(fit, {scalars, rest}, rows) do
    rows = rows.(scalars)

    %__MODULE__{
      rows: rows,
      more: rest,
      chains: fit.options.chains,
      draws: Enum.min(Fit.lengths(fit)),
      status: fit.status,
      divergences: if(predicted?(fit), do: nil, else: Fit.divergences(fit)),
      warnings: Enum.map(Fit.lost_chains(fit), &lost/1) ++ beyond(rows),
      seconds: if(predicted?(fit), do: %{fit.seconds | warmup: nil}, else: fit.seconds)
    }
  end

  defp lost(chain) do
    "all draws of chain #{chain} are divergent, and tell nothing: try narrower priors, centered: false or a higher " <>
      "target_accept"
  end

  # One element of a variable stands for all.
  defp beyond(rows) do
    for row <- rows |> Enum.filter(&beyond?/1) |> Enum.uniq_by(& &1.variable) do
      "#{row.name} has draws beyond #{@beyond}: see that a prior holds it, or what it is computed of"
    end
  end

  defp beyond?(row),
    do: Enum.any?([row.mean, row.sd], &(&1 == :infinity or (is_float(&1) and abs(&1) > @beyond)))

  # Predictions come of no sampler.
  defp predicted?(fit), do: match?(%{predicted: [_ | _]}, fit.compiled)

  defp scalars(fit, names) do
    if Enum.min(Fit.lengths(fit)) == 0 do
      []
    else
      for name <- names || Fit.names(fit),
          {type, shape} = Fit.form(fit, name),
          scalar <- indices(type, shape) do
        Map.put(scalar, :variable, to_string(name))
      end
    end
  end

  defp indices(type, shape) do
    for {index, place} <- shape |> Tuple.to_list() |> indices() |> Enum.with_index() do
      %{index: index, place: place, type: type}
    end
  end

  defp indices([]), do: [[]]
  defp indices([size | rest]), do: for(i <- 0..(size - 1)//1, tail <- indices(rest), do: [i | tail])

  defp limit(scalars, :infinity), do: {scalars, 0}

  defp limit(scalars, limit) do
    {shown, rest} = Enum.split(scalars, limit)
    {shown, length(rest)}
  end

  # With many draws a row takes a while. Only its own bytes go to the process that makes it.
  defp on_all_cores(scalars, fit) do
    scalars
    |> Stream.map(&{&1, columns(fit, &1)})
    |> Task.async_stream(fn {scalar, columns} -> row(scalar, columns) end, timeout: :infinity)
    |> Enum.map(fn {:ok, row} -> row end)
  end

  defp columns(fit, scalar), do: Fit.column(fit, scalar.variable, scalar.place)

  defp row(%{variable: variable, index: index, type: type}, columns) do
    columns
    |> Enum.map(&Tensor.Type.decode(&1, type, div(byte_size(&1), Tensor.Type.byte_size(type, 1))))
    |> Diagnostics.summary()
    |> Map.merge(%{
      name: if(index == [], do: variable, else: "#{variable}[#{Enum.join(index, ", ")}]"),
      variable: variable,
      index: index
    })
  end

  @doc false
  @spec to_text(t()) :: String.t()
  def to_text(%__MODULE__{} = summary) do
    more = if summary.more > 0, do: ["... #{summary.more} more"], else: []
    text(summary, "Nutkin.Summary", table(summary.rows) ++ more)
  end

  defp text(summary, label, lines) do
    lines = Enum.map(lines ++ summary.warnings, &("  " <> &1))
    Enum.join(["##{label}<#{headline(summary)}" | lines] ++ [">"], "\n")
  end

  defp headline(summary) do
    [
      "#{count(summary.chains, "chain")} x #{count(summary.draws, "draw")}",
      summary.status && Atom.to_string(summary.status),
      summary.divergences && count(summary.divergences, "divergence"),
      seconds(summary.seconds.warmup, "warmup"),
      seconds(summary.seconds.sample, "sampling"),
      seconds(summary.seconds.compile, "compiling")
    ]
    |> Enum.filter(& &1)
    |> Enum.join(", ")
  end

  defp count(1, what), do: "1 #{what}"
  defp count(n, what), do: "#{n} #{what}s"

  defp seconds(nil, _what), do: nil
  defp seconds(seconds, what), do: "#{fixed(seconds / 1, 1)} s #{what}"

  defp table([]), do: []

  defp table(rows) do
    cells = [["" | Enum.map(@columns, &Atom.to_string/1)] | Enum.map(rows, &cells/1)]
    widths = cells |> Enum.zip_with(fn column -> column |> Enum.map(&String.length/1) |> Enum.max() end)

    for [name | values] <- cells do
      [name_width | value_widths] = widths
      values = Enum.zip_with(values, value_widths, &String.pad_leading/2)
      Enum.join([String.pad_trailing(name, name_width) | values], "  ")
    end
  end

  # The places that the standard error leaves certain.
  defp cells(row) do
    places = places(row.mcse_mean)
    estimates = for column <- [:mean, :sd, :q5, :q95], do: number(row[column], places)
    sizes = for column <- [:ess_bulk, :ess_tail], do: number(row[column], 0)
    [row.name | estimates] ++ [number(row.mcse_mean, more(places)) | sizes] ++ [number(row.r_hat, 2)]
  end

  defp places(error) when is_float(error) and error > 0, do: -floor(:math.log10(error))
  defp places(_none), do: :unknown

  defp more(:unknown), do: 4
  defp more(places), do: places + 1

  defp number(:nan, _places), do: "NaN"
  defp number(:infinity, _places), do: "Inf"

  defp number(value, :unknown) do
    if value == 0 or (abs(value) >= 1.0e-3 and abs(value) < 1.0e8),
      do: fixed(value, 3),
      else: scientific(value, 3)
  end

  defp number(value, places) do
    cond do
      value == 0 -> fixed(value, min(places, 8))
      abs(value) >= 1.0e8 or places > 8 -> scientific(value, places + floor(:math.log10(abs(value))))
      true -> fixed(value, places)
    end
  end

  defp scientific(value, digits), do: :erlang.float_to_binary(value, scientific: digits |> max(3) |> min(15))

  # Without the sign of a zero that is only so small.
  defp fixed(value, places) do
    text = :erlang.float_to_binary(value, decimals: max(places, 0))
    if String.match?(text, ~r/^-0(\.0*)?$/), do: String.trim_leading(text, "-"), else: text
  end

  defimpl Inspect do
    def inspect(summary, _opts), do: Nutkin.Summary.to_text(summary)
  end
end
