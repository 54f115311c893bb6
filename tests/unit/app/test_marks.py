"""The speculation view: every mark sits on the text of its token, and nothing but the look changes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import islice
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication, QHelpEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.chat.generations import Generations
from app.chat.markdown.body import Body
from app.chat.markdown.code import CodeBlock
from app.chat.markdown.marks import Marked, Marking, align
from app.chat.markdown.prose import Prose, TextPart
from app.chat.reply import ReplyView
from app.chat.trace import AT_ONCE, Origin, Packer, Trace, pack, unpack
from app.happenings import Envelope
from app.models.loader import Numbers
from app.panel.meter import Meter
from app.replay import Pieces, ScriptedEngine
from app.samples import SAMPLES
from app.store import Repository
from app.theme import Theme
from app.theme.tokens import DARK, LIGHT
from app.window import MainWindow
from engine import Message, Request, Round
from tests.unit.app.dump import body as dump
from tests.unit.app.fakes import LONG, FakeLoader
from tests.unit.app.test_window import ask


def traced(answer: str, *, seed: int = 3, reasoning: str = "") -> Trace:
    """Rounds of random widths over a text cut into random tokens."""
    luck, trace = random.Random(seed), Trace()
    ends = [(0, 0)]
    for token in Pieces(seed).cut(reasoning):
        ends.append((0, ends[-1][1] + len(token)))
    for token in Pieces(seed).cut(answer):
        ends.append((ends[-1][0] + len(token), ends[-1][1]))
    at = 0
    while at < len(ends) - 1:
        width = luck.choice([1, 2, 3, 4])
        accepted = min(luck.randint(0, width - 1), len(ends) - 2 - at)
        part = tuple(ends[at : at + accepted + 2])
        trace.add(
            Round(
                len(trace.rounds), at, width, width - 1, accepted, accepted + 1, 0, 1.25, 20.5, 0.75, 1.5, 0.25,
                tuple(range(accepted + 1)), width == 1, part,
            )
        )  # fmt: skip
        at += accepted + 1
    return trace


def marked_text(shown: Body) -> list[tuple[str, int, Origin]]:
    """(text, round, origin) of every span, as the document has it."""
    found = []
    for part in shown.parts:
        widget: Marked = part._edit if isinstance(part, CodeBlock) else part
        document = widget.document()  # type: ignore[attr-defined]
        assert isinstance(document, QTextDocument)
        for span in widget._spans:
            found.append((widget._cursor(span).selectedText(), span.mark.round, span.mark.origin))
    return found


def letters(text: str) -> Counter[str]:
    return Counter(c for c in text if c.isalnum())


@pytest.mark.parametrize("name", ["short", "code", "table", "rtl", "streaming"])
def test_each_mark_is_on_its_own_tokens_text(qtbot: QtBot, name: str) -> None:
    """Bullets, tables, code, right-to-left text, emoji: the words under a mark are those of its round's tokens."""
    source = SAMPLES[name][1]
    trace = traced(source)
    shown = Body()
    qtbot.addWidget(shown)
    shown.set_marking(Marking(trace, "answer"))
    shown.set_source(source, complete=True)
    spans = marked_text(shown)
    own = [source[m.start : m.end] for m in trace.marks("answer")]
    by_round: dict[int, str] = {}
    for mark in trace.marks("answer"):
        by_round[mark.round] = by_round.get(mark.round, "") + source[mark.start : mark.end]
    wrong = [text for text, number, _ in spans if letters(text) - letters(by_round[number])]
    # A word that markup tears apart may be found a little early; all others sit where they belong.
    assert len(wrong) <= 0.01 * len(spans)
    drawn = letters("".join(text for text, _, _ in spans))
    assert sum((letters("".join(own)) - drawn).values()) <= 0.05 * sum(letters("".join(own)).values()), "nearly all"


def test_streamed_marks_are_those_of_the_whole(qtbot: QtBot) -> None:
    trace = traced(LONG)
    whole, streamed = Body(), Body()
    for shown in (whole, streamed):
        qtbot.addWidget(shown)
    whole.set_marking(Marking(trace, "answer"))
    whole.set_source(LONG, complete=True)
    growing = Trace()
    streamed.set_marking(Marking(growing, "answer"))
    for round_ in trace.rounds:
        # The text comes before its round, as from the engine.
        streamed.set_source(LONG[: round_.ends[-1][0]], complete=False)
        growing.rounds.append(round_)
    streamed.set_source(LONG, complete=True)
    letter_by_letter = [
        [(letter, *mark) for text, *mark in marked_text(shown) for letter in text if not letter.isspace()]
        for shown in (streamed, whole)
    ]
    # A span may end with its paragraph, so letters are compared.
    assert letter_by_letter[0] == letter_by_letter[1]
    assert len(marked_text(whole)) > 300


