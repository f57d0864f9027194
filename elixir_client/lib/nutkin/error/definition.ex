defmodule Nutkin.Error.Definition do
  @moduledoc false
  # What the exceptions of `Nutkin.Error` share: their fields, their type, and how the fields make a sentence.

  defmacro __using__(opts) do
    own = Keyword.get(opts, :fields, [])
    names = [:message, :node, :index, :path, :expected, :found, :hint | Keyword.keys(own)]

    quote do
      import Nutkin.Error.Definition, only: [sentence: 2]

      @type t :: %__MODULE__{
              unquote_splicing(own),
              message: String.t() | nil,
              node: String.t() | nil,
              index: non_neg_integer() | nil,
              path: String.t() | nil,
              expected: String.t() | nil,
              found: String.t() | nil,
              hint: String.t() | nil
            }

      defexception unquote(names)

      @impl true
      def exception(message) when is_binary(message), do: %__MODULE__{message: message}
      def exception(fields) when is_list(fields), do: struct!(__MODULE__, fields)

      @impl true
      def message(error), do: sentence(error, error.message)

      defoverridable message: 1
    end
  end

  @doc false
  def sentence(error, message) do
    facts =
      for {label, text} <- [expected: error.expected, found: error.found], text, do: "; #{label} #{text}"

    hint = if error.hint, do: "; #{error.hint}", else: ""
    Enum.join([message, place(error, message), facts, hint])
  end

  # A message that names the node or the path itself is not told twice. The number of a node tells little, but where it
  # has no name.
  defp place(error, message) do
    parts = [
      error.node && not told?(message, error.node) && "node #{error.node}",
      error.index && !error.node && "node #{error.index} of the model",
      error.path && not told?(message, error.path) && "at #{error.path}"
    ]

    case Enum.filter(parts, &is_binary/1) do
      [] -> ""
      parts -> " (#{Enum.join(parts, ", ")})"
    end
  end

  # As a word of its own, not as a part of another name, word or path; and the word "a" is rarely the node a.
  defp told?(_message, "a"), do: false
  defp told?(message, name), do: message =~ ~r/(?<![\w\]])#{Regex.escape(name)}(?![\w\[]|\.\w)/u
end
