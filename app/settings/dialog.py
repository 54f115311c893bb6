"""The settings dialog, made from the table. Every change is kept at once; there is no Apply."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.settings.table import Applies, Settings, Spec, specs
from app.text import exact_text
from app.theme.manager import use_class

INT_MAX = 2**31 - 1
LABEL_WIDTH = 170


class SettingsDialog(QDialog):
    """`changed` carries the new Settings. pending: keys that wait for a reload, told beside the button."""

    changed = Signal(object)
    reload = Signal()

    def __init__(self, settings: Settings, pending: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Settings")
        self.resize(560, 480)
        self.settings = settings
        self.fields: dict[str, Field] = {}
        tabs = QTabWidget()
        tabs.setDocumentMode(True)
        forms: dict[str, QVBoxLayout] = {}
        for spec in specs():
            if spec.section not in forms:
                forms[spec.section] = self._tab(tabs, spec.section)
            field = Field(spec, getattr(settings, spec.key))
            field.edited.connect(self._on_edited)
            self.fields[spec.key] = field
            label = QLabel(spec.label)
            label.setBuddy(field.editor)
            label.setFixedWidth(LABEL_WIDTH)
            row = QHBoxLayout()
            row.setSpacing(16)
            row.addWidget(label, 0, Qt.AlignmentFlag.AlignTop)
            row.addWidget(field, 1)
            forms[spec.section].addLayout(row)
        for form in forms.values():
            form.addStretch()
        self._pending = QLabel("Some changes apply when the model is loaded again.")
        use_class(self._pending, "warn")
        self._reload = QPushButton("Reload model")
        use_class(self._reload, "plain")
        self._reload.clicked.connect(self._on_reload)
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.accept)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        reset = box.addButton("Reset to defaults", QDialogButtonBox.ButtonRole.ResetRole)
        reset.clicked.connect(self._on_reset)
        layout = QVBoxLayout(self)
        layout.addWidget(tabs, 1)
        layout.addWidget(self._pending)
        layout.addWidget(self._reload, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(box)
        self.show_pending(pending)

    def show_pending(self, pending: bool) -> None:
        self._pending.setVisible(pending)
        self._reload.setVisible(pending)

    def done(self, result: int) -> None:
        for field in self.fields.values():
            field.flush()
        super().done(result)

    def _tab(self, tabs: QTabWidget, title: str) -> QVBoxLayout:
        page = QWidget()
        form = QVBoxLayout(page)
        form.setContentsMargins(16, 16, 16, 16)
        form.setSpacing(14)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(page)
        tabs.addTab(scroll, title)
        return form

    @Slot(str)
    def _on_edited(self, key: str) -> None:
        try:
            value = self.fields[key].checked()
        except ValueError:
            return  # the field says what is wrong
        self.settings = dataclasses.replace(self.settings, **{key: value})
        self.changed.emit(self.settings)

    @Slot()
    def _on_reset(self) -> None:
        self.settings = Settings()
        for key, field in self.fields.items():
            field.set_value(getattr(self.settings, key))
        self.changed.emit(self.settings)

    @Slot()
    def _on_reload(self) -> None:
        self.reload.emit()


class Field(QWidget):
    """One row: the editor that fits the setting's type, its help, and when it applies."""

    edited = Signal(str)

    def __init__(self, spec: Spec, value: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self.editor = self._make()
        self.editor.setAccessibleName(spec.label)
        self._problem = QLabel()
        use_class(self._problem, "bad")
        self._problem.hide()
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(300)
        self._pause.timeout.connect(self._tell)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self.editor)
        layout.addWidget(self._problem)
        note = spec.help + (" Applies on reload." if spec.applies is Applies.RELOAD else "")
        if note:
            label = QLabel(note.strip())
            label.setWordWrap(True)
            use_class(label, "caption")
            layout.addWidget(label)
        self.set_value(value)

    def value(self) -> Any:
        editor = self.editor
        if isinstance(editor, QCheckBox):
            return editor.isChecked()
        if isinstance(editor, QComboBox):
            return editor.currentData()
        if isinstance(editor, QSpinBox):
            return editor.value()
        if isinstance(editor, QDoubleSpinBox):
            return editor.value() if self.spec.kind is float else int(editor.value())
        if isinstance(editor, QPlainTextEdit):
            return exact_text(editor)
        assert isinstance(editor, QLineEdit)  # what `_make` makes else
        return editor.text().strip()

    def set_value(self, value: Any) -> None:
        """Show a value without telling it."""
        editor = self.editor
        editor.blockSignals(True)
        if isinstance(editor, QCheckBox):
            editor.setChecked(value)
            self._say_on_or_off(value)
        elif isinstance(editor, QComboBox):
            editor.setCurrentIndex(editor.findData(value))
        elif isinstance(editor, QSpinBox | QDoubleSpinBox):
            editor.setValue(value)
        elif isinstance(editor, QPlainTextEdit):
            editor.setPlainText(value)
        elif isinstance(editor, QLineEdit):
            editor.setText(value)
        editor.blockSignals(False)

    def checked(self) -> Any:
        """The edited value as the setting holds it. Raises ValueError when it is not allowed, which the field shows."""
        try:
            value = self.spec.check(self.value())
        except ValueError as error:
            self.show_problem(str(error))
            raise
        self.show_problem("")
        return value

    def show_problem(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.setVisible(bool(text))

    def _make(self) -> QWidget:
        spec = self.spec
        if spec.kind is bool:
            check = QCheckBox("Off")
            check.toggled.connect(self._say_on_or_off)
            check.toggled.connect(self._tell)
            return check
        if spec.choices:
            combo = QComboBox()
            for stored, label in spec.choices:
                combo.addItem(_for_here(label), stored)
            combo.currentIndexChanged.connect(self._tell)
            return combo
        if spec.kind is str:
            if spec.lines:
                area = QPlainTextEdit()
                area.setTabChangesFocus(True)
                area.setFixedHeight(96)
                area.textChanged.connect(self._wait)
                return area
            line = QLineEdit()
            line.textChanged.connect(self._wait)
            return line
        low, high = spec.low or 0, spec.high if spec.high is not None else INT_MAX
        if spec.kind is int and high <= INT_MAX:
            spin = QSpinBox()
            spin.setRange(int(low), int(high))
            spin.valueChanged.connect(self._wait)
            return spin
        # Also for seeds: a QSpinBox holds 31 bits only, a double every whole number up to 53.
        real = QDoubleSpinBox()
        real.setDecimals(0 if spec.kind is int else spec.decimals)
        real.setRange(float(low), float(high))
        real.setSingleStep(spec.step or 1.0)
        real.valueChanged.connect(self._wait)
        return real

    @Slot(bool)
    def _say_on_or_off(self, on: bool) -> None:
        # In words too: a tick on a dark field is easily missed.
        if isinstance(self.editor, QCheckBox):
            self.editor.setText("On" if on else "Off")

    @Slot()
    def _wait(self) -> None:
        self._pause.start()

    @Slot()
    def _tell(self) -> None:
        self.edited.emit(self.spec.key)

    def flush(self) -> None:
        """Tell a change that still waits for the typing to end."""
        if self._pause.isActive():
            self._pause.stop()
            self._tell()


def _for_here(label: str) -> str:
    return label if sys.platform == "darwin" else label.replace("Cmd", "Ctrl")
