"""Help, Run Self-Test: the report of a fresh process, to read, to copy and to save."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QByteArray, QProcess, QTemporaryDir, Signal, Slot
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.errorcard import as_dict
from app.theme.manager import code_font, use_class
from engine import KnownError, own_command, self_test_text

NOTE = (
    "Checks this installation in a process of its own; that takes about a minute and a second copy of the demo model. "
    "Nothing is sent anywhere. The report names your machine and folders, and holds no text of your chats."
)
ASK_MS, KILL_MS = 3000, 2000
"""How long a process may take to end that was asked to, and one that was killed."""


class SelfTestDialog(QDialog):
    """Starts when it is made. Closing it stops the test.

    command: gives the command line for a file that the report is to be written to, as JSON.
    """

    failed = Signal(dict)

    def __init__(self, parent: QWidget | None = None, command: Callable[[str], list[str]] | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Self-Test")
        self.resize(1000, 600)
        self._folder = QTemporaryDir()
        self.note = QLabel(NOTE)
        self.note.setWordWrap(True)
        use_class(self.note, "caption")
        self.report = QPlainTextEdit()
        self.report.setReadOnly(True)
        self.report.setAccessibleName("Report of the self-test")
        self.report.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.report.setFont(code_font())
        self.status = QLabel("Running…")
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.reject)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        self.copy = box.addButton("Copy Report", QDialogButtonBox.ButtonRole.ActionRole)
        self.save = box.addButton("Save as JSON…", QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.clicked.connect(self._on_copy)
        self.save.clicked.connect(self._on_save)
        self.copy.setEnabled(False)
        self.save.setEnabled(False)
        layout = QVBoxLayout(self)
        layout.addWidget(self.note)
        layout.addWidget(self.report, 1)
        layout.addWidget(self.status)
        layout.addWidget(box)
        self._process = QProcess(self)
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)
        program, *arguments = (command or _command)(self._folder.filePath("report.json"))
        self._process.start(program, arguments)

    @property
    def running(self) -> bool:
        return self._process.state() is not QProcess.ProcessState.NotRunning

    def done(self, result: int) -> None:
        """Closed, however: as Ctrl-C in a terminal, so that its own process ends as well."""
        self._process.blockSignals(True)
        if self.running:
            os.kill(self._process.processId(), signal.SIGINT)
            if not self._process.waitForFinished(ASK_MS):
                self._process.kill()
                self._process.waitForFinished(KILL_MS)
        super().done(result)

    @Slot()
    def _on_output(self) -> None:
        while self._process.canReadLine():
            self._show(self._process.readLine())

    def _show(self, words: QByteArray) -> None:
        if text := bytes(words.data()).decode("utf-8", errors="replace").rstrip():
            self.report.appendPlainText(text)

    @Slot()
    def _on_finished(self) -> None:
        try:
            # The same words again. A bundle's launcher may send what is printed to the system's log instead of here.
            self.report.setPlainText(self_test_text(json.loads(self._json().read_text("utf-8"))))
        except (OSError, ValueError):  # it ended before it was written
            self._show(self._process.readAllStandardOutput())
            self._show(self._process.readAllStandardError())
        code = self._process.exitCode()
        passed = {0: "No check failed.", 1: "Some checks failed: see FAILED above."}
        self.status.setText(passed.get(code, f"The self-test ended early, with status {code}."))
        self.copy.setEnabled(True)
        self.save.setEnabled(self._json().exists())

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self.status.setText(f"The self-test could not be started: {self._process.errorString()}")

    def _json(self) -> Path:
        return Path(self._folder.filePath("report.json"))

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report.toPlainText())
        self.status.setText("Copied.")

    @Slot()
    def _on_save(self) -> None:
        name, _ = QFileDialog.getSaveFileName(self, "Save the report", str(Path.home() / "pacenote-self-test.json"))
        if not name:
            return
        try:
            Path(name).write_bytes(self._json().read_bytes())
        except OSError as error:
            told = KnownError("The report could not be saved.", todo="Choose another folder.", detail=str(error))
            self.failed.emit(as_dict(told))
            return
        self.status.setText(f"Saved to {name}")


def _command(file: str) -> list[str]:
    return own_command(["--self-test", "--out", file])
