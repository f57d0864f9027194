defmodule Nutkin.Summary do
  @moduledoc """
  A table of a fit: for every scalar its mean, standard deviation and 5 % and 95 % quantiles, and what says how far they
  are to be trusted: the Monte Carlo standard error of the mean, bulk and tail effective sample sizes, and R-hat.
  See `Nutkin.Diagnostics`.

  `:rows` has one map a scalar, with its `:name` as printed (`"theta[0]"`), `:variable`, `:index` (a list, empty for a
  scalar variable), and `:mean`, `:sd`, `:q5`, `:q95`, `:mcse_mean`, `:ess_bulk`, `:ess_tail`, `:r_hat`: floats, or
  `:nan` or `:infinity`. `:more` counts the scalars that a limit left out.
  """

  alias Nutkin.{Diagnostics, Fit, Tensor}

  @columns [:mean, :sd, :q5, :q95, :mcse_mean, :ess_bulk, :ess_tail, :r_hat]

  @enforce_keys [:rows, :more, :chains, :draws, :status, :divergences, :seconds]
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
          divergences: non_neg_integer(),
          seconds: %{compile: number() | nil, sample: number() | nil}
        }

  @doc """
  The summary of a fit. A fit without draws in every chain has no rows. The options:

    * `:variables` - names, all by default
    * `:limit` - how many rows at most, `:infinity` by default
  """
  @spec new(Fit.t(), keyword()) :: t()
  def new(%Fit{} = fit, opts \\ []) do
    opts = Keyword.validate!(opts, variables: nil, limit: :infinity)
    draws = Enum.min(Fit.lengths(fit))
    tensors = if draws == 0, do: [], else: tensors(fit, opts[:variables])
    scalars = Enum.flat_map(tensors, &scalars/1)
    shown = if opts[:limit] == :infinity, do: scalars, else: Enum.take(scalars, opts[:limit])

    %__MODULE__{
      rows: rows(shown),
      more: length(scalars) - length(shown),
      chains: fit.options.chains,
      draws: draws,
      status: fit.status,
      divergences: Fit.divergences(fit),
      seconds: fit.seconds
    }
  end

  defp tensors(fit, nil), do: tensors(fit, Fit.names(fit))
  defp tensors(fit, names), do: Enum.map(names, &{to_string(&1), Fit.tensor(fit, &1)})

  defp scalars({name, tensor}) do
    [_chains, _draws | shape] = Tuple.to_list(Tensor.shape(tensor))
    for {index, place} <- shape |> indices() |> Enum.with_index(), do: {name, tensor, index, place}
  end

  defp indices([]), do: [[]]
  defp indices([size | rest]), do: for(i <- 0..(size - 1)//1, tail <- indices(rest), do: [i | tail])

  # On all cores: with many draws a row takes a while.
  defp rows(scalars) do
    for {:ok, row} <- Task.async_stream(scalars, &row/1, timeout: :infinity), do: row
  end

  defp row({variable, tensor, index, place}) do
    chains = column(tensor, place)

    %{
      name: if(index == [], do: variable, else: "#{variable}[#{Enum.join(index, ", ")}]"),
      variable: variable,
      index: index,
      mean: Diagnostics.mean(chains),
      sd: Diagnostics.sd(chains),
      q5: Diagnostics.quantile(chains, 0.05),
      q95: Diagnostics.quantile(chains, 0.95),
      mcse_mean: Diagnostics.mcse_mean(chains),
      ess_bulk: Diagnostics.ess_bulk(chains),
      ess_tail: Diagnostics.ess_tail(chains),
      r_hat: Diagnostics.r_hat(chains)
    }
  end

  # The draws of one scalar, cut out of the rows as bytes, so that a large variable is not read as a whole for each.
  defp column(tensor, place) do
    {chains, draws} = {elem(tensor.shape, 0), elem(tensor.shape, 1)}
    row = div(byte_size(tensor.data), chains * draws)
    size = Tensor.Type.byte_size(tensor.type, 1)

    bytes =
      for <<one_draw::binary-size(row) <- tensor.data>>,
        into: <<>>,
        do: binary_part(one_draw, place * size, size)

    bytes |> Tensor.from_binary(tensor.type, {chains, draws}) |> Tensor.to_list()
  end

  @doc false
  @spec to_text(t(), String.t()) :: String.t()
  def to_text(%__MODULE__{} = summary, label) do
    lines = if summary.rows == [], do: [], else: table(summary.rows)
    more = if summary.more > 0, do: ["... #{summary.more} more"], else: []
    Enum.join(["##{label}<#{headline(summary)}" | Enum.map(lines ++ more, &("  " <> &1))] ++ [">"], "\n")
  end

  defp headline(summary) do
    [
      "#{count(summary.chains, "chain")} x #{count(summary.draws, "draw")}",
      summary.status && Atom.to_string(summary.status),
      count(summary.divergences, "divergence"),
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
    [row.name | estimates] ++ [number(row.mcse_mean, places + 1) | sizes] ++ [number(row.r_hat, 2)]
  end

  defp places(error) when is_float(error) and error > 0, do: max(0, -floor(:math.log10(error)))
  defp places(_none), do: 3

  defp number(:nan, _places), do: "NaN"
  defp number(:infinity, _places), do: "Inf"

  defp number(value, places) do
    if abs(value) >= 1.0e8 or places > 8,
      do: :erlang.float_to_binary(value, scientific: 3),
      else: fixed(value, places)
  end

  # Without the sign of a zero that is only so small.
  defp fixed(value, places) do
    text = :erlang.float_to_binary(value, decimals: places)
    if String.match?(text, ~r/^-0(\.0*)?$/), do: String.trim_leading(text, "-"), else: text
  end

  defimpl Inspect do
    def inspect(summary, _opts), do: Nutkin.Summary.to_text(summary, "Nutkin.Summary")
  end
end
