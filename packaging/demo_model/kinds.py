"""Lists of things, what is needed for something, and animals."""

import random
import re
from functools import cache

from demo_model.grammar import expand
from demo_model.nouns import article, upper
from demo_model.subjects import Chat, Pair, enumerate_lines, join, table
from demo_model.wording import frame, question
from demo_model.words import TELL_MORE

# --- lists ------------------------------------------------------------------------------------------------------------------

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
NAMES = (
    "{Name|Name|Tell me|Give me|Say|Please name|Please give me|Please tell me|Can you name|Can you tell me|Can you give me|Could you name|Could you give me|Could you tell me|Do you know|What are|I need|Show me|Find me|Would you name|Will you name|Would you give me|I want|I would like|I am looking for|Try to name|Now name|Quickly name|Think of|Can you think of|Can you say|Let me have|Let me hear|Help me to find|Mention|Suggest|Could you suggest|Can you suggest|Please suggest|Come up with|Could you come up with|Can you come up with|Think up|I could use|I am in need of|Got|Hit me with|Quick, name|Could you think of|Tell us|Would you know|Let us hear|Find} <c> {<p>|different <p>|<p>|examples of <p>|<p>|common <p>|<p>|good <p>|nice <p>|simple <p>|popular <p>}{|, please| for me| that you know|}"
    "|{Give me|Tell me|I need|Could you tell me|Can you tell me|Do you know|I want to know|I would like to know|Please tell me} the names of <c> {|different }<p>{|, please}|Which <p> {do you know|are there|can you name|come to your mind|can you think of}|What <p> {do you know|are there|can you name}"
    "|<c> <p>{|, please| please| if you can|, quickly}|{What|Which} <c> <p> {can you think of|do you know|come to mind|can you name|would you name}|What would you {call|name as} <c> <p>|{Do you have|Have you got|Got} {any|some|a few} <p>{| for me}|Any <p>{|, please}|{My son|My teacher|My daughter|My friend} {needs|wants|asks for} <c> <p>{|. Can you help?|. Which ones?}|I have to name <c> <p>|What are some <p>|{Name|Tell me|Give me|Can you name|Do you know|Do you have} some {<p>|examples of <p>}|What are {good examples|examples|some examples|<c> examples} of <p>|What would be <c> <p>|What could be <c> <p>"
)  # fmt: skip
LISTS = (
    "{List|Please list|Can you list|Could you list|Would you list|Write down|Write me|Enumerate|Note down|Put down|I want you to list|Can you write down} <c> {<p>|different <p>|<p>}{|, please| for me}"
    "|{Make|Give me|Write|Write me|Create|I need|Can you make|Could you make|Please make|Can you give me|Could you write|I want|Could you give me|I would like|Can you write|Prepare|Make me} a {|short |small |little |quick }list {of|with} <c> {<p>|different <p>|<p>}{|, please| for me}"
)  # fmt: skip


@cache
def other_names() -> dict[str, list[str]]:
    return {row[0]: row[1].split("; ") for row in table("lists_more")}


