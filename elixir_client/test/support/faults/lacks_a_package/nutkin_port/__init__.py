"""A package that can be imported, although what it runs cannot."""
