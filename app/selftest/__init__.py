"""The window's part of the self-test: its checks, and the one that opens a window."""
