data {
  int<lower=1> rows;
  array[rows] int<lower=0, upper=84> county;
  vector[rows] x;
  vector[rows] y;
}
transformed data {
  array[rows] int<lower=1, upper=85> group;
  for (i in 1 : rows) {
    group[i] = county[i] + 1;
  }
}
parameters {
  real mu;
  real<lower=0> tau;
  real b;
  real<lower=0> sigma;
  vector[85] z;
}
transformed parameters {
  vector[85] alpha = mu + tau * z;
}
model {
  mu ~ normal(0, 5);
  tau ~ std_normal();
  b ~ normal(0, 5);
  sigma ~ std_normal();
  z ~ std_normal();
  y ~ normal(alpha[group] + b * x, sigma);
}
