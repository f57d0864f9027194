defmodule Nutkin.Model.Covariance do
  @moduledoc false
  # Covariance functions of Gaussian processes, as operations of the model. The formulas and names are Stan's (Functions
  # Reference, "Gaussian Process Covariance Functions").

  use Nutkin.Model.Language

  alias Nutkin.Model.{Node, Option}

  @type points :: Nutkin.Model.Language.value() | tuple()

  @doc "sigma² f(x, y), for all pairs of points, with `:jitter` on its diagonal."
  @spec matrix(String.t(), points(), term(), (points(), points() -> Node.t()), keyword()) :: Node.t()
  def matrix(name, x, sigma, fun, opts) do
    opts = Option.check_names!(opts, [:to, :jitter], name)
    values = sigma ** 2 * fun.(x, Keyword.get(opts, :to, x))

    case Keyword.fetch(opts, :jitter) do
      {:ok, jitter} -> values + make_diagonal(coordinate(x) * 0.0 + jitter)
      :error -> values
    end
  end

  @doc "The function of two sets of points that a covariance function multiplies by sigma²."
  @spec function(atom(), [term()]) :: (points(), points() -> Node.t())
  def function(:gp_exp_quad_cov, [scale]), do: &exp(-0.5 * squared_distances(&1, &2, scale))
  def function(:gp_exponential_cov, [scale]), do: &exp(-distances(&1, &2) / scale)

  def function(:gp_matern32_cov, [scale]) do
    fn x, y ->
      r = :math.sqrt(3) * distances(x, y) / scale
      (1 + r) * exp(-r)
    end
  end

  def function(:gp_matern52_cov, [scale]) do
    fn x, y ->
      r = :math.sqrt(5) * distances(x, y) / scale
      (1 + r + r ** 2 / 3) * exp(-r)
    end
  end

  def function(:gp_rational_quadratic_cov, [scale, alpha]) do
    &exp(-alpha * log1p(squared_distances(&1, &2, scale) / (2 * alpha)))
  end

  def function(:gp_periodic_cov, [scale, period]) do
    fn x, y -> exp(-2 * pairs(x, y, &(sin(:math.pi() * (&1 - &2) / period) ** 2)) / scale ** 2) end
  end

  @doc "The squared distances of points: coordinates are divided by `scale`, which broadcasts to a pair of points."
  @spec squared_distances(points(), points(), term()) :: Node.t()
  def squared_distances(x, y, scale) do
    pairs(x, y, fn a, b -> ((a - b) / scale) ** 2 end)
  end

  @doc "The distances, whose gradient at equal points is 0."
  @spec distances(points(), points()) :: Node.t()
  def distances(x, y) do
    squares = squared_distances(x, y, 1.0)
    equal? = squares == 0.0
    select(equal?, 0.0, sqrt(select(equal?, 1.0, squares)))
  end

  @doc "The sum over coordinates of a function of those of two points."
  @spec pairs(points(), points(), (Node.t(), Node.t() -> Node.t())) :: Node.t()
  def pairs(x, y, fun) do
    for({a, b} <- Enum.zip(coordinates(x), coordinates(y)), do: fun.(new_axis(a, 1), new_axis(b, 0)))
    |> Enum.reduce(&+/2)
  end

  defp coordinates(tuple) when is_tuple(tuple), do: Tuple.to_list(tuple)
  defp coordinates(vector), do: [vector]

  defp coordinate(x), do: x |> coordinates() |> hd() |> tensor()
end