def lists(r: random.Random, row: list[str], others: list[list[str]]) -> Chat:
    single, plural, members = row[0], row[1], [m.strip() for m in row[2].split(",")]
    if plural in other_names() and r.random() < 0.6:
        plural = r.choice(other_names()[plural])
    n = min(r.choice([2, 3, 3, 3, 3, 4, 4, 5]), len(members))
    count = NUMBERS[n] if r.random() < 0.75 else str(n)
    if r.random() < 0.12:
        n, count = min(3, len(members)), r.choice(["a few", "some", "a couple of", "several", "a handful of"])
    chosen = members[:n]
    x = r.random()
    values = {"c": count, "p": plural}
    if x < 0.35:
        ask, answer = expand(r, LISTS, values), enumerate_lines(chosen)
    elif x < 0.42:
        chosen = members[:1]
        ask = expand(
            r,
            "{Name|Give me an example of|Tell me|Can you name|Do you know|Say|Give me|Tell me the name of|Can you give me an example of} <a>",
            {"a": f"{article(single)} {single}"},
        )
        answer = f"{upper(chosen[0])}."
    else:
        ask = expand(r, NAMES, values)
        if count not in ask.lower().split() and f"{count} " not in ask.lower():
            chosen = members[:3]
        answer = f"{upper(join(chosen))}."
    rest = [m for m in members if m not in chosen]
    more: list[Pair] = []
    one = "{{|Okay, |Good, |Nice, |Great, |Hm, |Thanks, }{give me|tell me|name|add|can you give me|could you add|do you have|got|how about|any} {one more|another|another one|a different one|yet another}{|, please| to the list}|{And|Anything|Something} {else|more}|Which others{| are there| do you know}|What {other ones|others} {are there|do you know}|Continue|Go on|More of them|Keep going|Could you add {another|one}|One more would be {nice|great}|One more, please|Name another one|Can you name one more|Another one, please|One more|And another one|Another one|Do you know one more|Can you add one more|Give me one more|What else|Any others|And what else|Are there more|Add another one|Any more|Can you think of another one|Is there another one}"
    two = "{Two more, please|Name two more|Can you name two more|Give me two more|And two more|Two others, please|Tell me two more}"
    if len(rest) > 1 and r.random() < 0.25:
        further = [(question(expand(r, two)), f"{upper(join(rest[:2]))}.")]
    else:
        further = [(question(expand(r, one)), f"{upper(m)}.") for m in rest[: r.choice([1, 1, 2])]]
    other = r.choice(others)
    theirs = [m.strip() for m in other[2].split(",")][:n]
    ask_other = "{And|Now|And now|What about|How about|And what about|Now name|Now do the same with|Okay, now} <c> <p>"
    values = {"c": NUMBERS[len(theirs)], "p": other[1]}
    asides = [
        (question(expand(r, ask_other, values)), enumerate_lines(theirs) if x < 0.35 else f"{upper(join(theirs))}.")
    ]
    best = "{Which one is the best|Which one do you like best|Which one is your favorite|Which one do you like|What is your favorite|Which of them is best|Which one should I choose|Which one would you take|Which one do you recommend}?"
    more.append((expand(r, best), f"I have no favorite, but many people like the first one: {chosen[0]}."))
    if len(chosen) > 1:
        more.append(
            (
                question(
                    expand(
                        r,
                        "{What was the first one|Which one was first|What is the first one|Repeat the first one|What was number one}",
                    )
                ),
                f"{upper(chosen[0])}.",
            )
        )
        more.append(
            (
                question(
                    expand(
                        r, "{What was the last one|Which one was last|What is the last one|And the last one}"
                    )
                ),
                f"{upper(chosen[-1])}.",
            )
        )  # fmt: skip
    r.shuffle(more)
    more = further + more if r.random() < 0.7 else more
    return Chat(
        [question(ask), answer], "list", f"The user wants some {plural}. I will name them.", more=more, asides=asides
    )


