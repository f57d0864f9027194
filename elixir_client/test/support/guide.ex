defmodule Nutkin.Test.Guide do
  @moduledoc """
  The guides, such as `docs/models.md`: their examples, evaluated one after the other, and its table of distributions.
  """

  alias Nutkin.{Error, Model}
  alias Nutkin.Model.Distribution

  @path Path.expand("../../../docs/models.md", __DIR__)
  @table_starts "| Call | Values | |\n|---|---|---|\n"

  def path, do: @path

  @doc "The examples: the number of the line after ```elixir, and the code."
  @spec examples(Path.t()) :: [{pos_integer(), String.t()}]
  def examples(path \\ @path) do
    text = File.read!(path)

    for [{start, length}] <- Regex.scan(~r/(?<=^```elixir\n).*?(?=^```$)/ms, text, return: :index) do
      line = text |> binary_part(0, start) |> String.split("\n") |> length()
      {line, binary_part(text, start, length)}
    end
  end

  @doc """
  Evaluates examples, each with the variables and imports of those before it.

  Gives of each by its line: the error that it raised or nil, and the models that it bound, with their data. The data of a
  model with slots is what the variable `data` holds at the end of its example.
  """
  @spec evaluate([{pos_integer(), String.t()}]) :: [
          {pos_integer(), %{raised: Exception.t() | nil, models: [{Model.t(), map()}]}}
        ]
  def evaluate(examples) do
    {outcomes, _state} =
      Enum.map_reduce(examples, {[], Code.env_for_eval(file: @path)}, fn {line, code}, {before, env} ->
        {raised, binding, env} = run(code, line, before, env)
        {{line, %{raised: raised, models: models(binding -- before, binding[:data])}}, {binding, env}}
      end)

    outcomes
  end

  defp run(code, line, binding, env) do
    {binding, env} = eval(code, line, binding, env)
    {nil, binding, env}
  rescue
    error in [Error.InvalidModel, Error.InvalidData, ArithmeticError] -> {error, binding, env}
  end

  @doc "Runs the examples of a guide one after the other, and returns the variables of the last."
  @spec run!(Path.t()) :: keyword()
  def run!(path) do
    {binding, _env} =
      for {line, code} <- examples(path), reduce: {[], Code.env_for_eval(file: path)} do
        {binding, env} -> eval(code, line, binding, env)
      end

    binding
  end

  defp eval(code, line, binding, env) do
    quoted = Code.string_to_quoted!(code, file: env.file, line: line)
    {_value, binding, env} = Code.eval_quoted_with_env(quoted, binding, env)
    {binding, env}
  end

  defp models(bound, data) do
    for {_name, %Model{} = model} <- bound, do: {model, if(Model.slots(model) == [], do: %{}, else: data)}
  end

  @doc "What is printed: the text between fences that have no language, and begins as `inspect/1` of a struct does."
  @spec printed(Path.t()) :: [String.t()]
  def printed(path), do: ~r/(?<=^```\n)#.*?(?=\n```$)/ms |> Regex.scan(File.read!(path)) |> List.flatten()

  @doc "The error that an example announces in its last comment, on one line, or nil."
  @spec announced(String.t()) :: String.t() | nil
  def announced(code) do
    case Regex.run(~r/^# (\*\* \(.*)/ms, code) do
      [_, text] -> text |> String.replace(~r/\n#\s+/, " ") |> String.trim()
      nil -> nil
    end
  end

  @doc "An error as IEx shows it."
  @spec shown(Exception.t()) :: String.t()
  def shown(%module{} = error), do: "** (#{inspect(module)}) #{Exception.message(error)}"

  @doc "The table of distributions, as the guide has it."
  @spec written_table() :: String.t()
  def written_table do
    [_, rest] = @path |> File.read!() |> String.split(@table_starts)
    [rows | _] = String.split(rest, "\n\n", parts: 2)
    String.trim_trailing(rows) <> "\n"
  end

  @doc "The table of distributions, as the language has it."
  @spec table() :: String.t()
  def table do
    for {name, parameters, support, note} <- Distribution.table(), into: "" do
      others =
        for {named, remark} <- Distribution.alternatives(name) do
          "| `#{name}(#{Enum.map_join(named, ", ", &"#{&1}: …")})` | | #{remark} |\n"
        end

      "| `#{name}(#{Enum.join(parameters, ", ")})` | #{support} | #{note} |\n#{others}"
    end
  end

  @doc "Puts the table of the language into the guide."
  @spec write_table() :: :ok
  def write_table do
    File.write!(@path, String.replace(File.read!(@path), written_table(), table()))
  end
end
