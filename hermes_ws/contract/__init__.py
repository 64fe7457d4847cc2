"""What may be said: one declaration per method, event and question; all else is derived from them. No I/O."""
