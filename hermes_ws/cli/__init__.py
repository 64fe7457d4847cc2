"""What a person starts: the hermes-ws command."""
