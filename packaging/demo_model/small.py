"""Sums, stories, jokes and small facts: one question, its reply and what may follow."""

import random
import re

from demo_model.grammar import expand
from demo_model.nouns import article
from demo_model.subjects import Chat, Pair, fixed, pairs, table
from demo_model.wording import frame, question

# --- sums -------------------------------------------------------------------------------------------------------------------

_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]  # fmt: skip
_THINGS = ["apples", "books", "coins", "pencils", "cookies", "stones", "eggs", "balls", "oranges", "flowers", "cards", "shells", "cups", "keys", "nuts", "stamps", "candies", "birds", "plums", "tickets"]  # fmt: skip
_SUMS = {
    "+": (
        "{What is|What is|How much is|Calculate|What do you get for|Compute|Work out|Tell me|Solve|What does|I need to know|Please calculate|So what is|Find} <a> {+|plus|and} <b>{||, please}"
        "|<a> + <b>|<a>+<b>|<a> + <b> =|<a> + <b> = ?|<a> plus <b>|Add <a> and <b>{|, please}|Add <b> to <a>|What is the sum of <a> and <b>|{What|How much} do <a> and <b> {make|give}{| together}|If I add <a> and <b>, what do I get|What do I get when I add <b> to <a>"
        "|{Can|Could} you {add <a> and <b>|work out <a> + <b>|calculate <a> + <b>|tell me what <a> + <b> is|do <a> plus <b>|compute <a> + <b>|solve <a> + <b>}{| for me}|{Do you know|Tell me|I want to know} {what <a> + <b> is|how much <a> plus <b> is|what <a> and <b> make}|What is <b> more than <a>|How much will <a> and <b> be"
    ),
    "-": (
        "{What is|What is|How much is|Calculate|What do you get for|Compute|Work out|Tell me|Solve|I need to know|Please calculate|So what is} <a> {-|minus} <b>{||, please}|<a> - <b>|<a>-<b>|<a> - <b> =|<a> - <b> = ?|<a> minus <b>|Subtract <b> from <a>|Take <b> away from <a>|What is left {when|if} I take <b> {away |}from <a>"
        "|What is the difference between <a> and <b>|{Can|Could} you {subtract <b> from <a>|work out <a> - <b>|calculate <a> - <b>|tell me what <a> - <b> is|do <a> minus <b>}{| for me}|{Do you know|Tell me|I want to know} {what <a> - <b> is|how much <a> minus <b> is}|What is <b> less than <a>|How much is <a> take away <b>"
    ),
    "times": (
        "{What is|What is|How much is|Calculate|What do you get for|Compute|Work out|Tell me|Solve|I need to know|Please calculate} <a> {times|x|*|multiplied by} <b>{||, please}|<a> * <b>|<a> x <b>|<a>*<b>|<a> times <b>|Multiply <a> {by|with|and} <b>|What is the product of <a> and <b>|What do <a> times <b> make"
        "|{Can|Could} you {multiply <a> by <b>|work out <a> times <b>|calculate <a> x <b>|tell me what <a> times <b> is}{| for me}|{Do you know|Tell me|I want to know} {what <a> times <b> is|how much <a> times <b> is}"
    ),
    "divided by": (
        "{What is|What is|How much is|Calculate|What do you get for|Compute|Work out|Tell me|Solve|Please calculate} <a> {divided by|/|over} <b>{||, please}|<a> / <b>|<a> divided by <b>|Divide <a> by <b>|How {many times|often} does <b> go into <a>|{Can|Could} you {divide <a> by <b>|work out <a> / <b>|tell me what <a> divided by <b> is}{| for me}|{Do you know|Tell me|I want to know} {what <a> divided by <b> is|how much <a> divided by <b> is}|What is <a> split into <b> parts"
    ),
}  # fmt: skip


def _solve(sign: str, a: int, b: int) -> str:
    if sign in "+-":
        return f"{a} {sign} {b} = {a + b if sign == '+' else a - b}."
    return f"{a} {sign} {b} is {a * b if sign == 'times' else a // b}."


