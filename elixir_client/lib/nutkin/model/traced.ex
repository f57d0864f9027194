defmodule Nutkin.Model.Traced do
  @moduledoc false
  # Functions over Nx in a model. Nx traces a function for the shapes of its arguments, which are known only with the
  # data: until then the function itself is a node, and when the model is run, what Nx has traced takes its place.

  alias Nutkin.{Error, Model}
  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Container, Node, References}
  alias Nutkin.Nx.{Expression, Tracing, Translation}
  alias Nutkin.Tensor.Type

  @compile {:no_warn_undefined, Nx}

  # What a prediction may ask for.
  @sinks ~w(rv observe deterministic data)

  @typedoc "The type and the flat shape of nodes, as the worker tells them: of these of a model, with its data."
  @type shapes ::
          (Model.t(), [non_neg_integer()] ->
             {:ok, [%{shape: tuple(), type: String.t()}]} | {:error, Error.t()})

  @doc "The results of a function of arguments, which are containers of values."
  @spec write(function(), [term()], String.t(), pos_integer(), pos_integer()) :: [Node.t()]
  def write(fun, arguments, what, count, max_steps) do
    {values, forms} = arguments |> Enum.map(&Container.flatten/1) |> Enum.unzip()

    references =
      for {value, place} <- Enum.with_index(Enum.concat(values), 1),
          do: Builder.reference(value, "tensor #{place} of the arguments of #{what}")

    Builder.outermost!("#{what} is a function over Nx")

    fields = %{
      "kind" => "nx",
      "args" => references,
      "function" => fun,
      "forms" => forms,
      "count" => count,
      "what" => what,
      "max_steps" => max_steps
    }

    Builder.several(fields, count)
  end

  @doc "All nodes of a kind by their names: atoms, as far as there are such."
  @spec named(String.t()) :: %{(atom() | String.t()) => Node.t()}
  def named(kind), do: for({name, node} <- Builder.all(kind), into: %{}, do: {key(name), node})

  # A function that asks for p.mu has the atom.
  defp key(name) do
    String.to_existing_atom(name)
  rescue
    ArgumentError -> name
  end

  @doc """
  The model without the functions whose data are missing and that only factors need, and without these: for predictions,
  in which factors have no part.
  """
  @spec without_missing(Model.t(), [String.t()]) :: Model.t()
  def without_missing(%Model{nodes: nodes} = model, given) do
    case lacking(model, given) do
      [] ->
        model

      lacking ->
        dropped = Enum.reduce(Enum.with_index(nodes), MapSet.new(lacking), &with_dependents/2)
        kept = for index <- 0..(length(nodes) - 1), not MapSet.member?(dropped, index), do: index
        {nodes, _places} = References.closure(nodes, kept)
        %{model | nodes: nodes}
    end
  end

  defp lacking(%Model{nodes: nodes} = model, given) do
    functions = for {%{"kind" => "nx"} = node, index} <- Enum.with_index(nodes), do: {node, index}
    sinks = for {%{"kind" => kind}, index} when kind in @sinks <- Enum.with_index(nodes), do: index
    {_kept, needed} = if functions == [], do: {[], %{}}, else: References.closure(nodes, sinks)

    for {node, index} <- functions,
        not is_map_key(needed, index),
        {kept, _places} = References.closure(nodes, node["args"]),
        Model.slots(%{model | nodes: kept}) -- given != [],
        do: index
  end

  defp with_dependents({node, index}, dropped) do
    if Enum.any?(References.of(node), &MapSet.member?(dropped, &1)),
      do: MapSet.put(dropped, index),
      else: dropped
  end

  @doc """
  The model in which all functions are traced, where there are some.
  """
  @spec resolve(Model.t(), shapes()) :: {:ok, Model.t()} | {:error, Error.t()}
  def resolve(%Model{nodes: nodes} = model, shapes) do
    case Enum.find_index(nodes, &(&1["kind"] == "nx")) do
      nil -> {:ok, model}
      place -> with {:ok, model} <- resolve(model, place, shapes), do: resolve(model, shapes)
    end
  end

  defp resolve(model, place, shapes) do
    {before, [function | behind]} = Enum.split(model.nodes, place)
    {needed, places} = References.closure(before, function["args"])
    asked = Enum.map(function["args"], &Map.fetch!(places, &1))

    with {:ok, forms} <- shapes.(%{model | nodes: needed}, asked) do
      {:ok, replace(model, before, function, place, behind, forms)}
    end
  rescue
    error in InvalidModel -> {:error, error}
  end

  defp replace(model, before, function, place, behind, forms) do
    graph = Tracing.graph(function["function"], arguments(function, forms), function["what"])
    check!(graph, function)

    {nodes, blobs, results} =
      Builder.extend(before, model.blobs, fn node ->
        parameters =
          for {reference, form} <- Enum.zip(function["args"], forms),
              do: {node.(reference), Tuple.to_list(form.shape)}

        options = [types: :model, max_steps: function["max_steps"]]
        for {node, _shape} <- Translation.write(graph, parameters, options), do: node.index
      end)

    %{model | nodes: nodes ++ moved(behind, place, results, length(nodes)), blobs: blobs}
  end

  # The nodes behind the function, whose results are found where they are now.
  defp moved(behind, place, results, next) do
    {kept, _places} =
      behind
      |> Enum.with_index(place + 1)
      |> Enum.flat_map_reduce({%{}, next}, fn {node, index}, {places, next} ->
        case node do
          %{"kind" => "elem", "of" => ^place, "index" => result} ->
            {[], {Map.put(places, index, Enum.fetch!(results, result)), next}}

          node ->
            {[References.map(node, &Map.get(places, &1, &1))], {Map.put(places, index, next), next + 1}}
        end
      end)

    kept
  end

  defp arguments(%{"forms" => forms}, specs) do
    Tracing.loaded!()

    templates =
      for %{shape: shape, type: type} <- specs do
        {:ok, type} = Type.fetch(type)
        Nx.template(shape, type)
      end

    {arguments, []} =
      Enum.map_reduce(forms, templates, fn form, templates ->
        {own, rest} = Enum.split(templates, Container.size(form))
        {Container.restore(own, form), rest}
      end)

    arguments
  end

  defp check!(graph, %{"count" => count, "what" => what}) do
    found = length(Expression.leaves(graph))

    if found != count do
      raise InvalidModel,
        message: "the function of #{what} gives another number of tensors than is said",
        node: what,
        expected: "#{count}",
        found: "#{found}",
        hint: "the option results: says how many there are"
    end
  end

  @doc "How the call of a function is written."
  @spec text(map(), [String.t()]) :: String.t()
  def text(%{"function" => fun}, arguments), do: "nx(#{inspect(fun)}, #{Enum.join(arguments, ", ")})"
end
