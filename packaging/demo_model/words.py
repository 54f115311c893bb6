"""Words: what they mean, what may be asked about them, and what may follow."""

import random
import re
from dataclasses import dataclass
from functools import cache
from itertools import islice

from demo_model.grammar import expand
from demo_model.nouns import (
    ANIMAL,
    ARTIFACT,
    BODY,
    FEELING,
    FOOD,
    OBJECT,
    PERSON,
    PLANT,
    Noun,
    article,
    nouns,
    pluralize,
    upper,
)
from demo_model.subjects import Chat, Pair, table
from demo_model.wording import frame, question

_UNCOUNTED = frozenset(
    ["rain", "snow", "wind", "thunder", "lightning", "music", "bread", "cheese", "butter", "milk", "honey", "sugar", "salt", "chocolate", "pasta", "rice", "tea", "coffee", "water", "ice", "fire", "grass", "paper", "wood", "glass", "gold", "iron", "money", "love", "happiness", "sadness", "fear", "anger", "hope", "courage", "patience", "trust", "joy", "sleep", "memory", "health", "time", "winter", "summer", "spring", "autumn", "art", "science", "history", "mathematics", "electricity", "energy", "gravity", "air", "oxygen", "justice", "freedom", "peace", "war", "football", "tennis", "swimming", "chess", "friendship", "soup", "television"]
) | {"artificial intelligence"}  # fmt: skip
_PEOPLE = ("a person", "a doctor", "a soldier", "someone who")
_MANY = ("Alps", "Olympic Games", "scissors")
_WITH_THE = ("sun", "moon", "earth", "internet", "sea")


# WordNet writes for readers of a dictionary. Short glosses of things are what a chat can use; the rest it rather declines.
_CONCRETE = (ANIMAL, ARTIFACT, BODY, FEELING, FOOD, OBJECT, PERSON, PLANT)
WORDNET_WORDS = 500
_PLAIN = re.compile(
    r"(a|an|the|any|something|someone|small|large)\b(?!.*\b(disparaging|terms?|members?|slang|organisms?|genus|located|informal|`)\b).{8,60}$"
)


@dataclass(frozen=True)
class Word:
    a: str  # with its article
    word: str
    plural: str | None
    definition: str
    more: str | None
    example: str | None
    kind: str | None


def _authored(word: str, gloss: str, more: str) -> Word:
    more = more if more.endswith((".", "?", "!")) else more + "."
    if marked := re.fullmatch(r"(-|the) (.+)", word):  # authored_words_more.txt
        a = marked[2] if marked[1] == "-" else word
        return Word(
            a, marked[2], None, f"{upper(a)} {'are' if marked[2] in _MANY else 'is'} {gloss}.", more, None, None
        )
    if word in _WITH_THE:
        a = f"the {'Earth' if word == 'earth' else word}"
        plural = None
    elif word in _UNCOUNTED:
        a, plural = word, None
    else:
        a = f"{article(word)} {word}"
        plural = {"fish": "fish", "knife": "knives", "leaf": "leaves"}.get(word, pluralize(word))
    return Word(a, word, plural, f"{upper(a)} is {gloss}.", more, None, None)


def _from_wordnet(n: Noun) -> Word:
    example = upper(n.example) + ("" if n.example[-1] in ".!?" else ".") if n.example else None
    return Word(n.a, n.word, n.plural if n.countable else None, n.definition, None, example, n.kind)


@cache
def words() -> tuple[list[Word], list[Word]]:
    """(defined in this project, defined by WordNet)."""
    own = [_authored(*row) for name in ("words", "words_more") for row in table(name)]
    known = {w.word for w in own} | {row[0] for row in table("animals")}
    plain = (n for n in nouns() if n.word not in known and n.lexname in _CONCRETE and _PLAIN.match(n.gloss))
    return own, [_from_wordnet(n) for n in islice(plain, WORDNET_WORDS)]


