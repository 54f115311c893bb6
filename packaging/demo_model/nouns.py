"""Everyday nouns with a plain definition, made from WordNet and from how often words occur in the natural text."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from demo_model import sources

# WordNet's lexicographer files whose glosses read well as "A kettle is a metal pot": concrete and common things.
ACT, ANIMAL, ARTIFACT, ATTRIBUTE, BODY, COGNITION, COMMUNICATION, EVENT, FEELING, FOOD, GROUP, LOCATION = range(4, 16)
OBJECT, PERSON, PHENOMENON, PLANT, POSSESSION, PROCESS, QUANTITY, RELATION, SHAPE, STATE, SUBSTANCE, TIME = range(
    17, 29
)
_ARTICLE = re.compile(
    r"^(a|an|the|any|one|some|someone|something|somebody|that|those|these|all|either|each|every|people|anything|(?:\w+ly )?\w+ing)\b"
)


@dataclass(frozen=True)
class Noun:
    word: str
    plural: str
    countable: bool
    gloss: str
    kind: str | None
    example: str | None
    lexname: int
    frequency: int

    @property
    def a(self) -> str:
        """The noun with its article, when it takes one."""
        return f"{article(self.word)} {self.word}" if self.countable else self.word

    @property
    def definition(self) -> str:
        return f"{upper(self.a)} is {self.gloss}."


def article(word: str) -> str:
    if re.match(r"(hour|honest|honor|heir)", word):
        return "an"
    if re.match(r"(uni|use|usu|eu|one|u[rt]i|ewe)", word):
        return "a"
    return "an" if word[0] in "aeiou" else "a"


def upper(text: str) -> str:
    return text[0].upper() + text[1:]


def pluralize(word: str) -> str:
    irregular = {
        "man": "men",
        "woman": "women",
        "child": "children",
        "foot": "feet",
        "tooth": "teeth",
        "mouse": "mice",
        "person": "people",
    }
    head, _, last = word.rpartition(" ")
    if last in irregular:
        last = irregular[last]
    elif re.search(r"(s|x|z|ch|sh)$", last):
        last += "es"
    elif re.search(r"[^aeiou]y$", last):
        last = last[:-1] + "ies"
    else:
        last += "s"
    return f"{head} {last}".strip()


def clean_gloss(gloss: str, countable: bool) -> str | None:
    gloss = re.sub(r"\([^)]*\)", "", gloss)
    gloss = re.split(r"[;:]", gloss)[0]
    gloss = " ".join(gloss.split()).strip(" ,.")
    if not 12 <= len(gloss) <= 130 or gloss[0].isupper() or '"' in gloss:
        return None
    gloss = gloss.removesuffix(" etc")
    plural_start = gloss.split()[0].endswith("s") and not gloss.split()[0].endswith("ss")
    if not _ARTICLE.match(gloss) and countable and not plural_start:
        gloss = f"{article(gloss)} {gloss}"
    return gloss


@cache
def word_counts() -> Counter:
    counts: Counter = Counter()
    for text in (t for turns in sources.dialogues() for t in turns):
        counts.update(re.findall(r"[a-z]+", text.lower()))
    for a in sources.articles():
        counts.update(re.findall(r"[a-z]+", a.extract.lower()))
    return counts


@cache
def nouns() -> list[Noun]:
    counts = word_counts()
    index, tagged, sets, totals = sources.noun_index(), sources.sense_counts(), sources.synsets(), sources.tag_totals()
    out = []
    for lemma, offsets in index.items():
        if not re.fullmatch(r"[a-z]{3,}( [a-z]+)?", lemma):
            continue
        plural = pluralize(lemma)
        # Two-word nouns have no count of their own: WordNet's tags decide.
        frequency = counts[lemma] + counts[plural] if " " not in lemma else 3 * sum(tagged[lemma, o] for o in offsets)
        if frequency < 6:
            continue
        # A word that is mostly a verb or an adjective makes a silly "What is X?".
        senses = totals.get(lemma.replace(" ", "_"), {})
        if senses and senses.get("n", 0) < 0.6 * sum(senses.values()):
            continue
        if lemma.endswith("s") and lemma[:-1] in index and not lemma.endswith("ss"):
            continue
        best = sets[offsets[0]]
        if best.words[0][0].isupper() or lemma not in [w.lower() for w in best.words]:
            continue
        if re.search(
            r"\b(sex|slang|offensive|vulgar|slur|genital|penis|vagina|feces|excrement)",
            best.gloss + " ".join(best.words),
        ):
            continue
        limit = 0.01 if best.lexname in (ARTIFACT, ANIMAL, PERSON, PLANT) else 0.06
        countable = (
            counts[plural] >= limit * counts[lemma] and plural != lemma
            if " " not in lemma
            else best.lexname != SUBSTANCE
        )
        if best.lexname in (SUBSTANCE, FEELING) and counts[plural] < 0.5 * counts[lemma]:
            countable = False
        gloss = clean_gloss(best.gloss, countable)
        if not gloss or lemma in gloss.split()[:4]:
            continue
        kind = None
        if best.hypernyms:
            up = sets[best.hypernyms[0]].words[0]
            if (
                up.islower()
                and counts[up.split()[-1]] > 30
                and up not in gloss
                and up not in ("entity", "unit", "whole", "matter", "act")
            ):
                kind = up
        example = next((e for e in best.examples if lemma in e and 12 < len(e) < 80), None)
        out.append(Noun(lemma, plural, countable, gloss, kind, example, best.lexname, frequency))
    out.sort(key=lambda n: -n.frequency)
    return out


if __name__ == "__main__":
    all_nouns = nouns()
    print(len(all_nouns))
    for n in [*all_nouns[:20], *all_nouns[500:520], *all_nouns[4000:4020]]:
        print(n.definition, "|", n.kind, "|", n.example)
