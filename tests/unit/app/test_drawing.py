"""What the transcript does not draw again, and that nobody can see it: scrolling, growing, views used again."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import collector
from app.chat.item import Item
from app.chat.markdown.code import CodeBlock
from app.chat.message import MessageView
from app.chat.reply import ReplyView, view_for
from app.chat.transcript import Transcript
from app.measure import _answer
from app.store import Attachment
from app.store.values import State
from app.theme import Theme
from tests.unit.app import dump

TEXT = _answer(9000)


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    made = Theme(qapp, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def transcript(theme: Theme, transcript: Transcript) -> Transcript:
    """In the light theme."""
    return transcript


def settle(transcript: Transcript) -> None:
    """Draw all that waits, make what is near the view, and paint."""
    for _ in range(40):
        transcript.prepare_next()
        if not transcript.up_to_date:
            transcript.draw_now()
    transcript._prepare.stop()
    for _ in range(5):
        QApplication.processEvents()


def on_screen(transcript: Transcript) -> QImage:
    return transcript.screen().grabWindow(transcript.winId()).toImage().convertToFormat(QImage.Format.Format_RGB32)


def drawn_anew(transcript: Transcript) -> QImage:
    return transcript.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_what_was_moved_on_screen_is_what_would_be_drawn(transcript: Transcript, theme: Theme, mode: str) -> None:
    """Scrolling moves pixels, and a part that grows keeps those it has. Nothing stale may stay, whatever happens."""
    theme.set_mode(mode)
    luck = random.Random(3)
    transcript.set_items([Item(n, "assistant" if n % 2 else "user", TEXT[n * 300 : n * 300 + 700]) for n in range(20)])
    live = Item(100, "assistant", "", state=State.STREAMING)
    transcript.append(live)
    bar = transcript.verticalScrollBar()
    for step in range(60):
        luck.choice(
            [
                lambda: setattr(live, "content", TEXT[: len(live.content) + luck.randint(1, 300)]),
                lambda: bar.setValue(bar.value() + luck.choice([-600, -120, -40, 40, 120, 600, 3, -7])),
                transcript.jump_to_end,
                lambda: transcript.resize(luck.choice([800, 700, 620]), luck.choice([600, 500])),
            ]
        )()
        transcript.refresh(100)
        settle(transcript)
        assert on_screen(transcript) == drawn_anew(transcript), f"after step {step}"


class Painted(QObject):
    """Pixels painted of a widget."""

    def __init__(self) -> None:
        super().__init__()
        self.pixels = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.pixels += sum(r.width() * r.height() for r in event.region())  # type: ignore[attr-defined]
        return False


def test_a_line_more_does_not_draw_the_window_anew(transcript: Transcript) -> None:
    """Counted: all of the view was drawn with every line that came, half of the time that a reply's drawing took."""
    live = Item(1, "assistant", "A line of words.\n\n" * 30, state=State.STREAMING)
    transcript.set_items([live])
    settle(transcript)
    painted = Painted()
    transcript.viewport().installEventFilter(painted)
    for n in range(20):
        live.content += f"Line {n} of words.\n\n"
        transcript.refresh(1)
        settle(transcript)
    whole = transcript.viewport().width() * transcript.viewport().height()
    assert transcript.verticalScrollBar().value() == transcript.verticalScrollBar().maximum()
    assert 0 < painted.pixels < 20 * whole / 3


def test_a_long_block_of_code_grows_without_being_drawn_anew(transcript: Transcript) -> None:
    live = Item(1, "assistant", "```py\n", state=State.STREAMING)
    transcript.set_items([live])
    settle(transcript)
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    block = view.body.parts[0]
    assert isinstance(block, CodeBlock)
    painted = Painted()
    block.installEventFilter(painted)
    for n in range(30):
        live.content += f"x = {n}\n"
        transcript.refresh(1)
        settle(transcript)
    assert 0 < painted.pixels < 30 * block.width() * 100


@pytest.mark.parametrize(
    ("line", "wide"), [("x" * 40, False), ("\t" * 30 + "x", True), ("漢" * 300, True), ("é" * 300, True)]
)
def test_a_wide_line_of_code_leaves_room_for_the_bar_under_the_last(
    transcript: Transcript, line: str, wide: bool
) -> None:
    """Widths were counted in letters: tabs and Chinese had a scroll bar that covered the last line."""
    transcript.set_items([Item(1, "assistant", f"```\n{line}\nlast\n```")])
    settle(transcript)
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    block = view.body.parts[0]
    assert isinstance(block, CodeBlock)
    edit = block._edit
    assert edit.horizontalScrollBar().isVisible() is wide
    assert edit.viewport().height() >= 2 * edit.fontMetrics().lineSpacing()


FIRST = Item(1, "assistant", TEXT[:2500], reasoning="Let me think.\n\n- one", caption="12 tokens", branches=3, branch=2)
FIRST.state, FIRST.end_reason, FIRST.check = State.STOPPED, "stopped", "Verified."
OTHERS = [
    Item(2, "assistant", ""),
    Item(2, "assistant", "One line."),
    Item(2, "assistant", TEXT[1000:4000], caption="9 tokens", can_check=True),
    Item(2, "assistant", "| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n```\nno language\n```\n\n```py\nx = 1\n```"),
    Item(2, "assistant", "answer", reasoning="why"),
    Item(2, "assistant", "א ב ג\n\n1. אחד\n\n```\n" + "x" * 400 + "\n```", state=State.INTERRUPTED),
]
USERS = [
    Item(2, "user", "short"),
    Item(2, "user", "word " * 300, branches=2),
    Item(2, "user", "a\n\nb", attachments=(Attachment("notes.txt", "text"),)),
    Item(2, "user", "", attachments=(Attachment("a.txt", "text"), Attachment("b.txt", "text"))),
    Item(2, "user", "שלום עולם"),
]


