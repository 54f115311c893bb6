"""The list of conversations, by day, with search."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QColor, QGuiApplication, QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.store.values import Conversation
from app.theme.icons import icon
from app.theme.manager import current, text_font, use_class
from app.theme.tokens import BODY, CAPTION, SIDEBAR_WIDTH

Index = QModelIndex | QPersistentModelIndex
ID_ROLE = int(Qt.ItemDataRole.UserRole)
ROOT = QModelIndex()


class ConversationModel(QAbstractListModel):
    """Rows are day headings (str) and conversations."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[str | Conversation] = []
        self.live: set[int] = set()

    def show(self, conversations: list[Conversation], today: date | None = None) -> None:
        """conversations: newest first."""
        today = today or date.today()
        self.beginResetModel()
        self._rows = []
        heading = ""
        for conversation in conversations:
            day = day_name(datetime.fromtimestamp(conversation.updated_at).date(), today)
            if day != heading:
                heading = day
                self._rows.append(day)
            self._rows.append(conversation)
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row if isinstance(row, str) else row.title or "New chat"
        if role == ID_ROLE:
            return None if isinstance(row, str) else row.id
        if role == Qt.ItemDataRole.AccessibleTextRole and not isinstance(row, str) and row.id in self.live:
            return f"{row.title}, a reply is being written"
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        heading = isinstance(self._rows[index.row()], str)
        return Qt.ItemFlag.NoItemFlags if heading else Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def first(self) -> int | None:
        """The conversation at the top."""
        return next((row.id for row in self._rows if not isinstance(row, str)), None)

    def index_of(self, number: int) -> QModelIndex:
        for row, entry in enumerate(self._rows):
            if not isinstance(entry, str) and entry.id == number:
                return self.index(row)
        return QModelIndex()


class Sidebar(QFrame):
    """Signals carry conversation ids."""

    chosen = Signal(int)
    new_chat = Signal()
    searched = Signal(str)
    rename = Signal(int)
    delete = Signal(int)
    settings = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setFixedWidth(SIDEBAR_WIDTH)
        self.model = ConversationModel(self)
        self._new = _quiet("New chat", "New chat")
        self._new.clicked.connect(self.new_chat)
        self._settings = _quiet("Settings", "Settings")
        self._settings.clicked.connect(self.settings)
        self.search = QLineEdit()
        self.search.setObjectName("search")
        self.search.setPlaceholderText("Search chats")
        self.search.setAccessibleName("Search chats")
        self.search.setClearButtonEnabled(True)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(120)
        self._pause.timeout.connect(self._on_search)
        self.search.textChanged.connect(self._on_typed)
        self.search.returnPressed.connect(self._on_enter)
        self.list = QListView()
        self.list.setObjectName("conversations")
        self.list.setAccessibleName("Chats")
        self.list.setModel(self.model)
        self.list.setItemDelegate(_Row(self.list))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._on_menu)
        # Not the current index: the list makes its first row current by itself when it gets the focus.
        self.list.selectionModel().selectionChanged.connect(self._on_selected)
        self.list.clicked.connect(self._on_clicked)
        self._just_chosen = False
        self._menu_for = 0
        self._rename = QAction("Rename…", self)
        self._rename.triggered.connect(self._on_rename)
        self._delete = QAction("Delete", self)
        self._delete.triggered.connect(self._on_delete)
        # Of the list only: in a text field the same key deletes a word, or a line on a Mac.
        self._delete_key = QShortcut(QKeySequence("Ctrl+Backspace"), self.list)
        self._delete_key.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._delete_key.activated.connect(self._on_delete_key)
        self._quiet = False
        top = QHBoxLayout()
        top.setContentsMargins(10, 10, 10, 2)
        top.addWidget(self._new)
        top.addStretch()
        search = QHBoxLayout()
        search.setContentsMargins(12, 2, 12, 6)
        search.addWidget(self.search)
        bottom = QHBoxLayout()
        bottom.setContentsMargins(10, 4, 10, 8)
        bottom.addWidget(self._settings)
        bottom.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 1, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addLayout(search)
        layout.addWidget(self.list, 1)
        layout.addLayout(bottom)
        self.refresh_theme()

    def show_conversations(self, conversations: list[Conversation], selected: int, live: set[int]) -> None:
        """Fill the list. Does not emit `chosen`."""
        self._quiet = True
        self.model.live = live
        self.model.show(conversations)
        index = self.model.index_of(selected)
        if index.isValid():
            self.list.setCurrentIndex(index)
        else:
            self.list.selectionModel().clear()
        self._quiet = False

    def refresh_theme(self) -> None:
        self._new.setIcon(icon("plus", current().text_soft))
        self._settings.setIcon(icon("settings", current().text_soft))
        self.list.viewport().update()

    @Slot()
    def _on_typed(self) -> None:
        self._pause.start()

    @Slot()
    def _on_search(self) -> None:
        self.searched.emit(self.search.text())

    @Slot()
    def _on_selected(self) -> None:
        number = self._selected()
        if number is not None and not self._quiet:
            # Chosen with the press of a button, whose click follows.
            self._just_chosen = bool(QGuiApplication.mouseButtons())
            self.chosen.emit(number)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        """The open chat is chosen again: a search goes to another message of it."""
        again, self._just_chosen = not self._just_chosen, False
        if again and self.search.text().strip() and index.data(ID_ROLE) is not None:
            self.chosen.emit(index.data(ID_ROLE))

    @Slot()
    def _on_enter(self) -> None:
        """The first chat that was found."""
        self._pause.stop()
        self._on_search()
        number = self.model.first()
        if not self.search.text().strip() or number is None:
            return
        if number == self._selected():
            self.chosen.emit(number)
        else:
            self.list.setCurrentIndex(self.model.index_of(number))

    def _selected(self) -> int | None:
        """The chat of the row that is marked."""
        marked = self.list.selectedIndexes()
        return marked[0].data(ID_ROLE) if marked else None

    @Slot(QPoint)
    def _on_menu(self, where: QPoint) -> None:
        number = self.list.indexAt(where).data(ID_ROLE)
        if number is None:
            return
        self._menu_for = number
        menu = QMenu(self)
        menu.addAction(self._rename)
        menu.addAction(self._delete)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.list.viewport().mapToGlobal(where))

    @Slot()
    def _on_rename(self) -> None:
        self.rename.emit(self._menu_for)

    @Slot()
    def _on_delete(self) -> None:
        self.delete.emit(self._menu_for)

    @Slot()
    def _on_delete_key(self) -> None:
        """Deletes the row that is marked. A chat that the search hides has none."""
        number = self._selected()
        if number is not None:
            self.delete.emit(number)