def needs(r: random.Random, row: list[str]) -> Chat:
    what, things = row[0], [t.strip() for t in row[1].split(",")]
    food = re.search(r"salt|milk|flour|egg|sugar|bread|water, a tea|fruit, yogurt|oil$|dough", row[1])
    cooking = food is not None and not re.search(r"trip|picnic|party|journey", what)
    values = {"w": what, "b": re.sub(r"^an? ", "", what)}
    if r.random() < 0.35:
        n = min(r.choice([3, 3, 4, 5]), len(things))
        ask = expand(
            r,
            "{List|Name|Give me|Tell me|Write down|Can you name|Could you list|Make a list of|I need a list of|Can you list|Please list} <c> things {I need|that I need|you need|that are useful|I should have|to buy|to take} for <w>{|, please}",
            values | {"c": NUMBERS[n]},
        )
        return Chat([question(ask), enumerate_lines(things[:n])], "list", f"I will list useful things for {what}.")
    if cooking:
        ask = "{What do I need|What do I need to buy|Which things do I need|Which things do I need to buy|What ingredients do I need|Which ingredients do I need|What should I buy|What must I buy|What do I have to buy|What will I need|What does one need|What do you need} {for|to make} {<w>|<b>}|What {goes|belongs} into {<w>|<b>}|What is in {<w>|<b>}|What {is|are} {<w>|<b>} made {of|from}|{Tell me|Can you tell me|List|Name} the ingredients {for|of} {<w>|<b>}"
        answer = f"You need {join(things)}."
        more = [
            (question(expand(r, "{Is it easy|Is it hard|Is it difficult|Can I do that}")), "It is not very hard. Just take your time."),
            (question(expand(r, "{Anything else|Is that all|Nothing else|Do I need more}")), "That is all you need for a simple version."),
        ]  # fmt: skip
    else:
        ask = "{What do I need|What should I bring|What should I take|What should I pack|What must I have|What do I have to bring|Which things do I need|What should I take with me|What should I put in my bag|What will I need|What would I need|What is useful|What belongs in my bag|What do people take} {for|to|on} <w>|{I am planning|I am preparing|I plan|Next week I have|Tomorrow I have|I have} <w>. {What do I need|What should I bring|What should I take|What should I pack}"
        answer = f"You should take {join(things)}."
        more = [
            (question(expand(r, "{Anything else|Is that all|What else|Nothing else|Do I need more}")), "That is the most important. Take a good mood with you, too."),
            (question(expand(r, "{What is most important|What is the most important thing|What must I not forget}")), f"The most important thing is {things[0]}."),
        ]  # fmt: skip
    return Chat([question(expand(r, ask, values)), answer], "needs", f"The user asks what is needed for {what}.", more=more)  # fmt: skip


# --- animals ----------------------------------------------------------------------------------------------------------------


def animal(r: random.Random, row: list[str], others: list[list[str]]) -> Chat:
    facts = _animal_facts(row)
    key = r.choice(["about", "about", "about", "eat", "live", "sleep", "habit"])
    ask = _animal_ask(r, row, key)
    more: list[Pair] = []
    follow = {
        "about": (TELL_MORE, f"They live {row[4]} and eat {row[3]}."),
        "eat": ("What do they {hunt|catch|prefer to eat|eat all day|eat most|drink and eat|usually eat|normally eat}|What is on their menu|{Do they eat|Are they} {meat|plants|fish|meat eaters|plant eaters}|What {should|can|may|do} {I|we|you} {feed|give} {it|them}{| to eat|}|{And what|What} about {food|their food}|{What do they eat|What do they like to eat|And what do they eat|What does it eat|What do they feed on|What is their food|What is their usual food|What is their favorite food|And their food|Which food do they like|What can I feed them|Do you know what they eat|What do they live on|What should I feed them}?", f"They eat {row[3]}."),
        "live": ("Where do they {sleep|spend the day|spend the night|come from|build their homes|hide|stay}|In which {countries|parts of the world} do they live|Which places do they like|Do they live {in the forest|near people|in Europe|in Africa|alone}|{Where do they live|Where can I find them|And where do they live|Where is their home|Where are they found|Where can I see them|Do you know where they live|In which places do they live|What is their home|Where does it live}?", f"They live {row[4]}."),
        "sleep": ("{How much do they sleep|How many hours do they sleep|Do they sleep a lot|And how long do they sleep|How long do they sleep|How many hours a day do they sleep|How much sleep do they need|Do you know how long they sleep|For how long do they sleep|Do they sleep much|How long does it sleep}?", facts["sleep"].replace(upper(row[1]), "They")),
        "habit": ("{What is special about them|What can they do|What do they do|What are they known for|What is interesting about them|Tell me something special about them|Anything special about them|What are they like|What makes them special}", row[6]),
    }  # fmt: skip
    for k in r.sample([k for k in follow if k != key], 4):
        asked, said = follow[k]
        more.append((question(expand(r, asked)), said))
    other = r.choice(others)
    elliptic = {
        "about": "And what about <m>|What about <m>|And <m>",
        "eat": "And <m>|What about <m>|And what do <m> eat|How about <m>",
        "live": "And <m>|What about <m>|And where do <m> live|How about <m>",
        "sleep": "And <m>|What about <m>|And how long do <m> sleep|How about <m>",
        "habit": "And what about <m>|What is special about <m>",
    }
    asides = [(question(expand(r, elliptic[key], {"m": other[1]})).replace(".", "?"), _animal_facts(other)[key])]
    more.append((question(expand(r, "{Are they dangerous|Are they friendly|Can I keep one at home|Can I keep them as pets|Do they make good pets|How old do they get|How big are they|How fast are they|Do they bite}")), f"I do not know that exactly. I only know this: {row[6]}"))  # fmt: skip
    if r.random() < 0.5:
        more = more[:3] + r.sample(more[3:], len(more) - 3)
    return Chat(
        [ask, facts[key]], "animal", f"The user asks about {row[1]}. I will answer in short.", more=more, asides=asides
    )