def picture(view: MessageView, width: int = 600) -> QImage:
    view.resize(width, view.height_for(width))
    view.place()
    view.show()
    QApplication.processEvents()  # scroll bars come and go with the next turn
    return view.grab().toImage()


@pytest.mark.parametrize("item", OTHERS, ids=range(len(OTHERS)))
def test_a_reply_in_a_used_view_looks_like_one_in_a_new_view(transcript: Transcript, item: Item) -> None:
    """Views are used again, because to make one takes several times as long. Nothing of the former may be left."""
    used, new = view_for(FIRST, transcript.viewport()), view_for(item, transcript.viewport())
    assert isinstance(used, ReplyView)
    assert isinstance(new, ReplyView)
    used.toggle_reasoning()
    used._actions.set_near(True)
    picture(used)
    assert used.reusable
    used.hide()
    used.show_item(item)
    for view in (used, new):
        while view.behind:
            view.refresh()
    assert dump.body(used.body) == dump.body(new.body)
    assert picture(used) == picture(new)
    assert [b.isHidden() for b in used._actions._buttons.values()][:4] == [
        b.isHidden() for b in new._actions._buttons.values()
    ]


def test_parts_that_wait_for_use_do_not_keep_the_colours_of_another_theme(transcript: Transcript, theme: Theme) -> None:
    theme.set_mode("light")
    view = view_for(Item(1, "assistant", "```py\nx = 1\n```"), transcript.viewport())
    assert isinstance(view, ReplyView)
    view.show_item(Item(2, "assistant", "words"))
    theme.set_mode("dark")
    view.refresh_theme()
    view.show_item(Item(3, "assistant", "```py\nx = 1\n```"))
    new = view_for(Item(3, "assistant", "```py\nx = 1\n```"), transcript.viewport())
    assert picture(view) == picture(new)


@pytest.mark.parametrize("item", USERS, ids=range(len(USERS)))
def test_a_question_in_a_used_view_looks_like_one_in_a_new_view(transcript: Transcript, item: Item) -> None:
    first = Item(1, "user", "first " * 50, attachments=(Attachment("old.txt", "old"),), branches=2)
    used, new = view_for(first, transcript.viewport()), view_for(item, transcript.viewport())
    picture(used)
    used.hide()
    used.show_item(item)
    assert picture(used) == picture(new)


def test_scrolling_uses_views_again(transcript: Transcript) -> None:
    """Counted: a chat was scrolled through with a new view for every message; a page of them took over 60 ms."""
    items = [Item(n, "assistant" if n % 2 else "user", TEXT[n * 20 : n * 20 + 400]) for n in range(240)]
    transcript.set_items(items)
    made: set[int] = set()
    bar = transcript.verticalScrollBar()
    while bar.value() > 0:
        bar.setValue(bar.value() - 600)
        settle(transcript)
        made |= {id(view) for n in range(240) if (view := transcript.view(n)) is not None}
    assert len(made) < 50
    assert transcript.view(0) is not None


def test_a_view_with_something_of_its_own_is_not_used_again(qtbot: QtBot, transcript: Transcript) -> None:
    error = {"what": "w", "kept": "", "todo": "t", "detail": "d"}
    assert not view_for(Item(1, "assistant", "x", state=State.FAILED, error=error), transcript.viewport()).reusable
    assert not view_for(Item(1, "assistant", "x", state=State.STREAMING), transcript.viewport()).reusable
    long = view_for(Item(1, "assistant", "```\nx\n```\n\ny\n\n" * 40), transcript.viewport())
    while long.behind:
        long.refresh()
    assert not long.reusable, "its hundreds of parts are better deleted, a few at a time"
    transcript.set_items([Item(1, "assistant", "x")])
    view = transcript.view(1)
    assert view is not None
    assert view.reusable
    transcript.activateWindow()
    button = view._actions._buttons["copy"]
    button.setFocus()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is button)
    assert not view.reusable


def test_the_collector_does_not_visit_what_a_loaded_model_keeps(services: object, qtbot: QtBot) -> None:
    """A full collection beside a model's libraries stopped the window for 40 to 60 ms, in the middle of a reply."""
    assert gc.get_freeze_count() > 10_000
    services.close()  # type: ignore[attr-defined]
    assert gc.get_freeze_count() == 0, "what goes with the model is given back"


def test_what_was_left_out_is_collected_after_it_was_taken_back() -> None:
    class Weights:
        """In a cycle, as a model's modules are."""

        alive = 0

        def __init__(self) -> None:
            self.me = self
            Weights.alive += 1

        def __del__(self) -> None:
            Weights.alive -= 1

    model = Weights()
    collector.leave_out()
    del model
    gc.collect()
    assert Weights.alive == 1, "why it has to be taken back"
    collector.take_back()
    gc.collect()
    assert Weights.alive == 0