def _numbers(r: random.Random, sign: str) -> tuple[int, int]:
    if sign == "times":
        return r.randint(0, 12), r.randint(0, 12)
    if sign == "divided by":
        b, q = r.randint(1, 12), r.randint(1, 12)
        return b * q, b
    top = r.choice([10, 10, 20, 20, 50, 100])
    a, b = r.randint(0, top), r.randint(0, top)
    return (a, b) if sign == "+" else (max(a, b), min(a, b))


def _plain_sum(r: random.Random) -> Chat:
    sign = r.choices(list(_SUMS), [30, 24, 20, 9])[0]
    a, b = _numbers(r, sign)
    spelled = max(a, b) <= 20 and r.random() < 0.15
    values = {"a": _WORDS[a] if spelled else str(a), "b": _WORDS[b] if spelled else str(b)}
    ask = question(expand(r, _SUMS[sign], values))
    if ask[-1] == "." and re.search(r"[=\d]\.$", ask) and ask[0].isdigit():
        ask = ask[:-1]
    result = {"+": a + b, "-": a - b, "times": a * b, "divided by": a // b if b else 0}[sign]
    # Follow-ups: another sum, the same kind with other numbers, going on from the result. A result may go on once only.
    c, d = _numbers(r, sign)
    mark = sign if sign in "+-" else r.choice([sign, sign, {"times": "x", "divided by": "/"}[sign]])
    again = expand(
        r,
        "{And|And what is|Now|And now|What about|How about|Now do|And how much is|What is|Now do the same with|Then what is|Okay, and|Now try|And then|Next:|}{|} <c> <s> <d>",
        {"c": str(c), "d": str(d), "s": mark},
    )
    e, f = _numbers(r, "+" if sign != "+" else "-")
    other = "+" if sign != "+" else "-"
    more: list[Pair] = [
        (question(again).replace(".", "?"), _solve(sign, c, d)),
        (
            question(
                expand(
                    r,
                    "{And|And what is|Now|What about|And how much is|What is|And now} <c> <s> <d>",
                    {"c": str(e), "d": str(f), "s": other if r.random() < 0.5 else {"+": "plus", "-": "minus"}[other]},
                )
            ).replace(".", "?"),
            _solve(other, e, f),
        ),
    ]
    answers: list[Pair] = []
    g = r.randint(1, 10)
    x = r.random()
    if x < 0.3:
        plus = "{And plus <g>|Plus <g>|And <g> more|Now add <g>|Add <g> to that|And if I add <g>|Add <g>|And then plus <g>}"
        answers.append((question(expand(r, plus, {"g": str(g)})).replace(".", "?"), _solve("+", result, g)))
    elif x < 0.5 and result >= g:
        minus = (
            "{And minus <g>|Minus <g>|Now take away <g>|Subtract <g> from that|And if I take away <g>|Take away <g>}"
        )
        answers.append((question(expand(r, minus, {"g": str(g)})).replace(".", "?"), _solve("-", result, g)))
    elif x < 0.65 and result <= 50:
        answers.append((question(expand(r, "{And double that|Double that|And twice that|Now double it|And two times that|Times two}")), f"Two times {result} is {2 * result}."))  # fmt: skip
    r.shuffle(more)
    sure = "{Are you sure|Is that right|Is that correct|Really|Are you certain|Did you check it}?"
    if not answers and r.random() < 0.15:
        answers.append((expand(r, sure), f"Yes, I think so: {_solve(sign, a, b)}"))
    return Chat([ask, _solve(sign, a, b)], "arithmetic", f"I calculate {a} {sign} {b}.", answers=answers, more=more)


def _number_facts(r: random.Random) -> Chat:
    kind = r.choices(["half", "double", "larger", "next", "before", "count", "even"], [6, 6, 10, 8, 5, 3, 4])[0]
    a = r.randint(0, r.choice([10, 20, 50, 100]))
    if kind == "half":
        a = 2 * r.randint(1, 50)
        ask = expand(
            r,
            "{What is|How much is|Tell me|Calculate|What would be|Can you tell me what is} {|the }half of <a>|<a> {cut in half|halved}, what is it|Half of <a>|What do I get when I {halve|cut} <a>{| in half}",
            {"a": str(a)},
        )
        answer = f"Half of {a} is {a // 2}."
    elif kind == "double":
        ask = expand(
            r,
            "{What is|How much is|Tell me|Calculate} {double|twice|the double of|two times} <a>|Double <a>|Twice <a>|What do I get when I double <a>",
            {"a": str(a)},
        )
        answer = f"Two times {a} is {2 * a}."
    elif kind == "larger":
        b = max(0, a + r.choice([-9, -5, -3, -2, -1, 1, 2, 3, 5, 9]))
        b = b if b != a else a + 1
        word = r.choice(["larger", "larger", "bigger", "greater", "smaller", "higher", "more", "less"])
        low = word in ("smaller", "less")
        pick = min(a, b) if low else max(a, b)
        values = {"a": str(a), "b": str(b), "w": word}
        ask = expand(
            r,
            "{Which|What|Which number|Which one|Which of the two|What number|Which of these numbers} is <w>{,|:|, } <a> or <b>|Is <a> <w> than <b>|{Can you tell me|Tell me|Do you know|Say} which is <w>, <a> or <b>|What is <w>: <a> or <b>|Which number is <w>, <a> or <b>|Which of <a> and <b> is <w>|Of <a> and <b>, which is <w>",
            values,
        )
        if ask.startswith("Is"):
            answer = f"Yes, {a} is {word} than {b}." if pick == a else f"No, {b} is {word} than {a}."
        else:
            answer = f"{pick} is {word} than {a + b - pick}."
    elif kind == "next":
        ask = expand(
            r,
            "{What|Which number|What number|Which|Which one|What one} {comes|follows|is|comes right|comes next} after <a>|{Which|What} number follows <a>|What is the next number after <a>|What is the number after <a>|What follows <a>|Which number is next after <a>|Tell me {the number after <a>|what comes after <a>}|Can you tell me what comes after <a>|I counted to <a>. What is next|When I count, what comes after <a>",
            {"a": str(a)},
        )
        answer = f"{a + 1} comes after {a}."
    elif kind == "before":
        a += 1
        ask = expand(
            r,
            "{What|Which number|What number} comes before <a>|What is the number before <a>|Which number is right before <a>|Tell me the number before <a>|Can you tell me what comes before <a>",
            {"a": str(a)},
        )
        answer = f"{a - 1} comes before {a}."
    elif kind == "even":
        ask = expand(
            r, "Is <a> {even|odd|an even number|an odd number}|Is <a> even or odd|Even or odd: <a>", {"a": str(a)}
        )
        is_even = "even" if a % 2 == 0 else "odd"
        answer = f"{a} is an {is_even} number." if is_even == "odd" else f"{a} is an even number."
    else:
        a = r.randint(3, 12)
        ask = expand(
            r,
            "Count {to|up to|from 1 to|from one to} <a>{|, please| for me}|Can you count {to|from 1 to|up to} <a>|Please count to <a>",
            {"a": str(a) if r.random() < 0.7 else _WORDS[a]},
        )
        answer = ", ".join(map(str, range(1, a + 1))) + "."
    return Chat([question(ask), answer], "arithmetic", "I think about the numbers.")


def _word_problem(r: random.Random) -> Chat:
    thing, b = r.choice(_THINGS), r.randint(1, 10)
    a = r.randint(b + 1, b + 12)

    def say(n: int) -> str:
        return _WORDS[n] if n <= 12 and r.random() < 0.35 else str(n)

    one = {"cookies": "cookie", "candies": "candy"}.get(thing, thing[:-1])
    values = {"a": say(a), "b": say(b), "t": thing, "n": r.choice(["Tom", "Anna", "My brother", "My sister", "Ben", "A boy", "A girl", "My friend", "Lisa"])}  # fmt: skip
    if r.random() < 0.55:
        eat = "|eat" if thing in ("apples", "cookies", "eggs", "oranges", "nuts", "candies", "plums") else ""
        left = f"{a - b} {thing if a - b != 1 else one} {'is' if a - b == 1 else 'are'} left."
        ask = expand(
            r,
            f"{{I have|There are|I had|I bought|I got|I own|In a box are|On the table are}} <a> <t>{{ and|. I|. Then I|, and I|. Now I}} {{give away|lose|sell|use|take away|drop|lend{eat}}} <b>{{| of them}}. How many {{are left|<t> are left|do I have left|<t> do I have left|do I still have|<t> remain|are still there}}?"
            f"|<n> has <a> <t> and {{gives away|loses|sells|uses|drops}} <b>. How many are left?|If I have <a> <t> and {{give away|lose|sell|use{eat}}} <b>, how many {{are left|do I have left|<t> are left|remain}}?",
            values,
        )
        return Chat([ask, f"{a} - {b} = {a - b}, so {left}"], "arithmetic", f"{a} minus {b} is {a - b}.")
    ask = expand(
        r,
        "{I have|I had|I own|I bought} <a> <t>{ and|. I|. Then I|, and I} {get|buy|find|receive|am given} <b> more. How many {do I have|<t> do I have|do I have now|do I have in all|are that}?|There are <a> <t> and <b> more. How many are there?|<n> has <a> <t> and gets <b> more. How many are there now?"
        "|If I have <a> <t> and {get|buy|find} <b> more, how many do I have?|My friend gives me <b> <t>, and I have <a> already. How many do I have?",
        values,
    )  # fmt: skip
    x = f"{a} + {b} = {a + b}, so"
    answer = f"{x} there are {a + b} {thing}." if "are there" in ask else f"{x} you have {a + b} {thing}."
    return Chat([ask, answer], "arithmetic", f"{a} plus {b} is {a + b}.")


def arithmetic(r: random.Random) -> Chat:
    return r.choices([_plain_sum, _number_facts, _word_problem], [60, 25, 15])[0](r)


# --- stories ----------------------------------------------------------------------------------------------------------------

_NAMES = [
    "Milo",
    "Luna",
    "Tim",
    "Nora",
    "Finn",
    "Rosa",
    "Ben",
    "Mia",
    "Otto",
    "Lily",
    "Sam",
    "Ella",
    "Max",
    "Anna",
    "Leo",
    "Ruby",
]
_PLACES = ["in a green forest", "near a small river", "on a quiet hill", "in an old garden", "by the sea", "at the edge of a village", "in a deep valley"]  # fmt: skip
_OBJECTS = ["red ball", "golden key", "small lamp", "blue kite", "wooden boat", "silver bell", "warm scarf", "little book"]  # fmt: skip
_ADJECTIVES = ["small", "brave", "clever", "young", "curious", "shy", "friendly", "lonely", "happy", "old"]
_HEROES = ["dragon", "princess", "king", "queen", "boy", "girl", "robot", "knight", "pirate", "wizard", "witch", "unicorn", "ghost", "giant", "fairy", "farmer", "baker", "teacher", "sailor", "child", "doctor", "soldier", "cook", "painter", "snowman", "mermaid", "dwarf", "elf", "prince", "star", "tree", "train", "car", "cloud", "doll"]  # fmt: skip


def _tell(hero: str, zoo: list[str], which: str, templates: list[list[str]]) -> tuple[str, dict[str, str]]:
    """The same story for the same hero: something to learn rather than to guess."""
    name = fixed(hero + which, _NAMES)
    values = {
        "N": name, "n": fixed(hero + which, [x for x in _NAMES if x != name]), "a": hero, "f": fixed(which + hero, [z for z in zoo if z != hero]),
        "p": fixed(hero + which, _PLACES), "t": fixed(hero + which, _OBJECTS), "adj": fixed(hero + which, _ADJECTIVES),
    }  # fmt: skip
    text = fixed(which + hero, [t[0] for t in templates]).format(**values)
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text), values


