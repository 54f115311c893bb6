"""The window's part of the self-test: its checks, the one that opens a window, and the dialog that shows the report."""
