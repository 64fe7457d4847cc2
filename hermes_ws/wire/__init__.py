"""How it travels: frames, envelopes, negotiation and cursors, as pure functions of bytes. No I/O."""
