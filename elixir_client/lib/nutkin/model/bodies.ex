defmodule Nutkin.Model.Bodies do
  @moduledoc false
  # Bodies that share what they capture: both of a loop, or of a choice.

  @doc "The same body, whose captures, behind `count` arguments of its own, are among all those."
  @spec with_captures(map(), non_neg_integer(), [non_neg_integer()], [non_neg_integer()]) :: map()
  def with_captures(body, count, own, all) do
    places =
      Map.new(Enum.with_index(own), fn {index, place} -> {count + place, count + position(all, index)} end)

    update_in(body["nodes"], fn nodes ->
      for node <- nodes do
        case node do
          %{"kind" => "argument", "index" => index} -> %{node | "index" => Map.get(places, index, index)}
          other -> other
        end
      end
    end)
  end

  defp position(list, item), do: Enum.find_index(list, &(&1 == item))
end