def story(r: random.Random) -> Chat:
    zoo = [row[0] for row in table("animals")]
    templates = table("stories")
    hero = r.choice(zoo) if r.random() < 0.65 else r.choice(_HEROES)
    free = r.random() < 0.12
    if free:
        hero = "fox"
    text, v = _tell(hero, zoo, "first", templates)
    ask = expand(
        r,
        "{Tell me|Write|Can you tell me|Could you tell me|Make up|Write me|I want to hear|I would like|Please tell me|Can you write|Invent|Would you tell me|I would like to hear|Read me|Give me|Do you know|Let me hear|My child wants|I need} a {|short |little |nice |small |very short |bedtime |good |funny }story"
        + ("{|, please| for my child| for children}" if free else " {about|with|of} <x>{|, please| for my child}"),
        {"x": f"{article(hero)} {hero}"},
    )
    second, _w = _tell(hero, zoo, "second", templates)
    more = [
        (question(expand(r, "{What was the name of the <h>|What was the <h> called|What is the <h>'s name|What was the <h>'s name|What did they call the <h>|How was the <h> called|Do you remember the name of the <h>|What was the hero called|Who is the story about}", {"h": hero})), f"The {hero} was called {v['N']}."),
        (question(expand(r, "{Who was the friend|Who helped|Who was <n>|Who is <n>|What was the other one called|Who was the other one}", {"n": v["n"]})), f"It was {article(v['f'])} {v['f']} named {v['n']}."),
        (question(expand(r, "{What a nice story|That was a nice story|I like that story|Nice story|That is a beautiful story|What a lovely story|Good story|I liked it|That was sweet}")).replace(".", "!"), "Thank you! I am glad you like it."),
        (question(expand(r, "{Is that a true story|Is it true|Did that really happen|Is that real|Did you invent that|Did you make that up}")), "No, the story is made up."),
        (question(expand(r, "{What is the moral|What does the story teach|What can I learn from it|What does the story mean|What is the message}")), "It shows that it is good to help each other."),
    ]  # fmt: skip
    r.shuffle(more)
    another = "{Another one|Another one, please|One more|Tell me another one|Another story|One more story, please|Can you tell me another one|Do you know another story}"
    then = "{What happened then|And then|What happened next|How does it go on|Go on|Continue|What happened after that|And after that}"
    answers = [
        (
            question(expand(r, then)),
            f"Then {v['N']} went home and told everyone about {v['n']}. And they were friends for a long time.",
        )
    ]
    asides = [(question(expand(r, another)), second)]
    return Chat([question(ask), text], "story", f"The user wants a story. I will write a short one about {article(hero)} {hero}.", answers=answers if r.random() < 0.15 else [], more=more, asides=asides)  # fmt: skip


