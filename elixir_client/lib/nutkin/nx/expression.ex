defmodule Nutkin.Nx.Expression do
  @moduledoc false
  # The nodes of a function that Nx has traced, `Nx.Defn.Expr` in an `Nx.Tensor`, read by their fields alone: no Nx is
  # needed to look at them.
  #
  # The tensor around an expression is no part of its identity: names and vectorized axes, and the shape that goes with
  # them, may differ from use to use of the same id. The value of a use has its flat shape, and its elements in order.

  alias Nutkin.Tensor.Type

  @type t :: struct()
  @type branch :: {id :: term(), place :: non_neg_integer()}

  defguard is_expression(term)
           when is_map(term) and is_map_key(term, :data) and
                  :erlang.map_get(:__struct__, :erlang.map_get(:data, term)) == Nx.Defn.Expr

  @spec id(t()) :: term()
  def id(t), do: t.data.id

  @spec op(t()) :: atom()
  def op(t), do: t.data.op

  @spec args(t()) :: [term()]
  def args(t), do: t.data.args

  @doc "The name of the type that Nx announces, or `:several`."
  @spec type(t()) :: String.t() | :several
  def type(%{type: {:tuple, _count}}), do: :several
  def type(%{type: type}), do: Type.name(type)

  @doc "The sizes of the vectorized axes, and of the others."
  @spec flat_shape(t()) :: [pos_integer()]
  def flat_shape(t), do: Enum.map(t.vectorized_axes, &elem(&1, 1)) ++ Tuple.to_list(t.shape)

  @doc "The expressions in a container, or anywhere in a term, in their order; maps by their keys."
  @spec leaves(term()) :: [t()]
  def leaves(t) when is_expression(t), do: [t]
  def leaves(list) when is_list(list), do: Enum.flat_map(list, &leaves/1)
  def leaves(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> leaves()
  def leaves(%_{} = struct), do: struct |> Map.from_struct() |> leaves()
  def leaves(%{} = map), do: map |> Enum.sort() |> Enum.flat_map(fn {_key, value} -> leaves(value) end)
  def leaves(_other), do: []

  @doc "The expressions that are to be known for this one, and the branch in which it alone needs them, if any."
  @spec operands(t()) :: [{t(), branch() | nil}]
  def operands(t), do: operands(op(t), args(t), t)

  defp operands(op, _args, _t) when op in [:parameter, :constant, :tensor, :fun], do: []

  defp operands(:cond, [clauses, last], t) do
    {predicates, bodies} = Enum.unzip(clauses)

    always(predicates) ++
      for {body, place} <- Enum.with_index(bodies ++ [last]), leaf <- leaves(body), do: {leaf, {id(t), place}}
  end

  # The others belong to the bodies, which have parameters of their own.
  defp operands(:while, [initial | _bodies], _t), do: always(initial)
  defp operands(:block, [_struct, inputs | _], _t), do: always(inputs)
  defp operands(:optional, [call | _], _t), do: always(args(call))
  defp operands(:metadata, [inner, %{custom_grad: {inputs, _fun}}], _t), do: always([inner, inputs])
  defp operands(:metadata, [inner, _metadata], _t), do: always(inner)
  defp operands(op, [inner | _], _t) when op in [:io_call, :hook], do: always(inner)
  defp operands(:attach_token, [_token, inner], _t), do: always(inner)
  defp operands(:runtime_call, _args, _t), do: []
  defp operands(_op, args, _t), do: always(args)

  defp always(term), do: for(leaf <- leaves(term), do: {leaf, nil})
end
