nx? = Code.ensure_loaded?(Nx) and match?({:ok, _}, Application.ensure_all_started(:nx))
python? = is_binary(System.get_env("NUTKIN_PYTHON"))

available = [nx: nx?, without_nx: not nx?, python: python?, port: python?]
ExUnit.start(exclude: for({tag, false} <- available, do: tag))
