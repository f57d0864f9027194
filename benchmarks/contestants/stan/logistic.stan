data {
  int<lower=1> rows;
  int<lower=1> columns;
  matrix[rows, columns] X;
  array[rows] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[columns] beta;
}
model {
  alpha ~ std_normal();
  beta ~ std_normal();
  y ~ bernoulli_logit_glm(X, alpha, beta);
}
