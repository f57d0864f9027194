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
      # Nx and telemetry are optional, and looked for while the client runs.
      xref: [exclude: [:telemetry, Nx, Nx.Defn, Nx.Defn.Composite, Nx.Defn.Expr, Nx.Shared]],
      deps: [],
      package: [files: ~w(lib priv/python .formatter.exs mix.exs), licenses: ["Apache-2.0"]],
      aliases: [
        bundle: &bundle/1,
        "hex.build": ["bundle", "hex.build"],
        "hex.publish": ["bundle", "hex.publish"]
      ]
    ]
  end

  # A package cannot hold what lies outside of its folder: the engine and its lock file come into priv/python, as they lie in a checkout,
  # where `mix nutkin.install` finds them.
  defp bundle(_args) do
    bundle = Path.expand("priv/python", __DIR__)
    root = Path.expand("..", __DIR__)
    File.rm_rf!(bundle)
    code = Enum.flat_map(~w(python/nutkin bridge/nutkin_port), &Path.wildcard("#{root}/#{&1}/**/*.py"))

    others =
      for name <- ~w(requirements-runtime.lock pyproject.toml README.md LICENSE), do: Path.join(root, name)

    for file <- code ++ others do
      target = Path.join(bundle, Path.relative_to(file, root))
      File.mkdir_p!(Path.dirname(target))
      File.cp!(file, target)
    end
  end

  def application do
    [extra_applications: [:logger, :crypto]]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support", "examples"]
  defp elixirc_paths(_env), do: ["lib"]
end
