"""For whom do we act: a profile's home, secrets and terminal policy, bound whole or not at all."""
