defmodule Nutkin.Model.Combination do
  @moduledoc false
  # Distributions made of others. Their family names those, and an argument of component i has the prefix `i.`.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Distribution, Option}

  # Name, its own parameters.
  @own [
    mixture: [:weights],
    truncated: [:lower, :upper],
    censored: [:lower, :upper],
    interval_censored: [],
    zero_inflated: [:p],
    hurdle: [:p]
  ]

  @doc "The combinations, each with the names of its own parameters."
  @spec own() :: keyword([atom()])
  def own, do: @own

  @doc "The distribution `name` of these components, with parameters of its own, and the options of a free variable."
  @spec new(atom(), keyword(), term(), keyword()) :: Distribution.t()
  def new(name, own, components, opts) do
    components = Enum.map(List.wrap(components), &component!(&1, name))
    opts = Option.check_names!(opts, [:name | Distribution.option_names()], Atom.to_string(name))

    inner =
      for {component, place} <- Enum.with_index(components), {parameter, value} <- component.args do
        {"#{place}.#{parameter}", value}
      end

    %Distribution{
      family: %{"name" => Atom.to_string(name), "components" => Enum.map(components, & &1.family)},
      args: for({parameter, value} <- own, do: {Atom.to_string(parameter), value}) ++ inner,
      opts: opts
    }
  end

  @doc "As `new/4`, with the limits `:lower` and `:upper`, one of them at least, among the options."
  @spec limited(atom(), term(), keyword()) :: Distribution.t()
  def limited(name, component, opts) do
    {limits, opts} = Option.split!(opts, [:lower, :upper], Atom.to_string(name))

    if limits == [] do
      raise InvalidModel,
        message: "#{name} has no limit",
        expected: "#{name}(distribution, lower: x), with upper: y, or both"
    end

    new(name, limits, component, opts)
  end

  defp component!(%Distribution{opts: []} = distribution, _name), do: distribution

  defp component!(%Distribution{opts: [{option, _} | _]} = distribution, name) do
    raise InvalidModel,
      message:
        "#{inspect(option)} does not apply to the #{Distribution.label(distribution.family)} inside of #{name}",
      hint: "it is an option of the #{name} itself: #{name}(…, #{option}: …)"
  end

  defp component!(other, name) do
    raise InvalidModel,
      message: "#{name} is made of distributions",
      expected: "a distribution, such as normal(0, 1)",
      found: inspect(other, limit: 5)
  end
end
