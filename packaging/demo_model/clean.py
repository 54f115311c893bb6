"""Which of the teacher's replies are worth learning from, and how they are cut short. Also the hold-out test for prompts."""

import json
import re
from functools import cache

from demo_model.paths import ACCEPTANCE_PROMPTS, EVAL_PROMPTS

_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\be\.g\.)(?<!\bi\.e\.)[\"”)]?\s+(?=[\"“(A-Z0-9])"
)
# Talk about itself as another product, leftovers of prompts and formats, markup the student should not learn.
_BAD = re.compile(
    r"smollm|hugging ?face|language model|openai|chatgpt|\[[a-z' ]+\]|https?:|www\.|<\||\*\*|```|#{2,}|\\\\|_{2,}|system prompt"
    r"|as an ai\b|i(?:'m| am) an ai\b|here(?:'s| is) (?:a|the) (?:revised|rewritten|possible)|the user|sentence:|passage|\bfacts?:",
    re.IGNORECASE,
)
# Words that say nothing about a prompt's subject.
_STOP_WORDS = (
    "a an and are as at be but by can could do does for from give had has have how i if in into is it its like "
    "list make me my name no not of on or our please should some something tell that the them then there they "
    "this three to two up us use want was we were what when where which who why will with would you your about "
    "best way any short simple explain mean describe kind kinds example thing things good get am word four "
    "five one did so very really just need help "
)
_STOP = frozenset(_STOP_WORDS.split())


def sentences(text: str) -> list[str]:
    return [s for s in _SENTENCE.split(text) if s.strip()]


def stem(word: str) -> str:
    word = word.lower()
    for suffix, put in (("ies", "y"), ("ing", ""), ("es", ""), ("ed", ""), ("s", ""), ("e", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: len(word) - len(suffix)] + put
    return word


def content_stems(text: str) -> set[str]:
    return {stem(w) for w in re.findall(r"[a-z]+", text.lower()) if w not in _STOP and len(w) > 2}


def cut(text: str, keep: int) -> str | None:
    """At most `keep` whole sentences (a numbered or bulleted list counts each item); None when nothing whole is left."""
    text = text.replace("\r", "").strip()
    text = re.sub(r"\n{2,}", "\n", text)
    lines = [ln.strip() for ln in text.split("\n") if ln.strip()]
    if not lines:
        return None
    if sum(bool(re.match(r"(\d+\.|[-*•]) ", ln)) for ln in lines) >= 2:
        # A list: its lead-in and the first items, each cut to its first sentence.
        out = []
        for ln in lines:
            m = re.match(r"(?:(\d+\.)|[-*•]) (.*)", ln)
            if m:
                item = sentences(m.group(2))[0] if m.group(2) else ""
                if not item or (ln is lines[-1] and item[-1] not in ".!?"):
                    break
                out.append(f"{m.group(1) or '-'} {item}")
            elif not out:
                out.append(ln)
            else:
                break
            if len(out) > keep + 1:
                break
        return "\n".join(out) if len(out) >= 3 else None
    found = sentences(" ".join(lines))
    if found and found[-1][-1] not in '.!?"”)':
        found.pop()
    if found and found[-1].endswith(":"):
        found.pop()
    found = found[:keep]
    return " ".join(found) if found else None


def acceptable(prompt: str, reply: str, on_topic: bool) -> bool:
    if not 3 <= len(reply) <= 700 or _BAD.search(reply):
        return False
    if sum(ord(c) > 127 for c in reply) > 2:
        return False
    words = re.findall(r"[A-Za-z']+", reply.lower())
    if len(words) < 1:
        return False
    # Repetition is the one fault that a student copies best.
    grams = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    if len(grams) - len(set(grams)) > 1:
        return False
    whole = sentences(reply)
    if len({s.lower() for s in whole}) < len(whole):
        return False
    if len(words) >= 12 and len(set(words)) / len(words) < 0.5:
        return False
    if prompt.lower().rstrip("?.! ") == reply.lower().rstrip("?.! "):
        return False
    asked = content_stems(prompt)
    if re.match(r"[A-Z]: ", reply) or (asked and content_stems(reply) <= asked):
        return False  # says back what was said
    if (
        not prompt.endswith("?")
        and prompt.lower().split()[:2] == reply.lower().split()[:2]
        and words[0] in ("i", "my", "we")
    ):
        return False
    return not (on_topic and asked and not asked & content_stems(reply))


def normal(text: str) -> str:
    """Case, punctuation, contractions, articles and politeness apart: two prompts with equal `normal` are one prompt."""
    text = text.lower().replace("’", "'")
    for a, b in (
        ("what's", "what is"),
        ("who's", "who is"),
        ("i'm", "i am"),
        ("you're", "you are"),
        ("how's", "how is"),
        ("it's", "it is"),
    ):
        text = text.replace(a, b)
    words = re.findall(r"[a-z0-9+*/=-]+", text)
    kept = [w for w in words if w not in ("a", "an", "the", "please", "hey", "so", "and")]
    # An opening word alone makes no other prompt ("Hi! what is rain" is "What is rain?"), except where it is all there is.
    while len(kept) > 2 and kept[0] in ("hi", "hello"):
        kept = kept[1:]
    return " ".join(kept)


@cache
def held_out() -> frozenset[str]:
    raw = json.loads(EVAL_PROMPTS.read_text())
    turns = [p for group in [*raw["single"].values(), *raw["chats"]] for p in group]
    return frozenset(normal(p) for p in [*turns, *json.loads(ACCEPTANCE_PROMPTS.read_text())])


def is_held_out(text: str) -> bool:
    """Is it an evaluation prompt, or does it end with one (of at least two words)?"""
    kept = normal(text).split()
    prompts = held_out()
    return any(" ".join(kept[i:]) in prompts for i in range(max(1, len(kept) - 1)))