_WHAT_IS = (
    "{What is|What is|What is|What exactly is|What really is|So what is|And what is} <a>{|| exactly|, please|, in short|, in simple words|, actually}"
    "|{Define|Explain|Describe|Please explain|Please define|Please describe|Explain to me|Describe to me|Can you explain|Can you define|Can you describe|Could you explain|Could you describe} <a>{|, please| in simple words| in one sentence| for me| to me}"
    "|What does {the word |the term |}<w> mean{| exactly| in simple words}|What is the meaning of {|the word }<w>|What do you {call|understand by|mean by} <a>|What do people mean by <w>|What is meant by <w>"
    "|Tell me {|something |a bit |a little |more }about <ps>|What do you know about <ps>|What are <ps>|What are <ps>|Do you know anything about <ps>|What can you tell me about <ps>"
    "|{Can|Could} you tell me {|something |a bit |a little |more }about <ps>|I want to {know|learn} {|something |more }about <ps>|Give me {a|a short|a simple} {definition|explanation|description} of <w>"
    "|<w>|How would you {define|explain|describe} <a>|What kind of thing is <a>|What sort of thing is <a>|The word <w>, what does it mean|<a>, what is {that|it}|I read the word <w>. What does it mean"
    "|What {on earth|in the world|really|exactly|actually} is <a>|What would you say <a> is|What is <a> {for|good for|all about}|Ever heard of <a>? What is {it|that}|I {keep hearing|often hear|heard|saw|came across} the word <w>, what is it|What is the thing called <w>|What is a good {definition|explanation} of <w>|How do you explain <a>|What {should|must} I know about <a>|Do you know <a>|Ever heard of <a>|What is it that people call <a>|Tell me all about <ps>|{Explain|Describe} <a> {like I am {five|a kid|a child|six}|as if I were {five|a child}|for a {child|kid|beginner}|in plain words}|Why do people talk about <w>|What does <a> mean to people|So what is <a>, {really|actually|exactly}|I would like to understand <a>|What comes to your mind about <w>|So, <a>: what is it|What do people call <a>|Let me know what <a> is|In your own words, what is <a>|Help me understand <ps>"
    "|I heard about <ps>. What are they|Someone talked about <ps>. What is that|Is there a simple {explanation|definition} of <w>|Explain the word <w>|In {short|simple words|one sentence}, what is <a>|What is that, <a>"
)  # fmt: skip
TELL_MORE = "{Can|Could|Would|Will} you {tell|give} me {|a little |a bit |some |something }more{| about {it|that|them|this}| information| details}|{Tell|Give} me {|a little |a bit |some }more{| about {it|that|them|this}| details}|{Anything|Something|What} {else|more} {|you know |I should know |worth knowing |to know |to say }{|about {it|that|them}}|{I want|I would like|I would love} to {know|hear|learn} {more|a bit more|a little more}{| about {it|that|them|this}}|Is that all{| you know| there is}|{Do|Would} you know {more|anything else|something else}{| about {it|that|them}}|{Keep going|Please continue|Continue|Please go on|Go ahead|And what else|Say a bit more|A little more, please|More details, please|Tell me one more thing}|{Tell me more|Can you tell me more|Could you tell me more|What else|What else do you know|Anything else|And what else|Do you know more|Say more|Please tell me more|Go on|More|Is there more|I want to know more|Tell me something else about it|What else can you tell me|Can you say more|What more can you say|More about it, please|Tell me a bit more}"


def _clause(r: random.Random, w: Word) -> str:
    if w.plural and r.random() < 0.2:
        return f"what {w.plural} are"
    return r.choice([f"what {w.a} is", f"what {w.a} is", f"what {w.word} means", f"what the word {w.word} means"])


