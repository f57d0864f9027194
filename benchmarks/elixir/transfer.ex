defmodule Benchmarks.Transfer do
  @moduledoc """
  A design matrix of 80 MB on its way from Elixir to the first gradient.
  """

  import Nutkin.Model

  alias Benchmarks.Line
  alias Nutkin.Tensor

  @rows 100_000
  @columns 100

  @doc """
  Reads a line for each repeat, and prints the seconds of `Nutkin.log_density/3` on a logistic regression that is compiled,
  with a matrix that the worker has not seen.
  """
  @spec main([String.t()]) :: :ok
  def main([]) do
    {:ok, _} = Application.ensure_all_started(:nutkin)
    {:ok, _} = Nutkin.start_link()

    model =
      model do
        alpha <~ normal(0, 1)
        beta <~ normal(0, 1, shape: {@columns})
        observe(:obs, bernoulli_logit(alpha + dot(data(:X), beta)), data(:y))
      end

    y = Tensor.from_binary(:binary.copy(<<0::64, 1.0::float-little-64>>, div(@rows, 2)), :f64, {@rows})
    gradient(model, matrix(0), y)

    for {_line, repeat} <- Stream.with_index(IO.stream(:stdio, :line), 1) do
      x = matrix(repeat)
      {microseconds, _} = :timer.tc(fn -> gradient(model, x, y) end)
      Line.say(seconds: microseconds / 1.0e6, bytes: byte_size(x.data))
    end

    :ok
  end

  defp gradient(model, x, y) do
    Nutkin.log_density!(model, List.duplicate(0.01, @columns + 1), data: %{X: x, y: y})
  end

  # A row for each remainder, over and over: no matter for the transfer, and quickly made.
  defp matrix(seed) do
    block = for i <- 1..(@columns * 100), into: <<>>, do: <<:math.sin(i + seed)::float-little-64>>
    Tensor.from_binary(:binary.copy(block, div(@rows, 100)), :f64, {@rows, @columns})
  end
end
