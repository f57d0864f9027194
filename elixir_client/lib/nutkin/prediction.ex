defmodule Nutkin.Prediction do
  @moduledoc false
  # The request for what a model predicts from draws of its parameters.

  alias Nutkin.{Blob, Data, Fit, Model, Options, Resolution, Tensor}
  alias Nutkin.Error.InvalidData
  alias Nutkin.Model.Traced
  alias Nutkin.Worker.Request

  @typedoc "A fit, the draws of parameters by name, or `:prior` for none."
  @type source :: Fit.t() | %{optional(atom() | String.t()) => Tensor.source()} | :prior

  @doc """
  The request, and the options of its run, of whose `:chains` the draws decide.

  `of`: `:predictions` or `:log_likelihood`.
  """
  @spec request(Model.t(), source(), :predictions | :log_likelihood, Options.valid()) ::
          {:ok, Request.t(), Options.valid()} | {:error, Nutkin.Error.t()}
  def request(model, source, of, options) do
    with {:ok, data} <- Data.encode(model, options.data, :some),
         model = Traced.without_missing(model, Map.keys(data.addresses)),
         {:ok, model, data} <- Resolution.resolve(model, data, options),
         {:ok, tensors} <- tensors(source, Model.parameters(model) -- Map.get(options, :redraw, [])) do
      form = form(source, tensors, options)
      blobs = Map.new(tensors, fn {name, tensor} -> {name, blob(tensor)} end)

      body = %{
        model: Model.to_ir(model),
        data: data.addresses,
        posterior: Map.new(blobs, fn {name, blob} -> {name, {:bin, blob.sha}} end),
        options: options |> Options.to_wire() |> Map.merge(form) |> Map.merge(of(source, of))
      }

      blobs = for {_name, blob} <- blobs, into: data.blobs, do: {blob.sha, blob}

      {:ok, Request.new_run(:predict, body, blobs, options),
       options |> Map.put(:keep_warmup, false) |> Map.merge(form)}
    end
  end

  defp blob(tensor) do
    {:ok, blob} = Blob.cast(tensor)
    blob
  end

  # A prior draws all parameters anew.
  defp of(:prior, of), do: %{"of" => of, "redraw" => nil}
  defp of(_source, of), do: %{"of" => of}

  defp tensors(:prior, _parameters), do: {:ok, %{}}

  defp tensors(%Fit{} = fit, parameters) do
    if Enum.min(Fit.lengths(fit)) == 0 do
      {:error, InvalidData.exception(message: "the fit has no draws in every chain", hint: "sample again")}
    else
      {:ok, for(name <- Fit.names(fit), name in parameters, into: %{}, do: {name, Fit.tensor(fit, name)})}
    end
  end

  defp tensors(source, parameters) when is_map(source) and not is_struct(source) do
    Enum.reduce_while(source, {:ok, %{}}, fn {name, value}, {:ok, tensors} ->
      with {:parameter, true} <- {:parameter, to_string(name) in parameters},
           {:ok, %Tensor{} = tensor} <- Tensor.cast(value) do
        {:cont, {:ok, Map.put(tensors, to_string(name), tensor)}}
      else
        {:parameter, false} -> {:halt, {:error, unknown(name, parameters)}}
        {:error, error} -> {:halt, {:error, %{error | node: to_string(name)}}}
      end
    end)
  end

  defp tensors(other, _parameters) do
    {:error,
     InvalidData.exception(
       message: "there are no draws to predict from",
       expected: "a Nutkin.Fit, a map of draws by the names of parameters, or :prior",
       found: inspect(other, limit: 5, printable_limit: 100)
     )}
  end

  defp unknown(name, parameters) do
    InvalidData.exception(
      message: "#{name} is no parameter whose draws are needed",
      node: to_string(name),
      expected: if(parameters == [], do: "none", else: Enum.join(parameters, ", "))
    )
  end

  # How many chains and draws there are, also where no draw is needed.
  defp form(:prior, _tensors, options), do: Map.take(options, [:chains, :draws])

  defp form(%Fit{} = fit, _tensors, _options),
    do: %{chains: fit.options.chains, draws: Enum.min(Fit.lengths(fit))}

  defp form(_source, tensors, _options) do
    case Map.values(tensors) do
      [%Tensor{shape: shape} | _] when tuple_size(shape) >= 2 ->
        %{chains: elem(shape, 0), draws: elem(shape, 1)}

      # What else is wrong with them, the port says.
      _ ->
        %{chains: 1, draws: 1}
    end
  end
end
