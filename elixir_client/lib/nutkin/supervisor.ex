defmodule Nutkin.Supervisor do
  @moduledoc false
  # A pool: the process with its name, and the workers. Without the former nobody finds the latter, so they end with it;
  # a worker that ends is started again alone.

  use Supervisor

  alias Nutkin.{Pool, Worker}
  alias Nutkin.Worker.Options

  @doc "Starts a pool. The options are those of `Nutkin.start_link/1`; a wrong one raises `ArgumentError`."
  @spec start_link(keyword()) :: Supervisor.on_start()
  def start_link(opts) do
    options = Options.validate!(opts)

    case Supervisor.start_link(__MODULE__, options) do
      {:error, {:shutdown, {:failed_to_start_child, Pool, reason}}} -> {:error, reason}
      started -> started
    end
  end

  @doc "Its id is the name, so that several pools go under one supervisor."
  @spec child_spec(keyword()) :: Supervisor.child_spec()
  def child_spec(opts) do
    options = Options.validate!(opts)
    %{id: options.name, start: {__MODULE__, :start_link, [opts]}, type: :supervisor}
  end

  @impl true
  def init(options) do
    loads = :counters.new(options.workers, [:atomics])
    workers = for place <- 1..options.workers, do: worker_spec(options, {loads, place})

    children = [
      {Pool, {options.name, loads}},
      %{
        id: :workers,
        start: {Supervisor, :start_link, [workers, [strategy: :one_for_one]]},
        type: :supervisor
      }
    ]

    Supervisor.init(children, strategy: :rest_for_one)
  end

  # A worker has to see its program end, by force if need be.
  defp worker_spec(options, {_loads, place} = load) do
    %{
      id: place,
      start: {Worker, :start_link, [options, load]},
      shutdown: options.shutdown_timeout + Worker.kill_timeout()
    }
  end
end