def _animal_facts(row: list[str]) -> dict[str, str]:
    _, many, what, food, home, sleep, habit = row
    hours = f"{sleep} hours a day" if sleep[-1].isdigit() else sleep
    return {
        "about": f"{upper(many)} are {what}. {habit}",
        "eat": f"{upper(many)} eat {food}.",
        "live": f"{upper(many)} live {home}.",
        "sleep": f"{upper(many)} sleep {hours}.",
        "habit": habit.replace("They", upper(many), 1) if habit.startswith("They") else habit,
    }


def _animal_ask(r: random.Random, row: list[str], key: str) -> str:
    values = {"m": row[1], "a": f"{article(row[0])} {row[0]}"}
    clauses = {
        "about": "{what <m> are|what <a> is|something about <m>}",
        "eat": "{what <m> eat|what <a> eats|what <m> like to eat|what food <m> eat|what I can feed <a>}",
        "live": "{where <m> live|where <a> lives|where I can find <m>|where <m> are found}",
        "sleep": "{how long <m> sleep|how much <m> sleep|how many hours <m> sleep|how long <a> sleeps}",
        "habit": "{what is special about <m>|what <m> are known for|what makes <m> special}",
    }
    direct = {
        "about": "{Tell me|Can you tell me|Could you tell me|I want to know|Please tell me|I would like to know|Let us talk|Can we talk|Do you know anything|Do you know something|What can you tell me|Tell me something|Talk to me|Tell me a bit|Tell me a little|Could you tell me a little|Can you tell me something|I want to learn|I would like to hear something|Tell me all|Do you know} about <m>|What do you know about <m>|Describe {<a>|<m>}|What are <m>|What is <a>|What kind of animal is <a>|What kind of animals are <m>|Do you know <m>|Give me some facts about <m>|What are <m> like|I {love|like} <m>. Tell me about them.",
        "eat": "What do <m> {eat|like to eat|feed on|eat all day}|What does <a> eat|What is the {|favorite |usual }food of {<m>|<a>}|What {can|should} I feed {<a>|my <m>|to <a>}|What food do <m> {eat|like|need}|Which food does <a> {eat|like|need}|What do <m> live on",
        "live": "Where do <m> live|Where does <a> live|Where can I {find|see} <m>|Where is the home of {<a>|<m>}|In which {places|countries} do <m> live|Where are <m> {found|at home}",
        "sleep": "How {long|much} do <m> sleep|How many hours {a day |}{do <m>|does <a>} sleep|Do <m> sleep {a lot|much|long}|How much sleep does <a> need|How long does <a> sleep",
        "habit": "What is special about <m>|What can <m> do|What are <m> known for|Tell me {something special|a fact|something interesting|an interesting fact} about <m>|What is {interesting|unusual} about <m>|What makes <m> special",
    }  # fmt: skip
    if r.random() < 0.25:
        return frame(r, _lower(expand(r, clauses[key], values)))
    return question(expand(r, direct[key], values))


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
