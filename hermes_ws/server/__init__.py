"""Who is connected, and what they get: listeners, connections, dispatch, delivery."""
