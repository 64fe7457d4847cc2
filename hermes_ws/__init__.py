"""hermes-ws: many profile homes, one process, nothing shared between them."""

__version__ = "0.1.0"
