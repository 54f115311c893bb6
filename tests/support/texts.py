"""Texts that break naive streaming, for hypothesis and for loops."""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st

# Two shared cores: a single example's time says nothing. CI must not fail by luck: new cases are found at desks.
settings.register_profile("pacenote", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("pacenote")

PIECES = (
    # letters, accents composed and not, several marks on one base
    "a", "Z", " ", "\n", "\n\n", "\t", "\r\n", "é", "e\u0301", "q\u0323\u0307", "ﬁ", "ß",
    # emoji: plain, skin tone, family, flag, two flags, keycap, variation selector, tag sequence
    "😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🇩🇪🇫🇷", "1️⃣", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🧑🏿‍🚀", "\u200d",
    # CJK, Hangul jamo, kana with a voiced mark
    "東京", "你好，世界", "한국", "\u1112\u1161\u11ab", "か\u3099", "𠮷",
    # right to left with marks and controls; Indic conjuncts; Thai
    "שָׁלוֹם", "السلام عليكم", "\u202eabc\u202c", "\u200f", "क्षि", "हिन्दी", "ที่นี่",
    # code and markup
    "`", "``", "```", "```python\nx = 1\n```\n", "`</think>`", "<", "</", "<think", "<think>", "</think>", "ink>",
    "</s>", "if a < b:\n    return", "<div>", "&amp;",
    # what the stop strings below begin with
    "S", "ST", "STO", "STOP", "###", "##", "\nUser:", "User", "\ufffd", "\x00", "\u2028",
)  # fmt: skip

STOPS = ("STOP", "###", "\nUser:", "TOP S", "é", "👍🏽", "`` `", "</s>")

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join)


@st.composite
def chunked(draw: st.DrawFn, source: st.SearchStrategy[str] = texts) -> list[str]:
    """A text, cut in any way; empty chunks included. Joined it is the text."""
    text = draw(source)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=2 * len(text) + 2)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
