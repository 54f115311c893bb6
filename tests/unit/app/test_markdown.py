"""The transcript's Markdown: safe for anything a model writes, and the same streamed as whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.markdown.body import Body
from app.chat.markdown.code import LINES_AT_ONCE, CodeBlock
from app.chat.markdown.highlight import spans
from app.chat.markdown.prose import Prose, Table
from app.chat.markdown.split import normalise, parse, safe_cut
from app.samples import SAMPLES
from app.theme import DARK, LIGHT, Theme
from tests.unit.app import dump
from tests.unit.app.fakes import LONG

PIECES = [
    *(
        "word ",
        "two words",
        "\n",
        "\n\n",
        "# Title\n",
        "###### deep\n",
        "---\n",
        "===\n",
        "> quote\n",
        ">\n",
        "\t",
        "\r\n",
        "\r",
    ),
    *(
        "- item\n",
        "  - nested\n",
        "1. one\n",
        "7) seven\n",
        "+ plus\n",
        "- [ ] task\n",
        "- [x] done\n",
        "    indented\n",
    ),
    *(
        "```python\n",
        "```",
        "~~~\n",
        "| a | b |\n",
        "|---|:-:|\n",
        "| 1 | 2 |\n",
        "**bold** ",
        "*it* ",
        "`code` ",
        "~~gone~~ ",
    ),
    *(
        "[link](https://x.org) ",
        "![alt](http://x/y.png)",
        "[ref]: https://x.org\n",
        "[ref] ",
        "&amp;",
        "\\(x\\) ",
        "$$\ny\n$$\n",
    ),
    *("<b>tag</b> ", "<script>\n", "<!-- note -->\n", "ש", "مرحبا ", "😀", "\0", "\u2028"),
    *("*", "_", "`", "~", "#", "-", ">", "|", "1."),
]
pieces = st.sampled_from(PIECES)
markdown = st.lists(pieces, max_size=24).map("".join)


def whole(text: str) -> Body:
    body = Body()
    body.set_source(text, complete=True)
    return body


@settings(max_examples=120, deadline=None)
@given(markdown, st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_streamed_is_the_same_as_whole(qapp: QApplication, text: str, steps: list[int]) -> None:
    """Bug 4: render(head) + render(tail) == render(full), wherever the chunks are cut."""
    streamed = Body()
    at = turn = 0
    while at < len(text):
        at += steps[turn % len(steps)]
        turn += 1
        streamed.set_source(text[:at], complete=False)
        assert dump.body(streamed) == dump.body(whole_open(text[:at]))
    streamed.set_source(text, complete=True)
    assert dump.body(streamed) == dump.body(whole(text))
    streamed.deleteLater()


GROWING = [
    *("| a | b |\n", "|:--|--:|\n", "|---|---|\n", "| a | b |\n|:--|--:|\n", "| 1 | **2** |\n", "3 | 4\n", "| 5 |\n"),
    *("| 6 | 7 | 8 |\n", "|", " x ", "\n", "\n\n", "word\n", "- item\n", "> quote\n", "\r\n", "  ", "\t", "a\\|b"),
    *("```py\n", "```\n", "````\n", "~~~\n", "`", " ```\n", "    ```\n", "x = 1\n", "# Title\n", "---\n"),
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(GROWING), max_size=16), st.integers(1, 7), st.sampled_from(["", "word\n\n", "\n"]))
@example(["| a | b |\n|:--|--:|\n", "3 | 4\n", "\n", "3 | 4\n", "| 1 | **2** |\n"], 1, "")  # a blank line ends a table
@example(["| a | b |\n|:--|--:|\n", "3 | 4\n", "\r\n", "\r\n", "word\n"], 3, "word\n\n")
@example(["| a | b |\n", "|", "word\n", "|:--|--:|\n"], 1, "")  # a head may turn out to be text
@example(["```py\n", "x = 1\n", " ```\n", "x = 1\n", "````\n"], 1, "word\n\n")
def test_tables_and_code_that_grow_are_the_same_as_whole(
    qapp: QApplication, parts: list[str], step: int, before: str
) -> None:
    """Their finished lines are not parsed again."""
    text = before + "".join(parts)
    streamed = Body()
    for at in range(step, len(text), step):
        streamed.set_source(text[:at], complete=False)
        assert dump.body(streamed) == dump.body(whole_open(text[:at]))
    streamed.set_source(text, complete=True)
    assert dump.body(streamed) == dump.body(whole(text))
    streamed.deleteLater()


@settings(max_examples=80, deadline=None)
@given(markdown, markdown, st.integers(0, 40))
def test_drawn_in_turns_is_the_same_as_whole(qapp: QApplication, text: str, more: str, begun: int) -> None:
    """A finished text is drawn block by block; also one of which a part was drawn while it streamed.

    A text with a zero character began anew with each turn and never came to its end.
    """
    text += more
    drawn = Body()
    drawn.set_source(text[:begun], complete=False)
    drawn.set_source(text, complete=True, budget_ms=0.0)
    turns = 0
    while drawn.behind:
        drawn.set_source(text, complete=True, budget_ms=0.0)
        turns += 1
        assert turns < 200
    assert dump.body(drawn) == dump.body(whole(text))
    drawn.deleteLater()


def test_a_finished_text_is_parsed_about_once(qapp: QApplication) -> None:
    drawn = Body()
    drawn.set_source(LONG, complete=True, budget_ms=0.0)
    turns = 1
    while drawn.behind:
        drawn.advance(0.0)
        turns += 1
    assert turns > 20
    assert drawn.parsed_chars < 1.5 * len(LONG)


def whole_open(text: str) -> Body:
    """A body that saw this text at once, and not its end."""
    body = Body()
    body.set_source(text, complete=False)
    return body


@settings(max_examples=150, deadline=None)
@given(markdown, markdown)
def test_what_is_frozen_stays(qapp: QApplication, head: str, more: str) -> None:
    """Blocks before the cut are the same blocks whatever follows."""
    head, more = normalise(head), normalise(more)
    offset, count = safe_cut(head, parse(head))
    kept = [[(t.type, t.content, t.markup) for t in b.tokens] for b in parse(head)[:count]]
    after = parse(head + more)[:count]
    assert [[(t.type, t.content, t.markup) for t in b.tokens] for b in after] == kept
    assert [[(t.type, t.content, t.markup) for t in b.tokens] for b in parse(head[:offset])] == kept


def test_the_samples_stream_as_they_are_whole(qapp: QApplication) -> None:
    for _, answer in SAMPLES.values():
        streamed = Body()
        for at in range(1, len(answer), 7):
            streamed.set_source(answer[:at], complete=False)
        streamed.set_source(answer, complete=True)
        assert dump.body(streamed) == dump.body(whole(answer))


@pytest.mark.parametrize(
    "text",
    [
        "<smirk> waffles",
        "std::vector<int> v; and more",
        "#include <stdio.h>",
        "a <b>bold</b> <script>alert(1)</script> z",
        "<div>\nblock\n</div>",
        "<!-- hidden? -->",
        "<img src='http://x.org/a.png'>",
        "costs $24000 and $40000",
        "$x^2$ and \\[y\\]",
    ],
)
def test_what_looks_like_html_or_math_is_shown_literally(qapp: QApplication, text: str) -> None:
    """Bugs 13, 14, 16: `<smirk>` made the message vanish; dollars became formulas."""
    shown = dump.text(whole(text))
    for word in text.replace("\n", " ").split():
        if "\\" not in word:
            assert word in shown


@pytest.mark.parametrize(
    "text",
    [
        r"\( x^2 \) and \(a_1*b*c_2\) and \\(x\\)",
        r"$$\int_0^1 x\,dx$$",
        "\\[\nf(x) = \\{a_1, a_2\\} \\\\\n\\]",
    ],
)
def test_a_formula_is_shown_as_it_was_written(qapp: QApplication, text: str) -> None:
    r"""Backslashes were taken for escapes: \( x\,dx \) became ( x,dx )."""
    shown = dump.text(whole(text)).replace("\u2028", "\n")
    assert shown == text.replace(r"\\(x\\)", r"\(x\)"), "only an escaped backslash is one"


def test_what_begins_a_formula_and_does_not_end_is_none(qapp: QApplication) -> None:
    assert dump.text(whole(r"\( and *soft* costs $$5")) == "( and soft costs $$5"


@pytest.mark.parametrize("mark", ["> ", "- ", "1. "])
@pytest.mark.parametrize("depth", [9, 10, 19, 21, 60, 200])
def test_no_depth_of_nesting_loses_a_word(qtbot: QtBot, mark: str, depth: int) -> None:
    """From the tenth list in a list on, the rest of the reply was not on screen, whatever it was."""
    lines = [mark * n + f"word{n}" if mark == "> " else " " * len(mark) * n + f"{mark}word{n}" for n in range(depth)]
    text = "\n".join(lines) + "\n\nAfter it.\n\n```\ncode\n```\n"
    body = whole(text)
    qtbot.addWidget(body)
    shown = dump.text(body)
    assert all(f"word{n}" in shown for n in range(depth))
    assert shown.endswith("code")
    assert "After it." in shown
    body.resize(400, body.height_for(400))
    body.place()
    for part in body.parts:
        if isinstance(part, Prose):
            block = part.document().begin()
            while block.isValid():
                assert block.blockFormat().leftMargin() <= 240, "and is within a narrow window"
                block = block.next()


def test_a_task_has_its_box_in_place_of_the_bullet(qapp: QApplication) -> None:
    """It had both."""
    shown = dump.text(whole("- [ ] open\n- [x] done\n- plain\n\n1. [ ] counted"))
    assert shown == "☐\topen\n☑\tdone\n•\tplain\n1.\t☐ counted"


def test_images_are_their_alternative_text_and_are_never_fetched(qtbot: QtBot) -> None:
    """Bug 15: an image address sends data out."""
    body = whole("![secret](http://127.0.0.1:9/leak?q=1) and ![](https://x.org/b.png)")
    qtbot.addWidget(body)
    part = body.parts[0]
    assert isinstance(part, Prose)
    assert part.document().toPlainText() == "[image: secret] and [image]"
    assert "<img" not in part.document().toHtml()
    for address in ("http://x.org/a.png", "file:///etc/hosts", "data:image/png;base64,AAAA"):
        assert part.loadResource(2, QUrl(address)) is None


def test_links_open_only_on_click_and_only_to_the_web(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()) or True)
    body = whole("[a](https://x.org) [b](javascript:alert(1)) [c](file:///etc/passwd)")
    qtbot.addWidget(body)
    part = body.parts[0]
    assert isinstance(part, Prose)
    assert "[b](javascript:alert(1))" in part.document().toPlainText()
    for address in ("https://x.org", "file:///etc/passwd", "javascript:alert(1)"):
        part.anchorClicked.emit(QUrl(address))
    assert opened == ["https://x.org"]


def test_widgets_stay_the_same_while_text_arrives(qtbot: QtBot) -> None:
    """Bug 4: buttons of code blocks flickered because the widget was made anew."""
    body = Body()
    qtbot.addWidget(body)
    body.set_source("Intro.\n\n```py\n", complete=False)
    prose, code = body.parts
    for n in range(100):
        body.set_source("Intro.\n\n```py\n" + "x = 1\n" * n, complete=False)
    body.set_source("Intro.\n\n```py\n" + "x = 1\n" * 100 + "```\nend\n", complete=True)
    assert body.parts[:2] == [prose, code]
    assert isinstance(code, CodeBlock)
    assert code.source == ("x = 1\n" * 100).removesuffix("\n")


def test_cost_is_linear(qapp: QApplication) -> None:
    """Bugs 2, 3: counted in characters given to the parser, not in seconds."""
    costs = []
    for times in (1, 4):
        text = LONG * times
        body = Body()
        for at in range(0, len(text), 60):
            body.set_source(text[:at], complete=False)
        body.set_source(text, complete=True)
        costs.append(body.parsed_chars / len(text))
        body.deleteLater()
    assert costs[1] < costs[0] * 1.1


def test_a_long_block_of_code_is_not_parsed_with_every_line(qapp: QApplication) -> None:
    """Counted: the whole block was parsed with each update, so a long one cost more for each line that it had."""
    text = "Some code:\n\n```python\n" + "if x:\n    y = '``'\n\n" * 500
    body = Body()
    for at in range(0, len(text), 60):
        body.set_source(text[:at], complete=False)
    body.set_source(text, complete=False)
    assert dump.body(body) == dump.body(whole_open(text))
    assert body.parsed_chars < 1000 < len(text)
    body.set_source(text + "```\n\nDone.", complete=False)
    assert dump.body(body) == dump.body(whole_open(text + "```\n\nDone."))


def test_a_long_table_grows_by_its_new_rows(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: each update parsed and wrote all rows. At 16 KB of table the window stood still for 0.15 s each time."""
    written = 0
    real = Table._write

    def counted(self: Table, *values: Any) -> None:
        nonlocal written
        written += 1
        real(self, *values)

    monkeypatch.setattr(Table, "_write", counted)
    text = "Rows:\n\n| a | b |\n|:--|--:|\n" + "".join(f"| {n} | **{n}** words |\n" for n in range(200))
    body = Body()
    for at in range(0, len(text), 60):
        body.set_source(text[:at], complete=False)
    body.set_source(text + "\nDone.", complete=True)
    assert body.parsed_chars < 4 * len(text)
    assert written < 2 * (200 + len(text) / 60)
    monkeypatch.undo()
    fresh = whole(text + "\nDone.")
    assert dump.body(body) == dump.body(fresh)
    pictures = []
    for shown in (body, fresh):
        shown.resize(600, shown.height_for(600))
        shown.place()
        pictures.append(shown.grab().toImage())
    assert pictures[0] == pictures[1]


