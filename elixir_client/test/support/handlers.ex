defmodule Nutkin.Test.Handlers do
  @moduledoc """
  Handlers of telemetry events that send them to the test as `{:event, name, measurements, metadata}`. Where the library is not
  there, a module of its name takes its place for as long as the test runs.
  """

  import ExUnit.Callbacks

  @doc "A setup callback. The events come from other processes, so such tests run alone."
  def attach(_context \\ %{}) do
    stand_in? = not Code.ensure_loaded?(:telemetry)
    if stand_in?, do: load()
    test = self()
    id = {__MODULE__, test}
    handler = fn event, measurements, metadata, nil -> send(test, {:event, event, measurements, metadata}) end
    :ok = apply(:telemetry, :attach_many, [id, documented(), handler, nil])

    on_exit(fn -> if stand_in?, do: unload(), else: apply(:telemetry, :detach, [id]) end)

    %{stand_in?: stand_in?}
  end

  @doc "Takes the module of the library away, as if it had never been there."
  def unload do
    :persistent_term.erase(:telemetry)
    :code.purge(:telemetry)
    :code.delete(:telemetry)
    :code.purge(:telemetry)
  end

  @doc "The names of all events, from the tables of the documentation."
  def documented do
    {:docs_v1, _, _, _, %{"en" => text}, _, _} = Code.fetch_docs(Nutkin.Telemetry)

    for [_, names] <- Regex.scan(~r/^\| `\[([^`]*)\]`/m, text) do
      for ":" <> name <- String.split(names, ", "), do: String.to_existing_atom(name)
    end
  end

  # As much of its interface as is used, with its semantics: handlers run in the process that emits.
  defp load do
    Module.create(
      :telemetry,
      quote do
        def attach_many(id, events, fun, config) do
          :persistent_term.put(__MODULE__, for(event <- events, do: {id, event, fun, config}))
        end

        def execute(event, measurements, metadata) do
          for {_id, ^event, fun, config} <- :persistent_term.get(__MODULE__, []),
              do: fun.(event, measurements, metadata, config)

          :ok
        end
      end,
      Macro.Env.location(__ENV__)
    )
  end
end
