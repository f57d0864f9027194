defmodule Nutkin.Model.Custom do
  @moduledoc false
  # A distribution whose log density is a function over Nx, of the value and of parameters.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Distribution, Node, Option, Traced}

  @enforce_keys [:fun, :parameters, :support, :opts]
  defstruct @enforce_keys

  @type t :: %__MODULE__{
          fun: (term(), term() -> term()),
          parameters: term(),
          support: atom(),
          opts: keyword()
        }

  # A constant density on the support, with its transforms.
  @flat %{real: {:flat, []}, positive: {:half_flat, []}, unit_interval: {:uniform, [lower: 0.0, upper: 1.0]}}

  @spec new(function(), term(), keyword()) :: t()
  def new(fun, parameters, opts) when is_function(fun, 2) do
    {support, opts} = Keyword.pop(opts, :support, :real)
    Option.to_wire!([support: support], [support: {:one_of, Map.keys(@flat)}], "custom")
    Option.check_names!(opts, [:name, :shape, :transform], "custom")
    %__MODULE__{fun: fun, parameters: parameters, support: support, opts: opts}
  end

  def new(fun, _parameters, _opts) do
    raise InvalidModel,
      message: "the log density of custom is no function of a value and of parameters",
      expected: "custom(fn x, p -> log_density end, parameters)",
      found: inspect(fun, limit: 5)
  end

  @doc "The distribution of a free variable without its density, which a factor adds."
  @spec flat(t()) :: Distribution.t()
  def flat(%__MODULE__{support: support, opts: opts}) do
    {family, args} = @flat[support]
    %Distribution{family: Atom.to_string(family), args: args, opts: Keyword.delete(opts, :name)}
  end

  @doc "The log density of a value."
  @spec log_density(t(), term(), String.t(), pos_integer()) :: Node.t()
  def log_density(%__MODULE__{fun: fun, parameters: parameters}, value, name, max_steps) do
    [density] = Traced.write(fun, [value, parameters], name, 1, max_steps)
    density
  end

  @doc "The term of an observed value, weighted and masked as other observations are."
  @spec observed(t(), term(), String.t(), keyword(), pos_integer()) :: Node.t()
  def observed(%__MODULE__{opts: []} = custom, value, name, opts, max_steps) do
    terms = log_density(custom, value, name, max_steps)
    terms = if opts[:weight], do: Builder.call("multiply", [opts[:weight], terms], %{}), else: terms
    terms = if opts[:mask], do: Builder.call("select", [opts[:mask], terms, 0.0], %{}), else: terms
    if opts[:reduce] == :mean, do: Builder.call("mean", [terms], %{}), else: terms
  end

  def observed(%__MODULE__{opts: [{option, _} | _]}, _value, name, _opts, _max_steps) do
    raise InvalidModel,
      message: "#{inspect(option)} does not apply to the observed #{name}",
      node: name,
      hint: "it is an option of free variables: x <~ custom(...)"
  end
end