def test_placing_a_long_reply_looks_only_at_its_end(qapp: QApplication) -> None:
    """Counted: all parts of a reply were looked at with each update, so a long one cost more for each word."""
    body, looked = Body(), 0

    class Places(dict):  # type: ignore[type-arg]
        def get(self, *key: object) -> object:
            nonlocal looked
            looked += 1
            return super().get(*key)

    body._places = Places()
    sizes = []
    for n in range(1, 60):
        body.set_source("Words.\n\n```\ncode\n```\n\n" * n, complete=False)
        before = looked
        sizes.append(body.height_for(600))
        assert looked - before < 12
    assert len(body.parts) > 100
    fresh = whole_open("Words.\n\n```\ncode\n```\n\n" * 59)
    assert sizes[-1] == fresh.height_for(600)
    assert body.height_for(400) == fresh.height_for(400), "another width places all of them anew"


def test_copy_gives_the_source_of_the_code(qtbot: QtBot) -> None:
    """Bug 19: copying lost what Qt's own export cannot say."""
    body = whole("```c++ title=x\n\tif (a < b) {\n\n  }\n```")
    qtbot.addWidget(body)
    code = body.parts[0]
    assert isinstance(code, CodeBlock)
    assert code.language == "c++"
    code.copy()
    assert QGuiApplication.clipboard().text() == "\tif (a < b) {\n\n  }"
    code._back.stop()


