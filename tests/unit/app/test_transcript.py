"""The column of messages: follows only at the end, never jumps, and a long chat opens lazily."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat import reply
from app.chat import transcript as module
from app.chat.item import Item
from app.chat.markdown.body import Body
from app.chat.message import UserView
from app.chat.reply import ReplyView
from app.chat.transcript import Transcript
from app.store.values import State
from tests.unit.app import dump
from tests.unit.app.fakes import LONG

PARAGRAPH = "Some words that fill a line or two of the column, so that the message has a height. " * 3


def turns(count: int) -> list[Item]:
    return [
        Item(n, "assistant" if n % 2 else "user", f"{n}: {PARAGRAPH}\n\n- a\n- b\n\n```py\nx = {n}\n```")
        for n in range(count)
    ]


def stream(transcript: Transcript, item: Item, words: int) -> None:
    for n in range(words):
        item.content += f"word {n} " + ("\n\n" if n % 9 == 8 else "")
        transcript.refresh(item.id)
    settle(transcript)


def settle(transcript: Transcript) -> None:
    """Draw all that waits, and make what is in view."""
    for _ in range(40):
        transcript.prepare_next()
    while not transcript.up_to_date:
        transcript.draw_now()


def test_it_opens_at_the_end(transcript: Transcript) -> None:
    transcript.set_items(turns(40))
    settle(transcript)
    bar = transcript.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    last = transcript.view(39)
    assert last is not None
    assert last.geometry().bottom() <= transcript.viewport().height()


def test_a_long_chat_makes_widgets_only_near_the_view(transcript: Transcript) -> None:
    """Bug 7: a chat of 291,000 tokens froze the app. Counted, not timed."""
    transcript.set_items(turns(2000))
    made = sum(transcript.view(n) is not None for n in range(2000))
    assert 1 <= made <= 24
    transcript.verticalScrollBar().setValue(0)
    assert transcript.view(0) is not None
    assert transcript.view(1999) is None
    assert sum(transcript.view(n) is not None for n in range(2000)) <= 40


def test_a_page_of_new_messages_is_made_in_turns(
    qtbot: QtBot, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of new widgets at once took 80 ms. One is made at once, and the others one in each turn of the loop."""
    transcript.set_items(turns(200))
    monkeypatch.setattr(module, "MAKE_MS", 0.0)
    transcript.verticalScrollBar().setValue(3000)
    height = transcript.viewport().height()

    def seen() -> int:
        views = [v for n in range(200) if (v := transcript.view(n)) is not None and not v.isHidden()]
        return sum(v.geometry().bottom() > 0 and v.geometry().top() < height for v in views)

    counts = [seen()]
    for _ in range(12):
        transcript.prepare_next()
        counts.append(seen())
    assert counts[0] <= 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(counts))
    assert counts[-1] >= 3
    views = [v for n in range(200) if (v := transcript.view(n)) is not None]
    assert len(views) > counts[-1], "and what comes next"


def test_scrolling_through_shows_every_message_without_gaps_or_overlap(transcript: Transcript) -> None:
    transcript.set_items(turns(60))
    bar = transcript.verticalScrollBar()
    bar.setValue(0)
    seen: set[int] = set()
    for _ in range(400):
        settle(transcript)
        shown = sorted((v.geometry().top(), v.geometry().bottom(), n) for n in range(60) if (v := transcript.view(n)))
        for (_, bottom, a), (top, _, b) in itertools.pairwise(shown):
            assert b == a + 1
            assert 0 < top - bottom <= 20
        height = transcript.viewport().height()
        seen |= {n for top, bottom, n in shown if bottom > 0 and top < height}
        if bar.value() == bar.maximum():
            break
        bar.setValue(bar.value() + 200)
    assert seen == set(range(60))


def test_it_follows_while_at_the_end(transcript: Transcript) -> None:
    item = Item(100, "assistant", "", state=State.STREAMING)
    transcript.set_items(turns(6))
    transcript.append(item)
    stream(transcript, item, 120)
    bar = transcript.verticalScrollBar()
    assert bar.value() == bar.maximum()
    assert transcript.pill.isHidden()