# --- jokes and facts --------------------------------------------------------------------------------------------------------


def joke(r: random.Random) -> Chat:
    kind = r.choice(["joke", "joke", "fact"])
    said = [row[1] for row in table("jokes") if row[0] == kind]
    if kind == "joke":
        ask = "{Tell me|Do you know|Give me|Can you tell me|I want to hear|Could you tell me|Say|Let me hear|I need|Know|Please tell me} a {|good |funny |short |silly }joke{|, please}|{Make me laugh|Say something funny|Tell me something funny|Can you make me laugh|Are you funny|Do you have humor|Can you be funny|I want to laugh|A joke, please|Joke|Do you know any jokes|Do you tell jokes|Can you tell jokes|Tell me jokes}"
        again = "{Another one|Another joke|One more|Another one, please|Tell me another one|Tell me another joke|One more joke, please|Do you know another one|Do you have another one|Again|More|Do you know more jokes|A different one}"
        why = "{I do not get it|Why is that funny|I do not understand it|Explain it|What does that mean|That is not funny|Not funny|I do not understand the joke}"
        about = "It is a play with words. Jokes are hard to explain."
    else:
        ask = "{Tell me|Do you know|Give me|Say|I want to hear|Can you tell me|Could you tell me|Please tell me} {something interesting|a fact|something new|a fun fact|an interesting fact|something that I do not know|something surprising|something strange|something funny about nature|a random fact|something about the world}{|, please}|{Surprise me|Teach me something|Amaze me|Teach me something new|Impress me|Fun fact, please|What is something interesting|I want to learn something new|I want to learn something}"
        again = "{Another one|Another fact|One more|Another one, please|Tell me another one|One more fact, please|Do you know another one|Something else|More|Tell me more|What else}"
        why = "{Really|Is that true|I did not know that|No way|Are you sure|That is interesting|Wow|How interesting|Amazing}"
        about = "Yes, that is what I learned. But I am a small demo model, so please check it."
    more = [(question(expand(r, why)), about)]
    if kind == "joke":
        more.append((question(expand(r, "{Haha|That is funny|Good one|Very funny|Lol|That was good|I like it|You are funny|Hahaha}")).replace(".", "!"), "I am glad that you like it!"))  # fmt: skip
    r.shuffle(more)
    turns = [question(expand(r, ask)), said[0]]
    x = r.random()
    if x < 0.35:
        turns += [question(expand(r, again)), said[1]]
        if x < 0.2:
            turns += [question(expand(r, again)), said[2]]
            if x < 0.1:
                turns += [question(expand(r, again)), said[3]]
    return Chat(turns, "joke", "I will tell something short.", more=more)