def test_an_open_fence_is_code_already(qapp: QApplication) -> None:
    body = Body()
    body.set_source("```python\nx = 1\n", complete=False)
    assert isinstance(body.parts[0], CodeBlock)


def test_tables_are_grids_with_their_alignment(qtbot: QtBot) -> None:
    body = whole("| a | b |\n|:--|--:|\n| left | 12 |\n")
    qtbot.addWidget(body)
    table = body.parts[0]
    assert isinstance(table, Table)
    words = table.document().toPlainText().split()
    assert words == ["a", "b", "left", "12"]
    assert body.height_for(400) > 40


def test_colours_of_code_follow_the_language(qapp: QApplication) -> None:
    found = dict(spans('x = "é😀" + 1  # end', "python", LIGHT))
    assert {(start, length) for start, length, _ in found[0]} >= {(4, 1), (15, 5)}
    assert list(spans("x", "no such language", LIGHT)) == []
    assert list(spans("x", "", LIGHT)) == []


def test_long_code_is_coloured_in_turns(qtbot: QtBot) -> None:
    """Counted: 16 KB of code were coloured at once when the fence closed, and the window stood still for 0.1 s."""
    lines = 5 * LINES_AT_ONCE + 7
    body = whole("```python\n" + "x = 1  # one\n" * lines + "```")
    qtbot.addWidget(body)
    code = body.parts[0]
    assert isinstance(code, CodeBlock)

    def coloured() -> int:
        blocks = map(code.edit.document().findBlockByNumber, range(lines))
        return sum(len(block.layout().formats()) > 1 for block in blocks)

    assert coloured() == LINES_AT_ONCE
    qtbot.waitUntil(lambda: coloured() == lines)
    assert not code._later.isActive()


