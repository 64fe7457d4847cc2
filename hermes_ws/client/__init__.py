"""The Python client: stands on the contract and the wire alone, runs under asyncio and trio."""