class _Row(QStyledItemDelegate):
    """Headings in captions; conversations with a soft block when selected and a dot while a reply is written."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(SIDEBAR_WIDTH - 20, 30 if index.data(ID_ROLE) is None else 32)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        roles = current()
        number = index.data(ID_ROLE)
        area: QRect = option.rect.adjusted(8, 1, -8, -1)
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if number is None:
            painter.setFont(text_font(CAPTION[0]))
            painter.setPen(QColor(roles.text_soft))
            painter.drawText(area.adjusted(8, 8, -8, 0), Qt.AlignmentFlag.AlignVCenter, index.data())
        else:
            selected = bool(state & QStyle.StateFlag.State_Selected)
            hovered = bool(state & QStyle.StateFlag.State_MouseOver)
            if selected or hovered:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(roles.line if selected else roles.bg_raised))
                painter.drawRoundedRect(area, 6, 6)
            if selected and state & QStyle.StateFlag.State_HasFocus:
                painter.setPen(QColor(roles.accent))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(area, 6, 6)
            inner = area.adjusted(8, 0, -8, 0)
            model = index.model()
            if isinstance(model, ConversationModel) and number in model.live:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(roles.accent))
                painter.drawEllipse(inner.right() - 5, inner.center().y() - 3, 6, 6)
                inner.setRight(inner.right() - 14)
            painter.setFont(text_font(BODY[0] - 1))
            painter.setPen(QColor(roles.text))
            text = painter.fontMetrics().elidedText(index.data(), Qt.TextElideMode.ElideRight, inner.width())
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.restore()


def day_name(day: date, today: date) -> str:
    """The heading under which a day's chats stand."""
    days = (today - day).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days < 7:
        return "This week"
    if day.year == today.year:
        return day.strftime("%B")
    return day.strftime("%B %Y")


def _quiet(text: str, name: str) -> QToolButton:
    button = QToolButton()
    use_class(button, "quiet")
    button.setText(text)
    button.setAccessibleName(name)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    return button
