# Soaks the client for some minutes: MINUTES and SEED may follow. Half an hour or more writes docs/soak.md, where nothing is
# wrong. The modules are there in the environment test.
#
#     MIX_ENV=test mix run examples/soak/run.exs 30 1

{minutes, seed} =
  case System.argv() do
    [] -> {30, 1}
    [minutes] -> {String.to_integer(minutes), 1}
    [minutes, seed] -> {String.to_integer(minutes), String.to_integer(seed)}
  end

# Every kill is logged, and every error of a consumer: into a file.
folder = Path.join(System.tmp_dir!(), "nutkin-soak-#{System.pid()}")
log = folder <> ".log"
for id <- :logger.get_handler_ids(), do: :logger.remove_handler(id)
:ok = :logger.add_handler(:soak, :logger_std_h, %{config: %{file: String.to_charlist(log)}})
IO.puts("#{minutes} minutes, seed #{seed}; what is logged goes to #{log}")

soak =
  try do
    Soak.run(minutes, seed, env: %{"JAX_PLATFORMS" => "cpu", "NUTKIN_CACHE_DIR" => folder})
  after
    File.rm_rf!(folder)
  end

rows = Soak.Verdict.rows(soak.samples, minutes)
page = Soak.Report.page(soak, rows)
IO.puts(["\n", page])

case soak.faults ++ Soak.Verdict.faults(rows, soak.conditions) do
  [] ->
    if minutes >= 30, do: File.write!(Path.expand("../../../docs/soak.md", __DIR__), page)
    IO.puts("Nothing has grown, and nothing is left over.")

  faults ->
    IO.puts(:stderr, ["#{length(faults)} faults:\n" | Enum.map(faults, &"  #{&1}\n")])
    System.halt(1)
end
