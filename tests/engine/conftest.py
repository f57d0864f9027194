import nutkin  # noqa: F401  (x64 before anything else touches jax)
