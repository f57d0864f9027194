data {
  vector[8] y;
  vector<lower=0>[8] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[8] z;
}
transformed parameters {
  vector[8] theta = mu + tau * z;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  z ~ std_normal();
  y ~ normal(theta, sigma);
}
