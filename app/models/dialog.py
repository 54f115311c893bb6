"""Open model: a folder or a repo id, and a second one for the head when it is not inside."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.manager import use_class


class OpenModelDialog(QDialog):
    """`target` and `head` are what was entered; "" for the demo model and for a head inside the target."""

    def __init__(self, target: str, head: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Open model")
        self.setMinimumWidth(520)
        self._target = QLineEdit(target)
        self._target.setPlaceholderText("Folder, or a repo id such as owner/model")
        self._target.setAccessibleName("Model folder or repo id")
        self._head = QLineEdit(head)
        self._head.setPlaceholderText("Only when the head is not inside the model")
        self._head.setAccessibleName("MTP head folder or repo id")
        about = QLabel(
            "A Qwen3.5-family model in Hugging Face layout. A repo id must already be in the Hugging Face cache: "
            "nothing is downloaded here. Leave both empty for the demo model."
        )
        about.setWordWrap(True)
        use_class(about, "caption")
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.addRow("Model", self._with_button(self._target, self._choose_target))
        form.addRow("MTP head", self._with_button(self._head, self._choose_head))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setSpacing(12)
        layout.addWidget(about)
        layout.addLayout(form)
        layout.addWidget(buttons)

    @property
    def target(self) -> str:
        return self._target.text().strip()

    @property
    def head(self) -> str:
        return self._head.text().strip()

    def _with_button(self, line: QLineEdit, choose: object) -> QHBoxLayout:
        button = QPushButton("Folder…")
        button.clicked.connect(choose)
        row = QHBoxLayout()
        row.addWidget(line, 1)
        row.addWidget(button)
        return row

    @Slot()
    def _choose_target(self) -> None:
        self._choose(self._target, "Model folder")

    @Slot()
    def _choose_head(self) -> None:
        self._choose(self._head, "MTP head folder")

    def _choose(self, line: QLineEdit, title: str) -> None:
        folder = QFileDialog.getExistingDirectory(self, title, line.text())
        if folder:
            line.setText(folder)