CAPITALS = (
    "France Paris|Germany Berlin|Italy Rome|Spain Madrid|Portugal Lisbon|Austria Vienna|Greece Athens|Poland Warsaw|Sweden Stockholm|Norway Oslo|"
    "Denmark Copenhagen|Finland Helsinki|Ireland Dublin|England London|Russia Moscow|Japan Tokyo|China Beijing|India Delhi|Egypt Cairo|Kenya Nairobi|"
    "Canada Ottawa|Cuba Havana|Peru Lima|Chile Santiago|Hungary Budapest|Turkey Ankara|Iran Tehran|Thailand Bangkok|Australia Canberra|Belgium Brussels|"
    "Ukraine Kyiv|Romania Bucharest|Bulgaria Sofia|Croatia Zagreb|Iceland Reykjavik|Vietnam Hanoi|Nigeria Abuja|Ghana Accra|Morocco Rabat|Scotland Edinburgh"
)  # fmt: skip
OPPOSITES = "hot cold|big small|fast slow|day night|happy sad|old new|young old|light dark|high low|long short|open closed|good bad|hard soft|full empty|rich poor|wet dry|early late|loud quiet|strong weak|clean dirty|near far|up down|left right|heavy light|easy difficult|love hate|black white|first last|inside outside|true false|summer winter|thick thin|wide narrow|brave afraid|sweet sour"  # fmt: skip
ORDER = ["Monday Tuesday Wednesday Thursday Friday Saturday Sunday", "January February March April May June July August September October November December"]  # fmt: skip


