defmodule Posteriordb.HMM do
  @moduledoc """
  Hidden Markov models of two states: the forward algorithm sums over the states.
  """

  import Nutkin.Model

  def hmm_example do
    model do
      y = data(:y)
      theta1 <~ dirichlet([1, 1])
      theta2 <~ dirichlet([1, 1])
      mu <~ half_flat(shape: {2}, transform: :positive_ordered)
      factor(:mu_prior, log_prob(normal([3, 10], 1), mu))
      emissions = log_prob(normal(mu, 1), reshape(y, {100, 1}))
      factor(:sequence, forward(emissions, stack([theta1, theta2])))
    end
  end

  def hmm_drive_0 do
    model do
      u = data(:u)
      v = data(:v)
      alpha = data(:alpha)
      theta1 <~ dirichlet(alpha[0])
      theta2 <~ dirichlet(alpha[1])
      phi <~ half_flat(shape: {2}, transform: :positive_ordered)
      lambda <~ half_flat(shape: {2}, transform: :positive_ordered)
      factor(:phi_prior, log_prob(normal([0, 3], 1), phi))
      factor(:lambda_prior, log_prob(normal([0, 3], 1), lambda))

      emissions =
        log_prob(exponential(phi), reshape(u, {416, 1})) + log_prob(exponential(lambda), reshape(v, {416, 1}))

      factor(:sequence, forward(emissions, stack([theta1, theta2])))
    end
  end

  # The log probability of a sequence: its log probabilities in each state {steps, states}, from state to state.
  defp forward(emissions, transitions) do
    use Nutkin.Model.Language

    {nil, last} =
      scan(emissions[1..-1//1], emissions[0], fn emission, reached ->
        ways = reshape(reached, {2, 1}) + log(transitions)
        {nil, logsumexp(ways, axes: [0]) + emission}
      end)

    logsumexp(last)
  end
end
