"""The tools that a model may call, each one declaration."""
