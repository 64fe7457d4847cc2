"""Looking at a machine and at its homes, and saying for each thing that is wrong what mends it."""
