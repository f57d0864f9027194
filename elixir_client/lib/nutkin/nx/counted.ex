defmodule Nutkin.Nx.Counted do
  @moduledoc false
  # Loops whose number of steps can be told: one of the values that they carry starts from an integer, changes by one in
  # each step, and is compared with one.

  alias Nutkin.Nx.Expression

  @mirrored %{less: :greater, greater: :less, less_equal: :greater_equal, greater_equal: :less_equal}

  @doc "The number of steps of `while`, nil where it depends on what is computed, or there is no end."
  @spec steps([term()]) :: non_neg_integer() | nil
  def steps([initial, _argument, condition, body]) do
    with {relation, place, limit} <- compared(condition),
         {:number, start} <- read(leaf(initial, place)),
         {:change, change} <- change(leaf(body, place), place) do
      count(relation, limit - start, change)
    else
      _ -> nil
    end
  end

  defp compared(condition) do
    with relation when is_map_key(@mirrored, relation) <- Expression.op(condition),
         [left, right] <- Expression.args(condition) do
      case {read(left), read(right)} do
        {{:parameter, place}, {:number, limit}} -> {relation, place, limit}
        {{:number, limit}, {:parameter, place}} -> {@mirrored[relation], place, limit}
        _ -> nil
      end
    end
  end

  defp change(t, place) do
    with [left, right] <- Expression.args(t) do
      case {Expression.op(t), read(left), read(right)} do
        {:add, {:number, change}, {:parameter, ^place}} -> {:change, change}
        {:add, {:parameter, ^place}, {:number, change}} -> {:change, change}
        {:subtract, {:parameter, ^place}, {:number, change}} -> {:change, -change}
        _ -> nil
      end
    end
  end

  defp read(t) do
    case {Expression.op(t), Expression.args(t)} do
      {:constant, [number]} when is_integer(number) -> {:number, number}
      {:parameter, [place]} -> {:parameter, place}
      _ -> nil
    end
  end

  defp leaf(container, place), do: container |> Expression.leaves() |> Enum.at(place)

  # Steps as long as start + k change relates to the limit, where `distance` is from the start to the limit.
  defp count(:less, distance, _change) when distance <= 0, do: 0
  defp count(:less, distance, change) when change > 0, do: div(distance - 1, change) + 1
  defp count(:less_equal, distance, change), do: count(:less, distance + 1, change)
  defp count(:greater, distance, change), do: count(:less, -distance, -change)
  defp count(:greater_equal, distance, change), do: count(:less, 1 - distance, -change)
  defp count(_relation, _distance, _change), do: nil
end
