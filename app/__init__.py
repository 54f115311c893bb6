"""The PySide6 window. Imports only the public surface of `engine`."""

from importlib import metadata

try:
    __version__ = metadata.version("pacenote")
except metadata.PackageNotFoundError:  # run from a checkout that was not installed
    __version__ = "0"
