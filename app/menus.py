"""The menu bar: one table of actions with roles and shortcuts."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow

Role = QAction.MenuRole


@dataclass(frozen=True, slots=True)
class Entry:
    """slot: name of the window's method. "Ctrl" is Cmd on a Mac. None in a menu is a separator."""

    key: str
    text: str
    slot: str
    shortcuts: tuple[str, ...] = ()
    role: QAction.MenuRole = Role.NoRole
    checkable: bool = False


MENUS: tuple[tuple[str, tuple[Entry | None, ...]], ...] = (
    (
        "&File",
        (
            Entry("new", "New Chat", "new_chat", ("Ctrl+N",)),
            Entry("open", "Open Model…", "open_model", ("Ctrl+O",)),
            Entry("reload", "Reload Model", "reload_model"),
            None,
            Entry("export_chat", "Export Chat…", "export_chat", ("Ctrl+E",)),
            Entry("export_all", "Export All Chats…", "export_all"),
            Entry("import_chats", "Import Chats…", "import_chats"),
            Entry("export_log", "Export Session Log…", "export_log", ("Ctrl+Shift+E",)),
            None,
            Entry("settings", "Settings…", "open_settings", ("Ctrl+,",), Role.PreferencesRole),
            Entry("close", "Close Window", "close", ("Ctrl+W",)),
            Entry("quit", "Quit Pacenote", "quit", ("Ctrl+Q",), Role.QuitRole),
        ),
    ),
    (
        "&Edit",
        (
            Entry("undo_delete", "Undo Delete", "undo_delete", ("Ctrl+Shift+Z",)),
            Entry("copy_last", "Copy Last Reply", "copy_last", ("Ctrl+Shift+C",)),
            None,
            Entry("find", "Find in Chat…", "find_in_chat", ("Ctrl+F",)),
            Entry("search", "Search Chats", "search_chats", ("Ctrl+K",)),
        ),
    ),
    (
        "&Chat",
        (
            Entry("stop", "Stop", "stop", ("Ctrl+.", "Esc")),
            Entry("again", "Regenerate", "regenerate", ("Ctrl+R",)),
            Entry("go_on", "Continue", "go_on", ("Ctrl+Shift+R",)),
            Entry("edit_last", "Edit Last Message", "edit_last", ("Ctrl+Shift+Up",)),
            None,
            Entry("attach", "Attach Files…", "attach", ("Ctrl+Shift+A",)),
            Entry("save_template", "Save as Template…", "save_template"),
            Entry("manage_templates", "Prompt Templates…", "manage_templates", ("Ctrl+Shift+T",)),
            None,
            Entry("chat_settings", "Chat Settings…", "chat_settings", ("Ctrl+Shift+,",)),
            Entry("rename", "Rename Chat…", "rename_chat"),
            # No shortcut: in a text field the key deletes a word. The list of chats has its own.
            Entry("delete", "Delete Chat", "delete_chat"),
        ),
    ),
    (
        "&View",
        (
            Entry("sidebar", "Sidebar", "toggle_sidebar", ("Ctrl+Alt+S",), checkable=True),
            Entry("panel", "Pace Panel", "toggle_panel", ("Ctrl+Alt+P",), checkable=True),
            Entry("speculation_view", "Speculation View", "speculation_view", ("Ctrl+Alt+D",), checkable=True),
            None,
            Entry("latest", "Jump to Latest", "jump_to_latest", ("Ctrl+End",)),
        ),
    ),
    (
        "&Window",
        (
            Entry("minimize", "Minimize", "showMinimized", ("Ctrl+M",)),
            Entry("zoom", "Zoom", "zoom"),
        ),
    ),
    (
        "&Help",
        (
            Entry("self_test", "Run Self-Test…", "self_test"),
            Entry("crash_log", "Show Crash Log", "show_crash_log"),
            Entry("licences", "Licences", "show_licences"),
            Entry("about", "About Pacenote", "about", (), Role.AboutRole),
        ),
    ),
)


def build(window: QMainWindow) -> dict[str, QAction]:
    """Fill the window's menu bar. Returns the actions by key."""
    actions: dict[str, QAction] = {}
    for title, entries in MENUS:
        menu = window.menuBar().addMenu(title)
        for entry in entries:
            if entry is None:
                menu.addSeparator()
                continue
            action = QAction(entry.text, window)
            action.setShortcuts([QKeySequence(shortcut) for shortcut in entry.shortcuts])
            action.setMenuRole(entry.role)
            action.setCheckable(entry.checkable)
            action.triggered.connect(getattr(window, entry.slot))
            menu.addAction(action)
            actions[entry.key] = action
    return actions
