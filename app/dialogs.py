"""Dialogs that need no class of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app import __version__
from app.store import Repository, export
from engine import KnownError

MARKDOWN, JSON = "Markdown (*.md)", "JSON, the whole tree (*.json)"
MOST_IMPORT_BYTES = 1 << 30
"""Read as a whole; a longer file is something else."""


def show_bug(parent: QWidget, trace: str, title: str = "Pacenote made a mistake") -> QMessageBox:
    """A bug of ours. Not modal: the chats stay usable."""
    return _box(parent, title, "Your chats are saved. The details help whoever fixes it.", trace)


def show_notice(parent: QWidget, title: str, text: str) -> QMessageBox:
    return _box(parent, title, text, "")


def show_crash_log(parent: QWidget, path: Path | None) -> QMessageBox:
    """The crash before this start, if one was recorded."""
    previous = path.with_name("crash.previous.log") if path is not None else None
    if previous is None or not previous.exists():
        return show_notice(parent, "No crash was recorded.", "")
    text = previous.read_text("utf-8", errors="replace")
    return _box(parent, "The last crash that was recorded", f"Kept in {previous}", text)


def cannot_start(error: KnownError) -> None:
    """Modal: there is no window behind it."""
    box = QMessageBox(QMessageBox.Icon.Critical, "Pacenote", error.what)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(f"{error.kept} {error.todo}".strip())
    box.setDetailedText(error.detail)
    box.exec()


def start_empty(error: KnownError) -> bool:
    """Ask whether a damaged conversations file is to be moved aside. Modal: there is no window behind it."""
    box = QMessageBox(QMessageBox.Icon.Critical, "Pacenote", error.what)
    box.setInformativeText(
        "Pacenote can move it aside and start with no chats. The damaged file is kept beside the new one, as "
        "chats.db.damaged and the date."
    )
    box.setDetailedText(error.detail)
    fresh = box.addButton("Move aside and start empty", QMessageBox.ButtonRole.AcceptRole)
    leave = box.addButton("Quit", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(leave)
    box.exec()
    return box.clickedButton() is fresh


def about(parent: QWidget) -> QMessageBox:
    return _box(parent, f"Pacenote {__version__}", "The same words, sooner. Runs entirely on this computer.", "")


def export_chats(parent: QWidget, store: Repository, conversations: list[int], suggestion: str) -> str:
    """Ask where, then write: one chat as Markdown or JSON, several as JSON. Returns the file's name.

    Raises KnownError.
    """
    kinds = (MARKDOWN, JSON) if len(conversations) == 1 else (JSON,)
    name, kind = QFileDialog.getSaveFileName(parent, "Export", str(Path.home() / suggestion), ";;".join(kinds))
    if not name:
        return ""
    target = Path(name)
    ending = target.suffix.lower()
    if ending != ".json" and not (ending == ".md" and MARKDOWN in kinds):
        # A name without an ending is of the kind that was chosen. A title may hold a dot.
        ending = ".md" if kind == MARKDOWN else ".json"
        target = target.with_name(target.name + ending)
        if target.exists():
            raise KnownError(
                f"{target.name} is there already.",
                kept="Nothing was written.",
                todo="Choose another name, or this one with its ending to replace the file.",
            )
    with _waiting():
        if ending == ".md":
            export.write(export.to_markdown(store, conversations[0]), target)
        else:
            export.write(export.to_json(store, conversations), target)
    return target.name


def import_chats(parent: QWidget, store: Repository) -> list[int] | None:
    """Ask for an export and add its chats. Returns their ids; None when none was chosen. Raises KnownError."""
    name, _ = QFileDialog.getOpenFileName(parent, "Import chats", str(Path.home()), "JSON (*.json);;All files (*)")
    return read_chats(store, name) if name else None


def read_chats(store: Repository, name: str) -> list[int]:
    """Add the chats of an export. Returns their ids. Raises KnownError."""
    path = Path(name)
    try:
        if not path.is_file():  # reading a pipe may never end
            raise OSError("it is no file, or is gone")
        if path.stat().st_size > MOST_IMPORT_BYTES:
            raise OSError(f"it has {path.stat().st_size / 2**30:.1f} GiB, and no export is that long")
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KnownError(
            f"{path.name} could not be read.", kept="Nothing was added.", todo="Choose another one.", detail=str(error)
        ) from error
    with _waiting():
        return export.from_json(store, text)


@contextmanager
def _waiting() -> Iterator[None]:
    """The pointer says that it takes a while: 70 MB of chats need ten seconds, all of them or none."""
    QGuiApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)
    try:
        yield
    finally:
        QGuiApplication.restoreOverrideCursor()


def quit_anyway(parent: QWidget, replies: int) -> bool:
    """Ask before replies that the disk would not take are lost."""
    box = QMessageBox(QMessageBox.Icon.NoIcon, "Pacenote", "A reply could not be saved", parent=parent)
    box.setInformativeText(
        f"{replies} finished and not on disk, which is full or cannot be written. If you quit now, that text is lost."
    )
    stay = box.addButton("Keep open", QMessageBox.ButtonRole.RejectRole)
    leave = box.addButton("Quit anyway", QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(stay)
    box.exec()
    return box.clickedButton() is leave


def discard_changes(parent: QWidget, names: list[str]) -> bool:
    """Ask before changes that were not saved are lost."""
    box = QMessageBox(QMessageBox.Icon.NoIcon, "Pacenote", "Some changes are not saved", parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(", ".join(names))
    stay = box.addButton("Go on editing", QMessageBox.ButtonRole.RejectRole)
    leave = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(stay)
    box.exec()
    return box.clickedButton() is leave


def announce(widget: QWidget, text: str) -> None:
    """Tell a screen reader once; when none listens, nothing happens."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


def _box(parent: QWidget, title: str, text: str, detail: str) -> QMessageBox:
    box = QMessageBox(QMessageBox.Icon.NoIcon, "Pacenote", title, QMessageBox.StandardButton.Close, parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(text)
    if detail:
        box.setDetailedText(detail)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setModal(False)
    box.show()
    return box
