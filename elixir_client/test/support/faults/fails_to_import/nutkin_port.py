"""Cannot be imported."""

raise ImportError("libxla is for another machine")
