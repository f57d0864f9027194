nx? = Code.ensure_loaded?(Nx) and match?({:ok, _}, Application.ensure_all_started(:nx))
python? = is_binary(System.get_env("NUTKIN_PYTHON"))

excluded = [nx: nx?, python: python?, port: python?]
ExUnit.start(exclude: for({tag, false} <- excluded, do: tag))
