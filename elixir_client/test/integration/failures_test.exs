defmodule Nutkin.FailuresTest do
  use Nutkin.Test.WorkerCase, async: false

  alias Nutkin.Error.{InitFailed, InvalidData, InvalidModel, InvalidOption, Protocol, WorkerExit}
  alias Nutkin.{Diagnosis, Fit, Model, Tensor}
  alias Nutkin.Test.Models
  alias Nutkin.Worker.{Client, Request}

  require Nutkin.Model

  @moduletag :port
  @moduletag :capture_log

  # More than can be drawn in the time of a test.
  @endless 1_000_000_000

  setup_all do
    name = Module.concat(__MODULE__, "Worker")
    start_supervised!({Nutkin, port_options(name: name)})
    %{worker: name}
  end

  describe "errors of the model and its data name the place" do
    test "a distribution that does not exist", %{worker: worker} do
      normal = %{"kind" => "rv", "name" => "mu", "dist" => "gauss", "args" => %{}}

      assert {:error, %InvalidModel{node: "mu", index: 0} = error} =
               Nutkin.compile(%Model{nodes: [normal], blobs: %{}}, worker: worker)

      assert Exception.message(error) =~ "gauss"
    end

    test "shapes that do not fit", %{worker: worker} do
      data = %{Models.eight_schools_data() | y: [1, 2, 3]}
      assert {:error, %error{node: node}} = Nutkin.sample(Models.eight_schools(), data: data, worker: worker)
      assert error in [InvalidModel, InvalidData]
      assert node == "obs"
    end

    test "a slot without data, and data without a slot", %{worker: worker} do
      assert {:error, %InvalidData{node: "sigma"}} =
               Nutkin.sample(Models.eight_schools(), data: %{y: [1]}, worker: worker)

      data = Map.put(Models.eight_schools_data(), :z, 1)

      assert {:error, %InvalidData{node: "z"}} =
               Nutkin.sample(Models.eight_schools(), data: data, worker: worker)
    end

    test "NaN among the data", %{worker: worker} do
      assert {:error, %InvalidData{node: node} = error} =
               Nutkin.sample(Models.mean(), data: %{y: [1.0, :nan]}, worker: worker)

      assert node in ["y", "obs"]
      assert Exception.message(error) =~ ~r/nan/i
    end

    test "no point to start from", %{worker: worker} do
      model =
        Nutkin.Model.model do
          mu <~ normal(0, 1)
          factor(:impossible, log(tensor(0.0)) + mu)
        end

      assert {:error, %InitFailed{} = error} = Nutkin.sample(model, worker: worker)
      message = Exception.message(error)
      assert message =~ "found no starting point in 100 tries: log("
      assert message =~ " is -inf, and with it impossible, at mu = "
      assert %{found: "-inf", node: "log", index: index} = error
      assert is_integer(index)
      assert error.hint =~ "positive"
    end

    test "a model that is NaN at a point, and one that is not", %{worker: worker} do
      model =
        Model.model do
          y = data(:y)
          rate <~ normal(0, 1)
          observe(:obs, normal(0, sqrt(rate * y)), y)
        end

      options = [data: %{y: [1.0, 2.0]}, worker: worker]
      assert {:ok, %Diagnosis{finite?: false, value: :nan} = found} = Nutkin.debug(model, [-0.5], options)
      assert {:ok, ^found} = Nutkin.debug(model, %{rate: -0.5}, options)

      assert %{node: "sqrt(multiply(rate, y))", kind: "call", found: "NaN at [0]", affects: "obs"} =
               found.cause

      assert [%{node: "multiply(rate, y)", element: -0.5, least: -1.0, greatest: -0.5}] = found.cause.inputs

      assert inspect(found) == """
             #Nutkin.Diagnosis<
               sqrt(multiply(rate, y)) is NaN at [0], and with it obs
                 multiply(rate, y) = f64 {2}, -0.5 at [0], from -1 to -0.5
               at rate = -0.5
               the root needs a number of at least 0: see that its operand cannot become negative
             >\
             """

      assert %Diagnosis{finite?: true, cause: nil} = fine = Nutkin.debug!(model, [rate: 0.5], options)
      assert fine.value == Nutkin.log_density!(model, [rate: 0.5], options).value
      assert {:error, %InvalidData{}} = Nutkin.debug(model, [1.0, 2.0], options)
      assert_raise InvalidOption, fn -> Nutkin.debug!(model, %{rates: 1.0}, options) end
    end

    test "a point of another dimension", %{worker: worker} do
      assert {:error, %InvalidData{}} =
               Nutkin.log_density(Models.mean(), [1.0, 2.0], data: %{y: [1.0]}, worker: worker)

      assert {:error, %{found: "nu", expected: "mu"}} =
               Nutkin.log_density(Models.mean(), %{nu: 1.0}, data: %{y: [1.0]}, worker: worker)

      assert {:error, %InvalidData{node: "mu"}} =
               Nutkin.log_density(Models.mean(), %{mu: :one}, data: %{y: [1.0]}, worker: worker)
    end

    test "an option that does not exist" do
      assert {:error, %InvalidOption{hint: "did you mean :chains?"}} = Nutkin.sample(Models.mean(), chain: 3)
      assert {:error, %InvalidOption{}} = Nutkin.compile(Models.mean(), draws: 3)
      assert_raise InvalidOption, fn -> Nutkin.stream(Models.mean(), draws: 0) end
      assert {:error, %InvalidModel{found: "5"}} = Nutkin.sample(5)
    end

    test "a number where a tensor belongs, in a message of our own making", %{worker: worker} do
      {:ok, data} = Nutkin.Data.encode(Models.mean(), %{"y" => [1.0]})
      body = %{model: Model.to_ir(Models.mean()), data: data.addresses, options: %{}, position: 5}
      request = Request.new(:log_density, body, data.blobs)
      assert {:error, %Protocol{path: "$.position"}} = Client.call(worker, request, 30_000)
      # The worker lives on.
      assert {:ok, %{requests: 0}} = Nutkin.ping(worker)
    end
  end

  test "eighty megabytes of data go up while the worker answers", %{worker: worker} do
    numbers = Tensor.from_binary(:binary.copy(<<1.0::float-little-64>>, 10_000_000), :f64, {10_000_000})
    {:ok, data} = Nutkin.Data.encode(Models.mean(), %{"y" => numbers})

    body = %{
      model: Model.to_ir(Models.mean()),
      data: data.addresses,
      options: %{},
      position: Tensor.new([0.0])
    }

    {:ok, pid, upload} = Client.submit(worker, Request.new(:log_density, body, data.blobs))
    {:ok, ^pid, ping} = Client.submit(worker, Request.new(:ping, %{}))
    assert {:pong, %{blobs: %{bytes: bytes}}} = Client.next(pid, ping, Client.deadline(30_000))
    assert bytes < 80_000_000
    assert {:compiling, _} = Client.next(pid, upload, Client.deadline(60_000))
    assert {:value, %{value: value}} = Client.next(pid, upload, Client.deadline(60_000))
    Enum.each([ping, upload], &Client.close(pid, &1))
    normal = -0.5 - 0.5 * :math.log(2 * :math.pi())
    assert_in_delta value / 1.0e7, normal, 1.0e-6
    # What is there is not sent again.
    {:ok, %{blobs: %{bytes: kept}}} = Nutkin.ping(worker)
    assert kept >= 80_000_000
    assert {:ok, _} = Nutkin.log_density(Models.mean(), [0.0], data: %{y: numbers}, worker: worker)
    assert {:ok, %{blobs: %{bytes: ^kept}}} = Nutkin.ping(worker)
  end

  test "a program that is killed under a run that is not to be resumed: an error at once, and the next call works",
       %{
         worker: worker
       } do
    {:ok, run} =
      Nutkin.start_run(Models.mean(), data: [y: [1.0]], draws: @endless, resume: false, worker: worker)

    ref = run.ref
    assert_receive {^ref, {:draws, _}}, 60_000
    {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
    kill!(os_pid)
    killed = System.monotonic_time(:millisecond)
    assert {:error, %WorkerExit{status: 137} = error} = Nutkin.await(run)
    assert System.monotonic_time(:millisecond) - killed < 1_000
    assert Exception.message(error) =~ "SIGKILL"

    assert {:ok, %Fit{status: :complete}} =
             Nutkin.sample(Models.mean(), data: [y: [1.0]], draws: 10, worker: worker)
  end

  test "a worker that is stopped leaves no program behind" do
    worker = start_worker!(port_options())
    {:ok, _} = Nutkin.ping(worker)
    {:ok, [%{os_pid: os_pid}]} = Nutkin.info(worker)
    {:ok, run} = Nutkin.start_run(Models.mean(), data: [y: [1.0]], draws: @endless, worker: worker)
    :ok = stop_supervised(worker)
    assert {:error, %WorkerExit{}} = Nutkin.await(run)
    eventually(fn -> not alive?(os_pid) end)
  end

  # What another BEAM does before it is killed; it says so when it is at it.
  @doings [
    sampling: """
    {:ok, run} = Nutkin.start_run(Nutkin.Test.Models.mean(), data: [y: [1.0]], draws: #{@endless}, credit: 1_000_000)
    ref = run.ref
    receive do: ({^ref, {:draws, _}} -> :ok)
    """,
    compiling: """
    {:ok, run} = Nutkin.start_run(Nutkin.Test.Models.slow_to_compile())
    ref = run.ref
    receive do: ({^ref, {:compiling, _}} -> :ok)
    receive do: ({^ref, _} -> raise("it is compiled already")), after: (500 -> :ok)
    """
  ]

  for {doing, program} <- @doings do
    @tag doing: program
    test "a BEAM that is killed while it is #{doing} leaves no program behind", %{doing: doing} do
      script = """
      {:ok, _} = Nutkin.start_link(#{inspect(port_options(env: %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => "off"}))})
      #{doing}
      {:ok, [%{os_pid: os_pid}]} = Nutkin.info()
      IO.puts("busy \#{os_pid}")
      Process.sleep(:infinity)
      """

      ebin = Path.join(Mix.Project.app_path(), "ebin")
      options = [:binary, :exit_status, line: 1000, args: ["-pa", ebin, "-e", script]]
      beam = Port.open({:spawn_executable, System.find_executable("elixir")}, options)
      {:os_pid, beam_pid} = Port.info(beam, :os_pid)
      assert_receive {^beam, {:data, {:eol, "busy " <> os_pid}}}, 60_000
      assert alive?(os_pid)
      kill!(beam_pid)
      eventually(fn -> not alive?(os_pid) end, 1_000)
    end
  end
end
