# The eight schools of Rubin (1981): the effects of coaching in eight schools, and what they have in common.
#
#     mix run examples/eight_schools.exs
#
# NUTKIN_PYTHON names a Python that has the package nutkin; without it, python3 from the PATH is taken.

import Nutkin.Model

defmodule ProgressLine do
  @moduledoc "Shows the progress of all chains: in place on a terminal, else as a line now and then."

  @columns 24

  def start(chains) do
    terminal? = match?({:ok, _}, :io.columns(:standard_error))
    {:ok, agent} = Agent.start_link(fn -> %{terminal?: terminal?, chains: chains, done: %{}, shown: nil} end)
    agent
  end

  def update(agent, progress), do: Agent.update(agent, &show(put_in(&1.done[progress.chain], progress)))

  def stop(agent) do
    if Agent.get(agent, &(&1.terminal? and &1.shown != nil)), do: IO.write(:stderr, "\r\e[K")
    Agent.stop(agent)
  end

  defp show(state) do
    latest = Map.values(state.done)
    share = Enum.sum(Enum.map(latest, &(&1.iteration / max(&1.total, 1)))) / state.chains
    phase = if Enum.all?(latest, &(&1.phase == :sample)), do: "sampling", else: "warmup"
    # Those of the warmup are no reason for worry.
    divergences = Enum.sum(for %{phase: :sample} = progress <- latest, do: progress.divergences)
    bar = String.pad_trailing(String.duplicate("#", floor(share * @columns)), @columns, ".")
    text = "#{bar} #{floor(share * 100)} %, #{phase}, divergences: #{divergences}"
    # Without a terminal, every quarter is enough.
    due? = if state.terminal?, do: text != state.shown, else: state.shown != floor(share * 4)
    if due?, do: IO.write(:stderr, if(state.terminal?, do: "\r#{text}\e[K", else: "#{text}\n"))
    %{state | shown: if(state.terminal?, do: text, else: floor(share * 4))}
  end
end

{:ok, _} = Nutkin.start_link()

schools =
  model do
    y = data(:y)
    sigma = data(:sigma)
    mu <~ normal(0, 5)
    tau <~ half_cauchy(5)
    theta <~ normal(mu, tau, shape: {8}, centered: false)
    observe(:obs, normal(theta, sigma), y)
  end

data = %{y: [28, 8, -3, 7, -1, 1, 18, 12], sigma: [15, 10, 16, 11, 9, 11, 10, 18]}
chains = 4
line = ProgressLine.start(chains)

result =
  Nutkin.sample(schools,
    data: data,
    chains: chains,
    draws: 5_000,
    seed: 1,
    target_accept: 0.95,
    on_progress: &ProgressLine.update(line, &1)
  )

ProgressLine.stop(line)

case result do
  {:ok, fit} ->
    IO.inspect(fit)

    IO.puts(
      "#{Nutkin.Fit.divergences(fit)} divergences; #{Float.round((fit.seconds.warmup + fit.seconds.sample) / 1, 2)} s of warmup and sampling"
    )

  {:error, error} ->
    IO.puts(:stderr, Exception.message(error))
    System.halt(1)
end