def small_fact(r: random.Random) -> Chat:
    x = r.random()
    if x < 0.4:
        country, city = r.choice(CAPITALS.split("|")).split()
        other, its = r.choice(CAPITALS.split("|")).split()
        asides = [
            (
                question(
                    expand(
                        r,
                        "{And|And what about|What about|How about|And of|And the capital of|And what is the capital of} <c>",
                        {"c": other},
                    )
                ).replace(".", "?"),
                f"The capital of {other} is {its}.",
            ),
        ]
        more = [
            (question(expand(r, "{Is it big|Is it a big city|How many people live there|What can I see there|Have you been there|Tell me more about it|What is it known for|Is it nice there}")), f"I do not know much about {city}. I only know that it is the capital of {country}."),
        ]  # fmt: skip
        if r.random() < 0.75:
            ask = "{What is|Which city is|Tell me|Do you know|Can you tell me|What would be|Name|Could you tell me|Say|I forgot} the capital {|city }of <c>{|, please}|Capital of <c>|What is <c>'s capital|What city is the capital of <c>|Which is the capital of <c>|What is the main city of <c>"
            return Chat([question(expand(r, ask, {"c": country})), f"The capital of {country} is {city}."], "fact", f"The capital of {country} is {city}.", more=more, asides=asides)  # fmt: skip
        ask = "{Where is|In which country is|Tell me where is|What country is|Do you know where is|In what country is} <c>{|| located}"
        return Chat([question(expand(r, ask, {"c": city})), f"{city} is the capital of {country}."], "fact", f"{city} is in {country}.", more=more, asides=asides)  # fmt: skip
    if x < 0.7:
        a, b = r.choice(OPPOSITES.split("|")).split()
        c, d = r.choice(OPPOSITES.split("|")).split()
        ask = "{What is|Tell me|What would be|Do you know|Give me|Can you tell me|Name|Say|Could you tell me} the {opposite|contrary} of {|the word }<a>{|, please}|Opposite of <a>|Which word is the opposite of <a>|What word means the opposite of <a>|<a> and its opposite"
        more = [(question(expand(r, "{And|And of|What about|And the opposite of|How about|And what is the opposite of} <a>", {"a": c})).replace(".", "?"), f"The opposite of {c} is {d}.")]  # fmt: skip
        return Chat([question(expand(r, ask, {"a": a})), f"The opposite of {a} is {b}."], "fact", f"The opposite of {a} is {b}.", more=more)  # fmt: skip
    days = r.choice(ORDER).split()
    i = r.randrange(len(days))
    after = days[(i + 1) % len(days)]
    unit = "day" if len(days) == 7 else "month"
    if r.random() < 0.7:
        ask = "{What|Which <u>|What <u>} {comes|is|follows} after <a>|{Which|What} <u> follows <a>|Tell me {what comes after <a>|the <u> after <a>}|What is the <u> after <a>|After <a> comes which <u>|If today is <a>, what is tomorrow"
        if unit == "month":
            ask = ask.rpartition("|")[0]
        return Chat([question(expand(r, ask, {"a": days[i], "u": unit})), f"{after} comes after {days[i]}."], "fact", f"After {days[i]} comes {after}.")  # fmt: skip
    ask = "{What|Which <u>|What <u>} {comes|is} before <a>|What is the <u> before <a>|Tell me what comes before <a>"
    return Chat([question(expand(r, ask, {"a": after, "u": unit})), f"{days[i]} comes before {after}."], "fact", f"Before {after} comes {days[i]}.")  # fmt: skip


