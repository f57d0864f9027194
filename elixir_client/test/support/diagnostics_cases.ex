defmodule Nutkin.Test.DiagnosticsCases do
  @moduledoc """
  Reads and writes the cases of diagnostics_reference.py: draws, and what ArviZ says of them.
  """

  alias Nutkin.Diagnostics

  @script Path.expand("diagnostics_reference.py", __DIR__)

  @type case_ :: %{name: String.t(), chains: [[float()]], expected: %{String.t() => float() | :nan}}

  @doc "The cases of a text."
  @spec parse(String.t()) :: [case_()]
  def parse(text) do
    text
    |> String.split("\n", trim: true)
    |> Enum.map(&String.split(&1, " "))
    |> Enum.reduce([], &line/2)
    |> Enum.map(&%{&1 | chains: Enum.reverse(&1.chains)})
    |> Enum.reverse()
  end

  defp line(["case", name], cases), do: [%{name: name, chains: [], expected: %{}} | cases]

  defp line(["chain" | values], [current | cases]) do
    [%{current | chains: [Enum.map(values, &String.to_float/1) | current.chains]} | cases]
  end

  defp line(["expect" | rest], [current | cases]) do
    {names, [value]} = Enum.split(rest, -1)
    [put_in(current.expected[Enum.join(names, " ")], number(value)) | cases]
  end

  defp number("nan"), do: :nan
  defp number(text), do: String.to_float(text)

  @doc "ArviZ's values for `named`, a list of `{name, chains}`, by the Python that NUTKIN_PYTHON names."
  @spec ask_arviz([{String.t(), [[float()]]}], Path.t()) :: [case_()]
  def ask_arviz(named, directory) do
    path = Path.join(directory, "draws.txt")

    File.write!(
      path,
      for {name, chains} <- named do
        [
          "case ",
          name,
          "\n",
          for(chain <- chains, do: ["chain ", Enum.map_join(chain, " ", &Float.to_string/1), "\n"])
        ]
      end
    )

    {output, 0} = System.cmd(System.fetch_env!("NUTKIN_PYTHON"), [@script, path], stderr_to_stdout: true)
    parse(output)
  end

  @doc "What Nutkin.Diagnostics says where ArviZ says `name`."
  @spec diagnose([[float()]], String.t()) :: Diagnostics.result()
  def diagnose(chains, name) do
    case String.split(name) do
      ["mean"] -> Diagnostics.mean(chains)
      ["sd"] -> Diagnostics.sd(chains)
      ["r_hat"] -> Diagnostics.r_hat(chains)
      ["ess_bulk"] -> Diagnostics.ess_bulk(chains)
      ["ess_tail"] -> Diagnostics.ess_tail(chains)
      ["ess_mean"] -> Diagnostics.ess_mean(chains)
      ["ess_sd"] -> Diagnostics.ess_sd(chains)
      ["mcse_mean"] -> Diagnostics.mcse_mean(chains)
      ["mcse_sd"] -> Diagnostics.mcse_sd(chains)
      ["quantile", p] -> Diagnostics.quantile(chains, String.to_float(p))
      ["ess_quantile", p] -> Diagnostics.ess_quantile(chains, String.to_float(p))
      ["mcse_quantile", p] -> Diagnostics.mcse_quantile(chains, String.to_float(p))
    end
  end
end
