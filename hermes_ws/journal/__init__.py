"""What happened: one SQLite file per home, committed first and delivered second."""
