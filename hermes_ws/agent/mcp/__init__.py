"""Tool servers that speak the Model Context Protocol: reaching them, keeping them, and their tools as ours."""
