"""What one chat has of its own: its system prompt, and sampling where it differs from the settings."""

from __future__ import annotations

import dataclasses
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.chat.options import OWN, ChatOptions, default_options
from app.settings.dialog import LABEL_WIDTH, Field
from app.settings.table import Settings, specs
from app.theme.manager import use_class


class ChatSettingsDialog(QDialog):
    """`changed` carries the chat and its new ChatOptions, with every change.

    A file that is opened with Pacenote may bring another chat under the dialog, so it knows its own.
    """

    changed = Signal(int, object)

    def __init__(self, chat: int, options: ChatOptions, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chat = chat
        self.setWindowTitle("Chat Settings")
        self.resize(560, 440)
        self.options = options
        self._settings = settings
        self.fields: dict[str, Field] = {}
        self.resets: dict[str, QPushButton] = {}
        layout = QVBoxLayout(self)
        layout.setSpacing(14)
        table = {spec.key: spec for spec in specs()}
        for spec in [table[key] for key in ("system_prompt", *OWN)]:
            # What the settings say of the system prompt is about chats to come.
            here = dataclasses.replace(spec, help="" if spec.lines else spec.help)
            field = Field(here, self._value(spec.key))
            field.edited.connect(self._on_edited)
            self.fields[spec.key] = field
            label = QLabel(spec.label)
            label.setBuddy(field.editor)
            label.setFixedWidth(LABEL_WIDTH)
            reset = QPushButton("Reset")
            use_class(reset, "small")
            reset.setAutoDefault(False)
            reset.setObjectName(spec.key)
            reset.setAccessibleName(f"{spec.label}: as in the settings")
            reset.clicked.connect(self._on_reset)
            self.resets[spec.key] = reset
            row = QHBoxLayout()
            row.setSpacing(16)
            row.addWidget(label, 0, Qt.AlignmentFlag.AlignTop)
            row.addWidget(field, 1)
            row.addWidget(reset, 0, Qt.AlignmentFlag.AlignTop)
            layout.addLayout(row)
        note = QLabel("For this chat only, from the next reply on. What is not changed here follows the settings.")
        note.setWordWrap(True)
        use_class(note, "caption")
        layout.addWidget(note)
        layout.addStretch()
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.accept)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        layout.addWidget(box)
        self._refresh()

    def done(self, result: int) -> None:
        for field in self.fields.values():
            field.flush()
        super().done(result)

    def _value(self, key: str) -> Any:
        if key == "system_prompt":
            return self.options.system_prompt
        return self.options.sampler.get(key, getattr(self._settings, key))

    @Slot(str)
    def _on_edited(self, key: str) -> None:
        try:
            value = self.fields[key].checked()
        except ValueError:
            return  # the field says what is wrong
        self._tell(key, value)

    @Slot()
    def _on_reset(self) -> None:
        key = self.sender().objectName()
        default = default_options(self._settings).system_prompt if key == "system_prompt" else None
        self._tell(key, default)
        self.fields[key].set_value(self._value(key))
        self.fields[key].show_problem("")

    def _tell(self, key: str, value: Any) -> None:
        """value: None follows the settings."""
        if key == "system_prompt":
            self.options = dataclasses.replace(self.options, system_prompt=value)
        else:
            own = {name: kept for name, kept in self.options.sampler.items() if name != key}
            self.options = dataclasses.replace(self.options, sampler=own if value is None else {**own, key: value})
        self._refresh()
        self.changed.emit(self._chat, self.options)

    def _refresh(self) -> None:
        default = default_options(self._settings)
        for key, reset in self.resets.items():
            same = self.options.system_prompt == default.system_prompt
            reset.setEnabled(not same if key == "system_prompt" else key in self.options.sampler)
