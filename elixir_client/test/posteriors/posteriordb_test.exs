defmodule Nutkin.PosteriordbTest do
  @moduledoc """
  The models of examples/posteriordb fit their data and their reference; a few are sampled here, all of them by
  `make posteriordb`.
  """

  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Model
  alias Nutkin.Test.{Agreement, References}

  @moduletag :capture_log
  @moduletag timeout: 300_000

  test "every reference has a model, and every model a reference" do
    assert Posteriordb.models() |> Map.keys() |> Enum.sort() == References.posteriordb()
  end

  for name <- References.posteriordb() do
    @tag name: name
    test "#{name} has the slots of its data and the parameters of its reference", %{name: name} do
      model = Posteriordb.models()[name]
      {data, expected} = References.posteriordb(name)
      assert Model.slots(model) -- Map.keys(data) == []

      drawn = for %{"kind" => kind, "name" => name} <- model.nodes, kind in ~w(rv deterministic), do: name
      assert Enum.uniq(for {scalar, _, _, _} <- expected, do: hd(String.split(scalar, "["))) -- drawn == []
    end
  end

  defp sample(name, data) do
    worker = start_worker!(port_options())
    model = Posteriordb.models()[name]
    {:ok, fit} = Nutkin.sample(model, data: Map.take(data, Model.slots(model)), seed: 1, worker: worker)
    assert fit.status == :complete
    fit
  end

  for name <- ~w(eight_schools-eight_schools_noncentered earnings-logearn_height sblrc-blr) do
    @tag :port
    @tag name: name
    test "#{name} has its posterior", %{name: name} do
      {data, expected} = References.posteriordb(name)
      assert name |> sample(data) |> Agreement.compare(expected) |> Agreement.faults() == []
    end
  end

  @tag :port
  test "a posterior that is not that of the reference is found out" do
    {data, expected} = References.posteriordb("kidiq-kidscore_momiq")
    fit = sample("kidiq-kidscore_momiq", data)
    faults = &(fit |> Agreement.compare(&1) |> Agreement.faults())
    assert faults.(expected) == []

    [{name, mean, sd, error} | others] = expected
    assert [fault] = faults.([{name, mean + sd / 3, sd, error} | others])
    assert fault =~ "the mean of #{name} is"
    assert [fault] = faults.([{name, mean, sd * 1.2, error} | others])
    assert fault =~ "the sd of #{name} is 0.8"
    assert_raise KeyError, fn -> faults.([{"no_such", mean, sd, error}]) end

    stuck = for found <- Agreement.compare(fit, expected), do: %{found | r_hat: 1.02}
    assert length(Agreement.faults(stuck)) == length(expected)
    assert [fault] = Agreement.faults([%{hd(stuck) | r_hat: :nan}])
    assert fault =~ "the R-hat of #{name} is nan"
  end
end
