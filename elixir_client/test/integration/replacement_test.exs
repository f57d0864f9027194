defmodule Nutkin.ReplacementTest do
  @moduledoc """
  Compilations cannot be interrupted: what becomes of the program, and of everyone else.
  """

  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Fit
  alias Nutkin.Error.{LimitExceeded, Timeout}
  alias Nutkin.Test.Models

  @moduletag :port
  @moduletag :capture_log

  # More than can be drawn in the time of a test.
  @endless 1_000_000_000

  # What the limits are not about is compiled before.
  setup_all do
    %{folder: folder} = Nutkin.Test.TemporaryFolder.temporary_folder()
    env = %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => folder}
    {:ok, pool} = Nutkin.start_link(port_options(env: env, name: Nutkin.ReplacementTest.Compiler))
    Nutkin.sample!(Models.mean(), data: [y: [1.0]], draws: 1, worker: Nutkin.ReplacementTest.Compiler)
    eventually(fn -> Path.wildcard(Path.join(folder, "**/*.program")) != [] end)
    Supervisor.stop(pool)
    %{env: env}
  end

  defp start!(env, limits) do
    worker = start_worker!(port_options(limits: limits, env: env))

    {:ok, run} = Nutkin.start_run(Models.mean(), data: [y: [1.0]], draws: @endless, credit: 2, worker: worker)
    ref = run.ref
    assert_receive {^ref, {:draws, _}}, 60_000
    {worker, run, os_pid(worker)}
  end

  # The run goes on in the next program.
  defp goes_on!(worker, run, first) do
    ref = run.ref
    assert_receive {^ref, {:resumed, error}}, 20_000
    assert Exception.message(error) =~ "the worker was replaced: a compilation had to be ended"
    assert os_pid(worker) != first
    eventually(fn -> not alive?(first) end)
    :ok = Nutkin.cancel(run)
    assert {:ok, %Fit{status: :cancelled, resumed: 0}} = Nutkin.await(run)
  end

  test "one that takes too long is an error that says so, and the program is replaced", %{env: env} do
    {worker, run, first} = start!(env, %{compile_seconds: 1})
    assert {:error, %LimitExceeded{} = error} = Nutkin.compile(Models.slow_to_compile(), worker: worker)
    assert Exception.message(error) =~ "the compilation took too long; expected at most 1 seconds"
    goes_on!(worker, run, first)
  end

  test "one that nobody waits for any more is ended after some seconds", %{env: env} do
    {worker, run, first} = start!(env, %{abandoned_seconds: 1})

    assert {:error, %Timeout{} = error} =
             Nutkin.sample(Models.slow_to_compile(), worker: worker, timeout: 500)

    assert Exception.message(error) =~ "no result within 500 ms; it was still being compiled"
    goes_on!(worker, run, first)
  end

  test "one that nobody waits for any more does not hold up another model", %{env: env} do
    {worker, run, first} = start!(env, %{abandoned_seconds: 600})
    assert {:error, %Timeout{}} = Nutkin.compile(Models.slow_to_compile(), worker: worker, timeout: 500)
    data = Models.eight_schools_data()
    assert {:ok, %Fit{}} = Nutkin.sample(Models.eight_schools(), data: data, draws: 10, worker: worker)
    goes_on!(worker, run, first)
  end
end
