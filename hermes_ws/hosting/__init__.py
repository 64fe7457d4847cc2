"""Which profiles are open, and what lives in them."""
