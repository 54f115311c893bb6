"""Which model answers: loading it, and choosing another."""
