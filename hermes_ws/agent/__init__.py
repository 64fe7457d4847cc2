"""How one turn runs: models, tools, approvals. Knows nothing of connections."""