def test_marks_change_neither_document_nor_copy_nor_height(qtbot: QtBot) -> None:
    plain, marked = Body(), Body()
    for shown in (plain, marked):
        qtbot.addWidget(shown)
        shown.set_source(LONG, complete=True)
    marked.set_marking(Marking(traced(LONG), "answer"))
    marked.advance()
    assert dump(marked) == dump(plain)
    assert marked.height_for(700) == plain.height_for(700)
    copied = []
    for shown in (plain, marked):
        part = shown.parts[0]
        assert isinstance(part, Prose)
        part.selectAll()
        part.copy()
        copied.append(QGuiApplication.clipboard().text())
        html = QGuiApplication.clipboard().mimeData().html()
        assert "dash" not in html
        assert LIGHT.draft not in html
    assert copied[0] == copied[1] != ""
    marked.set_marking(None)
    assert marked_text(marked) == []


def test_the_pointer_shows_the_round(qtbot: QtBot) -> None:
    shown = Body()
    qtbot.addWidget(shown)
    trace = traced("some words in one line of text that are long enough")
    shown.set_marking(Marking(trace, "answer"))
    shown.set_source("some words in one line of text that are long enough", complete=True)
    shown.resize(600, shown.height_for(600))
    shown.show()
    part = shown.parts[0]
    assert isinstance(part, TextPart)
    span = part._spans[2]
    where = part.cursorRect(part._cursor(span)).center() - QPoint(2, 0)
    QApplication.sendEvent(part.viewport(), QHelpEvent(QHelpEvent.Type.ToolTip, where, part.mapToGlobal(where)))
    assert QToolTip.text() == trace.tip(span.mark.round)
    backgrounds = [s.format.background().color().name() for s in part.extraSelections()]  # type: ignore[attr-defined]
    assert LIGHT.selection in backgrounds, "all tokens of the round are shown together"
    QToolTip.hideText()


def test_a_round_in_words() -> None:
    trace = Trace()
    common = (20.5, 0.75, 1.5, 0.25)
    trace.add(Round(0, 0, 3, 2, 1, 2, 0, 1.25, *common, (1, 2), False, ((0, 0), (1, 0), (2, 0))))
    trace.add(Round(1, 2, 1, 0, 0, 1, 0, 0.0, *common, (3,), True, ((2, 0), (3, 0))))
    assert trace.tip(0) == (
        "Round 1: block 3, 2 drafted, 1 accepted\nThe target corrected draft 2\n"
        "24.2 ms: draft 1.2, verify 20.5, rollback 0.8, hook 1.5, host 0.2"
    )
    assert trace.tip(1) == "Round 2: parked: one token by a classic step\n23.0 ms"
    assert [m.origin for m in trace.marks("answer")] == [Origin.ACCEPTED, Origin.CORRECTED, Origin.OWN]
    assert (trace.count(Origin.ACCEPTED), trace.count(Origin.CORRECTED), trace.count(Origin.OWN)) == (1, 1, 1)


