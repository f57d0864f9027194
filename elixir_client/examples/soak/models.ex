defmodule Soak.Models do
  @moduledoc """
  What a soak samples: six small models with random data and random options.
  """

  import Nutkin.Model

  # Few lengths, so that programs come back from the caches; now and then one that was not there before.
  @lengths [1, 8, 20, 50]

  @typedoc "A model, and data for it."
  @type subject :: {Nutkin.Model.t(), map()}

  @doc """
  A model with its data.
  """
  @spec random() :: subject()
  def random do
    {model, data} = Enum.random([mean(), schools(), line(), counts(), mixture(), growing()])
    {model, data.(length())}
  end

  @doc """
  The same model with two sets of data, which may be of different lengths.
  """
  @spec random_pair() :: {Nutkin.Model.t(), map(), map()}
  def random_pair do
    {model, data} = Enum.random([mean(), schools(), line(), counts(), growing()])
    {model, data.(length()), data.(length())}
  end

  @doc """
  The run whose draws are to be the same, whenever it is repeated.
  """
  @spec fixed() :: {Nutkin.Model.t(), keyword()}
  def fixed do
    {model, _data} = schools()
    data = %{y: [28, 8, -3, 7, -1, 1, 18, 12], sigma: [15, 10, 16, 11, 9, 11, 10, 18]}
    {model, data: data, draws: 700, seed: 5}
  end

  @doc """
  Options of sampling. Each combination of some of them is a program of its own, so these have few values.
  """
  @spec options() :: keyword()
  def options do
    [
      chains: Enum.random(1..4),
      draws: Enum.random([1, 50, 300, 1000, 5000]),
      warmup: Enum.random([100, 300, 1000]),
      seed: :rand.uniform(1_000_000_000),
      adaptation: Enum.random([:pooled, :pooled, :windowed]),
      mass_matrix: Enum.random([:diagonal, :diagonal, :diagonal, :dense]),
      precision: Enum.random([:f64, :f64, :f64, :f32]),
      thin: Enum.random([1, 1, 3]),
      keep_warmup: Enum.random([false, false, true]),
      credit: Enum.random([0, 1, 16, 64]),
      checkpoint_every: Enum.random([20, 200, 1000, nil])
    ]
  end

  @doc """
  What may end a run before it has its draws.
  """
  @spec stop_rule() :: keyword()
  def stop_rule do
    Enum.random([[], [], [max_time: Enum.random([5, 300])], [target_ess: 300], [max_rhat: 1.05]])
  end

  defp length, do: if(:rand.uniform(20) == 1, do: Enum.random(1..200), else: Enum.random(@lengths))

  defp mean do
    model =
      model do
        y = data(:y, type: :f64)
        mu <~ normal(0, 10)
        observe(:obs, normal(mu, 1), y)
      end

    {model, &%{y: numbers(&1)}}
  end

  defp schools do
    model =
      model do
        y = data(:y, type: :f64)
        sigma = data(:sigma, type: :f64)
        mu <~ normal(0, 5)
        tau <~ half_cauchy(5)
        theta <~ normal(mu, tau, shape: {8}, centered: false)
        observe(:obs, normal(theta, sigma), y)
      end

    {model, fn _length -> %{y: numbers(8), sigma: Enum.map(numbers(8), &(abs(&1) + 1))} end}
  end

  defp line do
    model =
      model do
        x = data(:x, type: :f64)
        y = data(:y, type: :f64)
        a <~ normal(0, 5)
        b <~ normal(0, 5)
        sigma <~ half_normal(2)
        observe(:obs, normal(a + b * x, sigma), y)
      end

    {model, &%{x: numbers(&1), y: numbers(&1)}}
  end

  defp counts do
    model =
      model do
        x = data(:x, type: :f64)
        n = data(:n, type: :s64)
        rate <~ normal(0, 1)
        slope <~ normal(0, 0.1)
        observe(:obs, poisson(exp(rate + slope * x)), n)
      end

    {model, &%{x: numbers(&1), n: Enum.map(numbers(&1), fn y -> round(abs(y)) end)}}
  end

  defp mixture do
    model =
      model do
        y = data(:y, type: :f64)
        mu <~ normal(0, 2, shape: {2}, transform: :ordered)
        theta <~ beta(5, 5)
        observe(:obs, mixture(stack([theta, 1 - theta]), normal(mu, 1)), y)
      end

    {model, &%{y: numbers(&1)}}
  end

  # One program for all lengths up to the next size.
  defp growing do
    model =
      model do
        y = data(:y, grows: :rows, type: :f64)
        mu <~ normal(0, 10)
        sigma <~ half_normal(5)
        observe(:obs, normal(mu, sigma), y)
      end

    {model, fn _length -> %{y: numbers(Enum.random(1..300))} end}
  end

  defp numbers(count), do: for(_ <- 1..count, do: :rand.normal(1.0, 4.0))
end
