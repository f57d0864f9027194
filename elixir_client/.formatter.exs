model_language = [data: 2, observe: 3, observe: 4, factor: 2, deterministic: 2]

[
  inputs: ["{mix,.formatter}.exs", "{lib,test,examples}/**/*.{ex,exs}"],
  line_length: 110,
  export: [locals_without_parens: model_language]
]