@given(st.text(max_size=60), st.text(max_size=30), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_a_trace_comes_back_as_it_was_stored(answer: str, reasoning: str, seed: int) -> None:
    trace = traced(answer, seed=seed, reasoning=reasoning)
    again = unpack(pack(trace))
    assert (again.rounds if again is not None else []) == trace.rounds


@given(st.text(max_size=60), st.lists(st.integers(0, 9), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_trace_packed_as_it_grows_is_stored_as_the_whole_is(answer: str, steps: list[int]) -> None:
    whole, growing = traced(answer), Trace()
    packer, rounds = Packer(growing), iter(whole.rounds)
    for step in steps:
        growing.rounds += islice(rounds, step)
        packer.catch_up()
    growing.rounds += rounds
    again = unpack(packer.finish())
    assert (again.rounds if again is not None else []) == whole.rounds


def test_a_trace_that_fell_behind_is_packed_in_several_turns() -> None:
    trace = traced("x" * 16 * AT_ONCE)
    packer = Packer(trace)
    packer.catch_up()
    assert packer.packed == AT_ONCE < len(trace.rounds)
    again = unpack(packer.finish())
    assert again is not None
    assert again.rounds == trace.rounds


def test_the_end_of_a_long_reply_does_not_hold_the_window_to_pack_its_trace(
    qapp: QApplication, store: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply of 64 KB ended with 0.1 s in which its 16,000 rounds were packed and the window stood still. Counted."""
    packed: list[int] = []
    real = Packer.catch_up

    def counted(self: Packer) -> None:
        before = self.packed
        real(self)
        packed.append(self.packed - before)

    monkeypatch.setattr(Packer, "catch_up", counted)
    chat = store.create_conversation("Long")
    asked = store.add_user_message(chat.id, None, "write")
    reply = store.begin_reply(chat.id, asked.id, seed=1, request={}, model={})
    thread = SimpleNamespace(generate=lambda *_: None)
    generations = Generations(thread, store, Meter(), Numbers())  # type: ignore[arg-type]
    request = Request((Message("user", "write"),), max_tokens=100_000)
    item = generations.start(reply, chat.uid, request)
    ids = next(iter(generations._live.values())).ids
    batch: list[Envelope] = []
    for event in ScriptedEngine(lambda _: ("why", LONG)).generate(request, threading.Event()):
        batch.append(Envelope(ids, event))
        if len(batch) == 50:
            generations.on_events(batch)
            batch = []
    generations.on_events(batch)
    assert item.content == LONG
    assert item.trace is not None
    assert len(item.trace.rounds) > 500
    assert 0 < max(packed) <= 50, "never more than what came with one batch"
    stored = unpack(store.trace(reply.id))
    assert stored is not None
    assert stored.rounds == item.trace.rounds


@pytest.mark.parametrize("blob", [None, b"", b"\x01", b"\x02abc", b"\x01" + b"x" * 20])
def test_a_trace_that_cannot_be_read_is_none(blob: bytes | None) -> None:
    assert unpack(blob) is None


def test_a_trace_is_small() -> None:
    trace = traced(LONG * 4)
    blob = pack(trace)
    assert blob is not None
    assert len(blob) < 20 * len(trace.rounds)


@given(st.text(max_size=40), st.text(max_size=60))
def test_alignment_never_goes_back_and_never_lies(shown: str, source: str) -> None:
    found = align(shown, source)
    places = [place for place in found if place >= 0]
    assert places == sorted(places)
    assert all(source[place] == letter for letter, place in zip(shown, found, strict=True) if place >= 0)


@pytest.mark.parametrize(
    ("shown", "source"),
    [("bold text", "**bo**ld text"), ("a link here", "[a link](http://a.link.here/here) here"), ("•\tone", "- one")],
)
def test_alignment_steps_over_markup(shown: str, source: str) -> None:
    places = [place for place in align(shown, source) if place >= 0]
    assert "".join(source[place] for place in places) == "".join(shown.replace("•", "").split())


def test_the_view_is_switched_for_old_and_new_replies_and_live(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    loader.answer = LONG
    loader.reasoning = "Let me think about it for a while."
    first = ask(qtbot, window, "one")
    action = window.actions_by_key["speculation_view"]
    action.trigger()
    view = window.transcript.view(first.id)
    assert isinstance(view, ReplyView)
    assert marked_text(view.body)
    assert "drafted and accepted" in view._legend.text()
    view.toggle_reasoning()
    assert view._reasoning is not None
    assert marked_text(view._reasoning), "reasoning too"
    second = ask(qtbot, window, "two")
    qtbot.waitUntil(lambda: window.transcript.up_to_date)
    view = window.transcript.view(second.id)
    assert isinstance(view, ReplyView)
    assert marked_text(view.body)
    # After a restart they come from the store.
    window.services.chats.open(window.services.chats.current)
    window.transcript.jump_to_end()
    view = window.transcript.view(second.id)
    assert isinstance(view, ReplyView)
    qtbot.waitUntil(lambda: not view.behind)
    assert marked_text(view.body)
    action.trigger()
    assert marked_text(view.body) == []
    assert not view._legend.isVisible()


def test_a_reply_of_before_says_that_nothing_was_recorded(qtbot: QtBot, window: MainWindow) -> None:
    reply = ask(qtbot, window, "one")
    window.services.store.db.connection.execute("UPDATE reply SET trace = NULL")
    window.services.chats.open(window.services.chats.current)
    window.actions_by_key["speculation_view"].trigger()
    view = window.transcript.view(reply.id)
    assert isinstance(view, ReplyView)
    assert view._legend.text() == "No rounds were recorded for this reply."


def test_marks_follow_the_theme(qtbot: QtBot, qapp: QApplication) -> None:
    theme = Theme(qapp, "light")
    shown = Body()
    qtbot.addWidget(shown)
    shown.set_marking(Marking(traced("some words in a line"), "answer"))
    shown.set_source("some words in a line", complete=True)
    theme.set_mode("dark")
    shown.refresh_theme()
    part = shown.parts[0]
    assert isinstance(part, TextPart)
    colours = {s.format.underlineColor().name() for s in part.extraSelections()}  # type: ignore[attr-defined]
    assert colours <= {DARK.draft, DARK.verify}
    theme.set_mode("light")
    theme.setParent(None)
    theme.deleteLater()
