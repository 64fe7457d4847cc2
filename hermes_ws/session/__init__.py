"""Which conversation, in which state: sessions, threads, executions, admissions, questions."""