def what_is(r: random.Random, w: Word) -> Chat:
    if w.definition.split(" is ", 1)[-1].startswith(_PEOPLE) and r.random() < 0.3:
        does = "{What|What exactly|So what} does <a> {do|do all day|do at work|usually do|work on}{|, exactly}|What is the {job|work} of <a>|What {is|would be} <a>'s job|Who is <a>|What do <ps> do{| all day|}|{Can|Could} you {tell|explain to} me what <a> does|Do you know what <a> does|I {want|would like} to know what <ps> do|Tell me what <a> does{| for a living|}|What kind of {job|work} does <a> have"
        ask = question(expand(r, does, {"a": w.a, "ps": w.plural or w.a}))
    elif r.random() < 0.4:
        ask = frame(r, _clause(r, w))
    else:
        ask = question(expand(r, _WHAT_IS, {"a": w.a, "w": w.word, "ps": w.plural or w.a}))
    more: list[Pair] = []
    about = w.plural or w.a
    if w.more:
        more.append((expand(r, TELL_MORE), w.more))
    else:
        rest = f"That is all that I know about {about}. You can ask me about another word."
        more.append((expand(r, TELL_MORE), w.example or rest))
    if w.example:
        ask_example = "{Can you give me an example|Use it in a sentence|Give me an example|Give me an example sentence|Can you use it in a sentence|Make a sentence with it|Do you have an example|For example|An example, please}"
        more.append((expand(r, ask_example), w.example))
    if w.kind:
        more.append(
            (
                expand(r, "What kind of thing is {it|that}|What is it a kind of|What type of thing is it"),
                f"It is a kind of {w.kind}.",
            )
        )
    own, wordnet = words()
    other = r.choice(own if r.random() < 0.6 else wordnet[:2500])
    ask_other = (
        "{And|And what is|What about|How about|And what about|Now explain|And can you explain|Now tell me what is|Then what is|What is|And do you know|And how about|So what is|And what would be|And explain|Okay, and|Can you also explain|Do you also know|Next,|Now what is|And for} <a>{|| then| too}"
        "|{And|Okay, and|Great, and} what <a> is|{And|Now} what does <w> mean|And the word <w>|{Do you know|Can you tell me|Can you also tell me} what <a> is{|, too}"
    )
    asides = [(question(expand(r, ask_other, {"a": other.a, "w": other.word})).replace(".", "?"), other.definition)]
    if r.random() < 0.35:
        more.append(
            (
                expand(r, "{Why|Why is that|Why is it so|How does it work|Where does it come from|Who invented it|How is it made|How old is it|Where can I {find|see|buy|get} {it|one|that}|How {big|heavy|long|high|expensive|rare|dangerous} is it|How many are there|When was {it|that} invented|What is it made of|What does it look like|Is it {dangerous|expensive|important|common|useful}|Who {uses|needs|has} it|What is it used for|Do I need one|Are there different kinds|Which kinds are there|Which one is the {best|biggest|most famous}|What {color|size} is it}?"),
                f"I do not know that. I only know what {w.a} is.",
            )
        )  # fmt: skip
    r.shuffle(more)
    thought = f"The user asks what {w.a} is. I will explain it in simple words."
    return Chat([ask, w.definition], "what is", thought, more=more, asides=asides)


_ABOUT = (
    "What is <a> used for|Where can I {find|buy|get|see} <a>|Why {is|are} <ps> important|What can I do with <a>|What is special about <ps>|Tell me {a fact|an interesting fact} about <ps>"
    "|Why do people like <ps>|How does <a> work|What does <a> look like|Who uses <a>|Who invented <ps>|How {are|is} <ps> made|How old is <a>|How big is <a>|How much does <a> cost|What is <a> made of"
    "|What are the parts of <a>|Is <a> {dangerous|expensive|useful|important|old|big}|Why do we need <ps>|Where {do|does} <ps> come from|When {was|were} <ps> invented|What is the history of <ps>|How many <ps> are there|What is the difference between <a> and <b>"
)  # fmt: skip


def about_word(r: random.Random, w: Word, other: Word) -> Chat:
    """A question about a known word that it cannot answer: it says so and tells what it does know."""
    if not w.plural:
        return what_is(r, w)
    ask = question(expand(r, _ABOUT, {"a": w.a, "ps": w.plural, "b": other.a}))
    if " difference " in ask:
        return Chat(
            [ask, f"{w.definition} {other.definition}"], "difference", f"I will say what {w.a} and {other.a} are."
        )
    return Chat([ask, f"I do not know that exactly. I only know this: {w.definition}"], "about", f"The user asks about {w.plural}. I know little.")  # fmt: skip
