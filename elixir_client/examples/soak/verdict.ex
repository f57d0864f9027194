defmodule Soak.Verdict do
  @moduledoc """
  Whether what was measured is flat: the mean of the last quarter of the samples may be above that of the second one by the
  tolerance of each quantity, and not by more.
  """

  @mib 1_048_576

  # more: what the late mean may be above the early one, of which `share` is a part
  # from: the minutes that a soak must last, where something fills up before it is flat
  @quantities [
    memory: [what: "memory of the BEAM", unit: :mib, share: 0.05, more: 5 * @mib],
    binaries: [what: "binaries of the BEAM", unit: :mib, share: 0.0, more: 5 * @mib],
    atoms: [what: "atoms", unit: :count, share: 0.0, more: 20],
    processes: [what: "processes of the BEAM", unit: :count, share: 0.0, more: 5],
    ports: [what: "ports", unit: :count, share: 0.0, more: 1],
    descriptors: [what: "file descriptors of the BEAM", unit: :count, share: 0.0, more: 2],
    children: [what: "processes of the operating system below the BEAM", unit: :count, share: 0.0, more: 1],
    zombies: [what: "zombies among them", unit: :count, share: 0.0, more: 0.25],
    requests: [what: "open requests", unit: :count, share: 0.0, more: 3],
    spared_resident: [
      what: "resident memory of the first program",
      unit: :mib,
      share: 0.1,
      more: 20 * @mib,
      from: 10
    ],
    spared_descriptors: [what: "file descriptors of the first program", unit: :count, share: 0.0, more: 3],
    spared_threads: [what: "threads of the first program", unit: :count, share: 0.0, more: 10],
    killed_resident: [
      what: "resident memory of the second program",
      unit: :mib,
      share: 0.2,
      more: 20 * @mib,
      from: 10
    ],
    killed_descriptors: [what: "file descriptors of the second program", unit: :count, share: 0.0, more: 3],
    killed_threads: [what: "threads of the second program", unit: :count, share: 0.0, more: 10]
  ]

  @type row :: %{
          name: atom(),
          what: String.t(),
          unit: :mib | :count,
          early: float(),
          late: float(),
          most: number(),
          allowed: float(),
          flat: boolean() | :too_short
        }

  @doc """
  One row for each quantity of the samples, which are in the order of their times. Without a sample in one of the two quarters
  it is not flat.
  """
  @spec rows([Soak.Measures.t()], number()) :: [row()]
  def rows(samples, minutes) do
    for {name, quantity} <- @quantities do
      early = samples |> quarter(2) |> values(name)
      late = samples |> quarter(4) |> values(name)
      row = %{name: name, what: quantity[:what], unit: quantity[:unit]}

      if early == [] or late == [] do
        Map.merge(row, %{early: 0.0, late: 0.0, most: 0, allowed: 0.0, flat: false})
      else
        allowed = mean(early) * (1 + quantity[:share]) + quantity[:more]

        Map.merge(row, %{
          early: mean(early),
          late: mean(late),
          most: samples |> values(name) |> Enum.max(),
          allowed: allowed,
          flat: flat(mean(late) <= allowed, minutes >= Keyword.get(quantity, :from, 0))
        })
      end
    end
  end

  @doc """
  What speaks against a soak, as sentences: quantities that are not flat, then conditions that do not hold.

      iex> Soak.Verdict.faults([], [{"no worker has crashed", true}, {"no request is open", false}])
      ["not true: no request is open"]
  """
  @spec faults([row()], [{String.t(), boolean()}]) :: [String.t()]
  def faults(rows, conditions) do
    risen =
      for %{flat: false} = row <- rows do
        "#{row.what}: #{show(row.late, row.unit)} late, #{show(row.early, row.unit)} early, " <>
          "at most #{show(row.allowed, row.unit)} was expected"
      end

    risen ++ for {condition, false} <- conditions, do: "not true: #{condition}"
  end

  @doc """
  A number of a row.

      iex> Soak.Verdict.show(1_572_864, :mib)
      "1.5 MiB"
      iex> Soak.Verdict.show(12.0, :count)
      "12.0"
  """
  @spec show(number(), :mib | :count) :: String.t()
  def show(bytes, :mib), do: show(bytes / @mib, :count) <> " MiB"
  def show(count, :count), do: :erlang.float_to_binary(count / 1, decimals: 1)

  defp flat(_below?, false), do: :too_short
  defp flat(below?, true), do: below?

  defp quarter(samples, n) do
    count = length(samples)
    first = div(count * (n - 1), 4)
    Enum.slice(samples, first, div(count * n, 4) - first)
  end

  defp values(samples, name), do: for(%{^name => value} <- samples, do: value)
  defp mean(values), do: Enum.sum(values) / length(values)
end
