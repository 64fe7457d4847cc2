"""The declarations of the methods, one module per topic."""
