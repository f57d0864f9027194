defmodule Soak.VerdictTest do
  use ExUnit.Case, async: true

  alias Soak.{Report, Verdict}

  doctest Verdict

  @names [:memory, :binaries, :atoms, :processes, :ports, :descriptors, :children, :zombies, :requests] ++
           for(
             program <- [:spared, :killed],
             what <- [:resident, :descriptors, :threads],
             do: :"#{program}_#{what}"
           )

  @mib 1_048_576

  # Forty samples, so that a quarter is ten; `of` gives the value of one quantity in the sample of a place.
  defp samples(name \\ nil, of \\ nil) do
    for place <- 0..39 do
      sample = Map.new(@names, &{&1, 100 * @mib})
      if name, do: %{sample | name => of.(place)}, else: sample
    end
  end

  defp faults(samples, minutes \\ 30), do: samples |> Verdict.rows(minutes) |> Verdict.faults([])

  test "every quantity is judged, and what stays as it was is flat" do
    assert Enum.sort(Enum.map(Verdict.rows(samples(), 30), & &1.name)) == Enum.sort(@names)
    assert faults(samples()) == []
  end

  for name <- @names do
    test "#{name} that rises is a fault" do
      rising = samples(unquote(name), &(100 * @mib * (1 + &1)))
      assert [fault] = faults(rising)
      assert fault =~ "was expected"
    end
  end

  test "only what is in the last quarter counts, against the second" do
    assert faults(samples(:atoms, &if(&1 < 10, do: 1, else: 500))) == []
    assert faults(samples(:atoms, &if(&1 in 20..29, do: 10_000, else: 500))) == []
    assert [_] = faults(samples(:atoms, &if(&1 in 10..19, do: 479, else: 500)))
    assert faults(samples(:atoms, &if(&1 in 10..19, do: 480, else: 500))) == []

    assert %{early: 480.0, late: 500.0, most: 500, allowed: 500.0} =
             row(:atoms, &if(&1 in 10..19, do: 480, else: 500))
  end

  defp row(name, of), do: samples(name, of) |> Verdict.rows(30) |> Enum.find(&(&1.name == name))

  test "a tolerance has a part that is a share, and a part that is not" do
    late = fn mib -> &(@mib * if(&1 < 30, do: 400, else: mib)) end
    assert faults(samples(:spared_resident, late.(460))) == []
    assert [fault] = faults(samples(:spared_resident, late.(461)))

    assert fault ==
             "resident memory of the first program: 461.0 MiB late, 400.0 MiB early, at most 460.0 MiB was expected"
  end

  test "caches of a program are not full after few minutes" do
    rising = samples(:spared_resident, &(100 * @mib * (1 + &1)))
    assert faults(rising, 9) == []
    assert Enum.find(Verdict.rows(rising, 9), &(&1.name == :spared_resident)).flat == :too_short
    assert [_] = faults(rising, 10)
    assert [_] = faults(samples(:atoms, &(1000 * &1)), 1)
  end

  test "what was not measured is not flat" do
    assert length(faults([])) == length(@names)

    gone =
      for {sample, place} <- Enum.with_index(samples()),
          do: if(place < 30, do: sample, else: Map.delete(sample, :killed_threads))

    assert [fault] = faults(gone)
    assert fault =~ "threads of the second program"
    # A program that is being replaced is missing now and then.
    assert faults(List.replace_at(samples(), 35, Map.delete(hd(samples()), :killed_threads))) == []
  end

  test "a page says what does not hold" do
    soak = %Soak{
      minutes: 30,
      seed: 1,
      versions: %{nutkin: "0.1.0"},
      counts: %{{:sample, :complete} => 5},
      kills: %{"KILL" => 2}
    }

    page = fn soak, samples -> IO.iodata_to_binary(Report.page(soak, Verdict.rows(samples, 30))) end
    refute page.(%{soak | conditions: [{"nothing is open", true}]}, samples()) =~ "NO"
    assert page.(%{soak | conditions: [{"nothing is open", false}]}, samples()) =~ "- nothing is open: NO"
    text = page.(soak, samples(:atoms, &(1000 * &1)))
    assert text =~ "| atoms | 14500.0 | 34500.0 | 39000.0 | 14520.0 | NO |"
    assert text =~ "| sample | 5 | 5 complete |"
    assert text =~ "2 SIGKILL"
  end
end