def test_it_does_not_fight_a_user_who_reads_above(qtbot: QtBot, transcript: Transcript) -> None:
    """Bugs 9, 10: autoscroll fights the user."""
    item = Item(100, "assistant", "", state=State.STREAMING)
    transcript.set_items(turns(6))
    transcript.append(item)
    stream(transcript, item, 60)
    bar = transcript.verticalScrollBar()
    bar.setValue(bar.value() - 300)
    settle(transcript)
    before = bar.value()
    stream(transcript, item, 60)
    assert bar.value() == before
    assert not transcript.pill.isHidden()
    qtbot.mouseClick(transcript.pill, Qt.MouseButton.LeftButton)
    settle(transcript)
    assert bar.value() == bar.maximum()
    assert transcript.pill.isHidden()
    stream(transcript, item, 30)
    assert bar.value() == bar.maximum(), "it follows again"


@pytest.mark.parametrize("away", [0, 300])
def test_the_end_of_a_reply_moves_nothing(transcript: Transcript, away: int) -> None:
    """Bugs 11, 12: jumps to the end, or back to an old place, when generation ends."""
    item = Item(100, "assistant", "", state=State.STREAMING)
    transcript.set_items(turns(6))
    transcript.append(item)
    stream(transcript, item, 80)
    bar = transcript.verticalScrollBar()
    bar.setValue(bar.maximum() - away)
    settle(transcript)
    view = transcript.view(100)
    assert view is not None
    top = view.geometry().top()
    item.state = State.COMPLETE
    item.caption = "80 tokens"
    transcript.refresh(100)
    settle(transcript)
    assert view.geometry().top() == top


def test_measuring_what_is_above_keeps_the_readers_place(transcript: Transcript) -> None:
    transcript.set_items(turns(80))
    bar = transcript.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    settle(transcript)
    for _ in range(30):
        before = {n: v.geometry().top() for n in range(80) if (v := transcript.view(n)) and not v.isHidden()}
        value = bar.value()
        bar.setValue(value - 120)
        height = transcript.viewport().height()
        moved = [
            v.geometry().top() - top
            for n, top in before.items()
            if (v := transcript.view(n)) is not None and 0 < top < height - 150
        ]
        assert all(step == moved[0] for step in moved)
        assert abs(moved[0] - 120) <= 1


