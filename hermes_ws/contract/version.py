"""The version of the contract. By itself, so that a client that needs nothing else loads nothing else."""

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 0