def test_colours_do_not_stay_on_code_that_changed(qtbot: QtBot) -> None:
    block = CodeBlock()
    qtbot.addWidget(block)
    block.show_code("x = 1", "python", complete=True)
    first = block.edit.document().firstBlock()
    assert first.layout().formats()
    block.show_code("x = 1\nand more", "no such language", complete=True)
    assert not first.layout().formats()


def test_a_change_of_theme_leaves_no_stale_colour(qtbot: QtBot, qapp: QApplication) -> None:
    """Bug 18: link colour stays what it was."""
    theme = Theme(qapp, "light")
    body = whole("[link](https://x.org) and `code`\n\n```py\nx = 1\n```\n\n|a|\n|-|\n|b|\n")
    qtbot.addWidget(body)
    theme.set_mode("dark")
    body.refresh_theme()
    colours = str(dump.body(body))
    for role in ("text", "accent", "bg_raised"):
        assert getattr(DARK, role) in colours
        assert getattr(LIGHT, role) not in colours
    theme.set_mode("light")
    theme.setParent(None)
    theme.deleteLater()


def test_text_that_was_replaced_is_drawn_anew(qapp: QApplication) -> None:
    body = Body()
    body.set_source("# One\n\nfirst\n\nsecond\n\nthird", complete=False)
    body.set_source("other", complete=True)
    assert dump.text(body) == "other"
