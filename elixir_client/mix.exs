defmodule Nutkin.MixProject do
  use Mix.Project

  def project do
    [
      app: :nutkin,
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      # Optional libraries may be on ERL_LIBS.
      prune_code_paths: false,
      description: "Bayesian NUTS sampling for the BEAM: models in Elixir, draws from XLA through a port.",
      # Nx is optional, and looked for while the client runs.
      xref: [exclude: [Nx, Nx.Defn, Nx.Defn.Composite, Nx.Defn.Expr, Nx.Shared]],
      deps: []
    ]
  end

  def application do
    [extra_applications: [:logger, :crypto]]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support", "examples"]
  defp elixirc_paths(_env), do: ["lib"]
end
