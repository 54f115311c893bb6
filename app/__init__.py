"""The PySide6 window. Imports only the public surface of `engine`."""
