data {
  int<lower=1> rows;
  vector[rows] y;
}
parameters {
  real<lower=0> sigma;
  real<lower=0> nu;
  vector[rows] z;
}
model {
  sigma ~ exponential(10);
  nu ~ exponential(0.1);
  z ~ std_normal();
  y ~ student_t(nu, 0, exp(sigma * cumulative_sum(z)));
}
