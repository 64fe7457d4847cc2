"""What a profile's children may do: a confined child process that acts for the tools."""
