"""Sums, what goes on from them, facts about numbers, and sums told as little stories."""

import random
import re

from demo_model.grammar import expand
from demo_model.subjects import Chat, Pair
from demo_model.wording import question

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


_THEN = {
    "+": "{And|And now|Now|Then|So|Okay, now|What} {if|happens if|do I get if|is it if|will it be if} {I|you|we} {add|put on top|give me} <g>{| more| extra}{| to that| to it| to this| to the result}|{Now|And|Then|Okay,|Next,} {add|plus} {|another }<g>{| to that| to it| more| to the result}|{What|How much} is {that|it|this|the result} plus <g>|{And|What about} with <g> more|{Can|Could} you add <g>{| to that| to it| more}|{And|And then} <g> more|And if there are <g> more|Increase it by <g>",
    "-": "{And|And now|Now|Then|So|Okay, now|What} {if|happens if|do I get if|is it if|will it be if} {I|you|we} {take|take away|subtract|remove|take off|lose|give away} <g>{| from that| from it| from this| of them| from the result}|{And|What} if {I|you|we} take <g> {away|off}{| from that| from it}|{Now|And|Then|Okay,|Next,} {take away|subtract|minus|take off|remove} {|another }<g>{| from that| from it| from the result}|{What|How much} is {that|it|this|the result} minus <g>|{And|What about} with <g> less|{Can|Could} you {take|subtract} <g> {from that|from it}|And <g> less|And if <g> are gone|Reduce it by <g>",
    "times": "{And|Now|Then|Okay, now} {times|multiply {it|that|the result} by} <g>|{And|What} if {I|you|we} multiply {it|that|the result} by <g>|{What|How much} is {that|it|this|the result} times <g>|{Can|Could} you multiply {that|it} by <g>|{And|What about} <g> times {that|as much}",
    "half": "{And|Now|Then} {half of {that|it}|halve {it|that}|cut it in half|divide {it|that} by two}|{What|How much} is half of {that|it}|And if {I|you|we} {halve|split} {it|that}",
    "double": "{And|Now|Then} {double {that|it}|twice {that|it}|two times that}|{What|How much} is {double that|twice that|twice as much|two times that}|And if {I|you|we} double {it|that}|Double {that|it}|And twice as much",
}  # fmt: skip


def _going_on(r: random.Random, result: int) -> list[Pair]:
    """Up to three questions in a row, each of which takes the last result further."""
    out: list[Pair] = []
    while len(out) < 3 and r.random() < (0.5 if not out else 0.6):
        ways = ["+", "+"] + ["-", "-"] * (result > 0) + ["times"] * (result <= 12) + ["half"] * (result % 2 == 0 < result) + ["double"] * (result <= 50)  # fmt: skip
        way = r.choice(ways)
        g = r.randint(1, min(10, result)) if way == "-" else r.randint(2, 5) if way == "times" else r.randint(1, 10)
        said = str(g) if g > 10 or r.random() < 0.8 else _WORDS[g]
        ask = question(expand(r, _THEN[way], {"g": said}))
        if re.match("And|What|How|So", ask):
            ask = ask.replace(".", "?")
        if way in ("half", "double"):
            new = result // 2 if way == "half" else 2 * result
            out.append((ask, f"Half of {result} is {new}." if way == "half" else f"Two times {result} is {new}."))
        else:
            new = {"+": result + g, "-": result - g, "times": result * g}[way]
            out.append((ask, _solve(way, result, g)))
        result = new
    return out


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
    answers = _going_on(r, result)
    g = r.randint(1, 10)
    x = 1.0 if answers else r.random()
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

    if r.random() < 0.3:
        return _groups(r, thing)
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


def _groups(r: random.Random, thing: str) -> Chat:
    """So many groups of so many, or so many shared."""
    a, b = r.randint(2, 10), r.randint(2, 10)
    values = {"a": str(a), "b": str(b), "c": str(a * b), "t": thing, "g": r.choice(["bags", "boxes", "baskets", "plates", "friends", "packs", "rows", "jars"]), "k": r.choice(["kids", "friends", "people", "children", "boxes", "bags", "plates"])}  # fmt: skip
    if values["a"] and r.random() < 0.5:
        ask = expand(r, "{I have|There are|If I have|If there are|We have|She has} <a> <g> {with|of} <b> <t> {each|in each}{,|.} {how many|How many} <t> {are there|are that|is that|do I have|are there in all|altogether}|{Each of|In each of} <a> <g> {are|I put} <b> <t>. How many <t> {are there|is that|do I need}|How many <t> are in <a> <g> with <b> <t> each", values)  # fmt: skip
        return Chat(
            [question(ask).replace(", How", ", how"), f"{a} times {b} is {a * b}, so there are {a * b} {thing}."],
            "arithmetic",
            f"{a} times {b} is {a * b}.",
        )
    ask = expand(r, "{Share|Divide|Split} <c> <t> {between|among} <b> <k>. How many {does each get|for each|does everyone get|does each one get}|{I have|We have|There are} <c> <t> for <b> <k>. How many {does each get|for each|gets each}|{I|We} {share|divide|split} <c> <t> {between|among} <b> <k>. How many {does each get|does each one have|for each}|If <b> <k> share <c> <t>, how many does each {get|one get}", values)  # fmt: skip
    return Chat(
        [question(ask), f"{a * b} divided by {b} is {a}, so each gets {a}."],
        "arithmetic",
        f"{a * b} divided by {b} is {a}.",
    )


def arithmetic(r: random.Random) -> Chat:
    return r.choices([_plain_sum, _number_facts, _word_problem], [60, 25, 15])[0](r)
