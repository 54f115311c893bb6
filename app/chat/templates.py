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

from app import dialogs
from app.errorcard import as_dict
from app.store import Repository, StoreError, Template
from app.text import exact_text
from app.theme.manager import use_class

HELP = "{{Anything in double braces}} is marked when the template is used; Tab goes to the next one."
DELETED = "Deleted. Save keeps it after all."
LONGEST_NAME = 80
NEW = 0
"""In place of an id, for the template that is not saved yet."""


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
    """A list at the left, the marked template at the right. Save writes it; nothing else does.

    Changes that are not saved stay while another template is looked at, and closing asks about them.
    """

    failed = Signal(dict)

    def __init__(self, store: Repository, text: str = "", parent: QWidget | None = None) -> None:
        """text: of a new template, that is to be named and saved."""
        super().__init__(parent)
        self._store = store
        # What is in the editors and where it came from: an id or NEW, and its name and text there.
        self._shown, self._saved = NEW, ("", "")
        self._changed: dict[int, tuple[str, str]] = {}
        self.setWindowTitle("Prompt Templates")
        self.resize(640, 420)
        self.list = QListWidget()
        self.list.setAccessibleName("Templates")
        self.list.setFixedWidth(190)
        self.list.currentItemChanged.connect(self._on_current)
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name")
        self.name.setAccessibleName("Name of the template")
        self.name.setMaxLength(LONGEST_NAME)
        self.name.textChanged.connect(self._refresh)
        self.text = QPlainTextEdit()
        self.text.setPlaceholderText("Text")
        self.text.setAccessibleName("Text of the template")
        self.text.setTabChangesFocus(True)
        self.text.textChanged.connect(self._refresh)
        self.note = QLabel(HELP)
        self.note.setWordWrap(True)
        use_class(self.note, "caption")
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
        right.addWidget(self.note)
        right.addWidget(self.save, 0, Qt.AlignmentFlag.AlignRight)
        columns = QHBoxLayout()
        columns.addLayout(left)
        columns.addLayout(right, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(columns, 1)
        layout.addWidget(box)
        self._fill()
        if text or not self.list.count():
            self._show(NEW, ("", text))
            self.name.setFocus()
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
                    self._shown, self._saved = template.id, (template.name, template.text)
        except StoreError as error:
            self.failed.emit(as_dict(error))
        self.list.blockSignals(False)
        self._refresh()

    def _templates(self) -> list[Template]:
        return [self.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(self.list.count())]

    def _marked(self) -> Template | None:
        item = self.list.currentItem()
        template = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        return template if isinstance(template, Template) else None

    def _edited(self) -> tuple[str, str]:
        """Name and text as they stand in the editors. A name is one line."""
        return " ".join(self.name.text().split()), exact_text(self.text)

    def _show(self, shown: int, saved: tuple[str, str]) -> None:
        """Another template comes into the editors. What was changed in them before is kept."""
        if self._edited() != self._saved:
            self._changed[self._shown] = self._edited()
        self._shown, self._saved = shown, saved
        name, text = self._changed.pop(shown, saved)
        self.name.setText(name)
        self.text.setPlainText(text)
        self.note.setText(HELP)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        name, text = self._edited()
        self.save.setEnabled(bool(name) and bool(text.strip()))
        taken = any(one.name == name and one.id != self._shown for one in self._templates())
        self.save.setText("Replace" if taken else "Save")
        self.save.setToolTip(f"There is a template “{name}” already" if taken else "")
        self.delete.setEnabled(self._marked() is not None)

    @Slot()
    def _on_current(self) -> None:
        template = self._marked()
        if template is not None:
            self._show(template.id, (template.name, template.text))

    @Slot()
    def _on_new(self) -> None:
        self.list.setCurrentRow(-1)
        self._show(NEW, ("", ""))
        self.name.setFocus()

    @Slot()
    def _on_save(self) -> None:
        (name, text), marked = self._edited(), self._marked()
        try:
            with self._store.db.write():
                if marked is not None and marked.name != name:
                    self._store.delete_template(marked.id)
                self._store.save_template(name, text)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        # What it replaced is no more, nor are changes of that.
        replaced = [one.id for one in self._templates() if one.name == name]
        for number in (self._shown, *replaced):
            self._changed.pop(number, None)
        self.note.setText(HELP)
        self._fill(name)

    @Slot()
    def _on_delete(self) -> None:
        """Name and text stay in the editors, so that Save brings it back."""
        marked = self._marked()
        if marked is None:
            return
        try:
            self._store.delete_template(marked.id)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self.list.blockSignals(True)
        self.list.setCurrentRow(-1)
        self.list.blockSignals(False)
        self._shown, self._saved = NEW, self._edited()
        self._fill()
        self.note.setText(DELETED)

    def reject(self) -> None:
        changed = dict(self._changed)
        if self._edited() != self._saved:
            changed[self._shown] = self._edited()
        known = {one.id: one.name for one in self._templates()}
        names = [known.get(number) or name or "A template without a name" for number, (name, _) in changed.items()]
        if not names or dialogs.discard_changes(self, names):
            super().reject()
