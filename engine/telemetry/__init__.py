"""Rounds -> statistics, and the session log: its writer, its reader, its exports.

No Qt, no MLX here. The schema of the log is documented in docs/session_log.md.
"""