def test_a_change_of_width_keeps_the_message_at_the_top(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.set_items(turns(40))
    transcript.scroll_to(20)
    settle(transcript)
    view = transcript.view(20)
    assert view is not None
    assert view.geometry().top() == 0
    transcript.resize(560, 600)
    assert abs(transcript.view(20).geometry().top()) <= 2  # type: ignore[union-attr]


def test_reasoning_is_open_while_it_is_written_and_folds_after(transcript: Transcript) -> None:
    item = Item(1, "assistant", "", reasoning="Let me think.", state=State.STREAMING)
    transcript.set_items([item])
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    assert view.reasoning_open
    item.content = "The answer."
    transcript.refresh(1)
    settle(transcript)
    assert not view.reasoning_open
    view.toggle_reasoning()
    assert view.reasoning_open


def test_folded_reasoning_is_not_drawn(transcript: Transcript) -> None:
    """Bug 6: heavy reasoning froze fast models' chats."""
    item = Item(1, "assistant", "answer", reasoning="long " * 4000, state=State.COMPLETE)
    transcript.set_items([item])
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    assert view._reasoning is None
    view.toggle_reasoning()
    assert view._reasoning is not None


def test_an_error_folds_out_without_losing_its_state(transcript: Transcript) -> None:
    item = Item(
        1, "assistant", "half", state=State.FAILED, error={"what": "w", "kept": "k", "todo": "t", "detail": "<b>d</b>"}
    )
    transcript.set_items([item])
    view = transcript.view(1)
    assert view is not None
    card = view._error
    assert card is not None
    height = view.height()
    card._fold.click()
    assert view.height() > height
    assert "<b>d</b>" in card.text
    acted: list[tuple[int, str]] = []
    transcript.act.connect(lambda number, key: acted.append((number, key)))
    for button in card.buttons():
        button.click()
    assert acted == [(1, "go_on"), (1, "regenerate")]


def test_every_button_of_a_message_has_a_name_and_takes_focus(transcript: Transcript) -> None:
    from PySide6.QtWidgets import QAbstractButton

    transcript.set_items(turns(2))
    for number in (0, 1):
        view = transcript.view(number)
        assert view is not None
        for button in view.findChildren(QAbstractButton):
            assert button.accessibleName() or button.text()
            assert button.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_a_users_block_is_as_wide_as_its_words_need(transcript: Transcript) -> None:
    """It once kept the width that Qt gives a new widget, and a question became a column of single words."""
    transcript.set_items([Item(1, "user", "short"), Item(2, "user", "word " * 100), Item(3, "user", "a\n\nb")])
    widths = []
    for number in (1, 2, 3):
        view = transcript.view(number)
        assert isinstance(view, UserView)
        widths.append(view._text.width())
        assert view._text.height() == int(view._text.document().size().height())
    assert widths[0] < 100
    assert widths[1] > 400
    assert widths[2] < 40


def test_many_changes_in_one_turn_are_drawn_once(qtbot: QtBot, transcript: Transcript) -> None:
    """Counted: forty tokens that arrive together cost one drawing, at most two."""
    item = Item(1, "assistant", "", state=State.STREAMING)
    transcript.set_items([item])
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    drawn: list[int] = []
    real = view.refresh

    def spy() -> None:
        drawn.append(1)
        real()

    view.refresh = spy  # type: ignore[method-assign]
    for n in range(40):
        item.content += f"{n} "
        transcript.refresh(1)
    qtbot.waitUntil(lambda: transcript.up_to_date)
    assert len(drawn) <= 3
    assert view.body.source == item.content


def test_drawing_leaves_the_time_to_the_engine(transcript: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug 5: live Markdown slowed generation to a third. Drawing that takes long is asked for less often."""
    item = Item(1, "assistant", "some text", state=State.STREAMING)
    transcript.set_items([item])
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    clock = [100.0]
    monkeypatch.setattr(reply, "perf_counter", lambda: clock[0])

    def slow(*_: object, **__: object) -> None:
        clock[0] += 0.2

    monkeypatch.setattr(view.body, "set_source", slow)
    view.refresh()
    assert view.wait_ms() >= 999  # five times as long as it took
    clock[0] += 0.6
    assert 395 <= view.wait_ms() <= 400
    item.state = State.COMPLETE
    assert view.wait_ms() == 0, "the end is drawn at once"


def test_a_long_reply_that_comes_at_once_is_drawn_in_turns(qtbot: QtBot, transcript: Transcript) -> None:
    """Opening a chat must not wait for all of a long reply."""
    item = Item(1, "assistant", LONG * 3, state=State.COMPLETE)
    transcript.set_items([item])
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    assert view.behind
    qtbot.waitUntil(lambda: transcript.up_to_date, timeout=60_000)
    assert not view.behind
    whole = Body()
    whole.set_source(item.content, complete=True)
    assert dump.body(view.body) == dump.body(whole)
    bar = transcript.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_what_scrolls_away_is_deleted_a_few_widgets_at_a_time(qtbot: QtBot, transcript: Transcript) -> None:
    """Deleting a long reply's hundreds of widgets at once took 75 ms."""
    from shiboken6 import isValid

    transcript.set_items([Item(1, "assistant", LONG), *(Item(n, "user", PARAGRAPH) for n in range(2, 60))])
    transcript.verticalScrollBar().setValue(0)
    settle(transcript)
    view = transcript.view(1)
    assert isinstance(view, ReplyView)
    parts = view.body.parts
    transcript.jump_to_end()
    assert transcript.view(1) is None
    assert view.isHidden()
    qtbot.waitUntil(lambda: transcript._views.trash.empty and not isValid(view))
    assert not any(isValid(part) for part in parts)


def test_a_very_long_message_of_the_user_is_shown_in_part(transcript: Transcript) -> None:
    """Bug 8, its second half: 20,000 pasted lines must not stall the chat that shows them."""
    text = "a line of text\n" * 20_000
    transcript.set_items([Item(1, "user", text)])
    view = transcript.view(1)
    assert isinstance(view, UserView)
    shown = view._text.document().toPlainText()
    assert len(shown) < 9_000
    assert "292,000 more characters" in shown
    assert transcript.items[0].content == text
