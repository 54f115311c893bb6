"""What our Markdown does otherwise than CommonMark: formulas stay as they were written, and no depth loses text."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

DEEPEST = 40
"""Quotes and list items inside one another, two levels for an item; what is deeper is shown as it was written."""
_FORMULAS = {r"\(": r"\)", r"\[": r"\]", "$$": "$$"}


def add_to(parser: MarkdownIt) -> MarkdownIt:
    parser.inline.ruler.before("escape", "math", _math)
    parser.block.ruler.before("table", "deep", _deep)
    # Beyond it the parser skips the rest of the text without a word; `_deep` ends what would come there.
    parser.options["maxNesting"] = DEEPEST + 20
    return parser


def _math(state: StateInline, silent: bool) -> bool:
    r"""A formula as one literal: CommonMark would take the backslashes of \( and \, as escapes, and _ as emphasis."""
    opening = state.src[state.pos : state.pos + 2]
    closing = _FORMULAS.get(opening)
    if closing is None:
        return False
    end = state.src.find(closing, state.pos + 2, state.posMax)
    if end < 0 or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        state.push("math_inline", "", 0).content = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


def _deep(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """The lines of a container that is nested too deep, as one paragraph."""
    if state.level < DEEPEST:
        return False
    if silent:
        return True
    token = state.push("paragraph_open", "p", 1)
    token.map = [first, last]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(first, last, state.blkIndent, False).strip()
    inline.map = [first, last]
    inline.children = []
    state.push("paragraph_close", "p", -1)
    state.line = last
    return True
