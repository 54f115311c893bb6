"""The licences of what this Pacenote consists of, in a window of their own."""

from __future__ import annotations

from importlib import metadata, resources

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

BESIDE = (
    "This Pacenote was installed as a Python package. What it needs was installed by name beside it, and each of these "
    "packages keeps its licence in its own .dist-info folder."
)


def text() -> str:
    """What the bundle collected when it was built; elsewhere our own licence and notices."""
    collected = resources.files("resources") / "licences.txt"
    if collected.is_file():
        return collected.read_text("utf-8")
    parts = [BESIDE]
    try:
        files = metadata.files("pacenote") or []
    except metadata.PackageNotFoundError:  # a checkout that was not installed
        files = []
    # NOTICE first: it is ours alone, and says where the demo model comes from.
    for name in ("NOTICE", "LICENSE"):
        parts += [file.read_text("utf-8").strip() for file in files if file.name == name]
    return "\n\n".join(parts)


class LicencesDialog(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Licences")
        self.resize(680, 520)
        self.text = QPlainTextEdit(text())
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Licences")
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.reject)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        layout = QVBoxLayout(self)
        layout.addWidget(self.text, 1)
        layout.addWidget(box)
