"""Prompt templates: kept prompts in the composer's menu, and a dialog to change them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.errorcard import as_dict
from app.store import Repository, StoreError, Template
from app.text import exact_text
from app.theme.manager import use_class

HELP = "{{Anything in double braces}} is marked when the template is used; Tab goes to the next one."


class TemplateMenu(QMenu):
    """The templates, read anew whenever it opens."""

    chosen = Signal(str)
    failed = Signal(dict)

    def __init__(self, store: Repository, parent: QWidget) -> None:
        super().__init__("Templates", parent)
        self._store = store
        self.aboutToShow.connect(self.fill)
        self.fill()

    @Slot()
    def fill(self) -> None:
        self.clear()
        try:
            templates = self._store.templates()
        except StoreError as error:
            templates = []
            self.failed.emit(as_dict(error))
        for template in templates:
            action = self.addAction(template.name.replace("&", "&&"))
            action.setData(template.text)
            action.triggered.connect(self._on_chosen)
        if not templates:
            self.addAction("None yet").setEnabled(False)

    @Slot()
    def _on_chosen(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.chosen.emit(str(action.data()))


class TemplateDialog(QDialog):
    """A list at the left, the marked template at the right. Save writes it; nothing else does."""

    failed = Signal(dict)

    def __init__(self, store: Repository, text: str = "", parent: QWidget | None = None) -> None:
        """text: of a new template, that is to be named and saved."""
        super().__init__(parent)
        self._store = store
        self.setWindowTitle("Prompt Templates")
        self.resize(640, 420)
        self.list = QListWidget()
        self.list.setAccessibleName("Templates")
        self.list.setFixedWidth(190)
        self.list.currentItemChanged.connect(self._on_current)
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name")
        self.name.setAccessibleName("Name of the template")
        self.name.textChanged.connect(self._refresh)
        self.text = QPlainTextEdit()
        self.text.setPlaceholderText("Text")
        self.text.setAccessibleName("Text of the template")
        self.text.setTabChangesFocus(True)
        self.text.textChanged.connect(self._refresh)
        note = QLabel(HELP)
        note.setWordWrap(True)
        use_class(note, "caption")
        self.new = self._button("New", self._on_new)
        self.delete = self._button("Delete", self._on_delete)
        self.save = self._button("Save", self._on_save)
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.reject)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        left = QVBoxLayout()
        left.addWidget(self.list, 1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.new)
        buttons.addWidget(self.delete)
        left.addLayout(buttons)
        right = QVBoxLayout()
        right.addWidget(self.name)
        right.addWidget(self.text, 1)
        right.addWidget(note)
        right.addWidget(self.save, 0, Qt.AlignmentFlag.AlignRight)
        columns = QHBoxLayout()
        columns.addLayout(left)
        columns.addLayout(right, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(columns, 1)
        layout.addWidget(box)
        self._fill()
        if text or not self.list.count():
            self._on_new()
            self.text.setPlainText(text)
        else:
            self.list.setCurrentRow(0)

    def _button(self, label: str, slot: object) -> QPushButton:
        button = QPushButton(label)
        use_class(button, "plain")
        # Enter in the name must not press one of them.
        button.setAutoDefault(False)
        button.clicked.connect(slot)
        return button

    def _fill(self, mark: str = "") -> None:
        self.list.blockSignals(True)
        self.list.clear()
        try:
            for template in self._store.templates():
                item = QListWidgetItem(template.name)
                item.setData(Qt.ItemDataRole.UserRole, template)
                self.list.addItem(item)
                if template.name == mark:
                    self.list.setCurrentItem(item)
        except StoreError as error:
            self.failed.emit(as_dict(error))
        self.list.blockSignals(False)
        self._refresh()

    def _marked(self) -> Template | None:
        item = self.list.currentItem()
        template = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        return template if isinstance(template, Template) else None

    @Slot()
    def _refresh(self) -> None:
        self.save.setEnabled(bool(self.name.text().strip()) and bool(exact_text(self.text).strip()))
        self.delete.setEnabled(self._marked() is not None)

    @Slot()
    def _on_current(self) -> None:
        template = self._marked()
        if template is not None:
            self.name.setText(template.name)
            self.text.setPlainText(template.text)
        self._refresh()

    @Slot()
    def _on_new(self) -> None:
        self.list.setCurrentRow(-1)
        self.name.clear()
        self.text.clear()
        self.name.setFocus()

    @Slot()
    def _on_save(self) -> None:
        name, marked = self.name.text().strip(), self._marked()
        try:
            with self._store.db.write():
                if marked is not None and marked.name != name:
                    self._store.delete_template(marked.id)
                self._store.save_template(name, exact_text(self.text))
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self._fill(name)

    @Slot()
    def _on_delete(self) -> None:
        marked = self._marked()
        if marked is None:
            return
        try:
            self._store.delete_template(marked.id)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self._fill()
        self._on_new()