def authored_fact(r: random.Random) -> Chat:
    asked, answers = r.choice(pairs("facts")[:_STANDALONE])
    ask = question(r.choice(asked))
    if r.random() < 0.3:
        ask = frame(r, _clause(ask)) if _clause(ask) != ask else ask
    more = [(question(expand(r, "{Why|Why is that|Why is that so|How come|What is the reason|Can you explain that|How does that work}")), "I do not know exactly. I am a small model and know only the short answer."),
            (question(expand(r, "{Are you sure|Is that true|Really|Is that right}")), "I learned it in my training, but I am a small demo model and I can be wrong. Please check it.")]  # fmt: skip
    return Chat([ask, answers[0]], "fact", "The user asks a simple question. I will answer it in short.", more=more)


def _clause(ask: str) -> str:
    """ "What color is the sky?" -> "what color the sky is", where the order is simple enough to turn."""
    m = re.fullmatch(r"(What color|What|Why|Where|Which color) (is|are) ((?:the |a |an )?\w+)( [\w ]+)?\?", ask)
    return f"{m[1].lower()} {m[3]} {m[2]}{m[4] or ''}" if m else ask


# The last rows of the table are follow-ups ("Is it hard?") that need a subject.
_STANDALONE = next(i for i, (asked, _) in enumerate(pairs("facts")) if asked[0] == "Is it hard to learn")
