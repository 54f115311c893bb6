"""Stories, jokes and small facts: one question, its reply and what may follow."""

import random
import re

from demo_model.grammar import expand
from demo_model.nouns import article
from demo_model.subjects import Chat, fixed, pairs, table
from demo_model.wording import frame, question

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
    if re.search(r"lived|left its home", text):
        more.append((question(expand(r, "{Where did {it|the <h>|<n>} live|Where was its home|Where does the story take place|Where did that happen|Where was {it|the <h>|<n>}}", {"h": hero, "n": v["N"]})), f"The {hero} lived {v['p']}."))  # fmt: skip
    more.append((question(expand(r, "{How did it end|How does {it|the story} end|Did it end well|Was {it|the <h>|<n>} happy{| in the end}|Is there a happy end}", {"h": hero, "n": v["N"]})), "It ended well, and they became friends."))  # fmt: skip
    r.shuffle(more)
    another = "{|Lovely, |Nice, |Haha, |Great, |Wow, |Okay, |Thanks, |That was nice, |Beautiful, |Sweet, |Good, }{tell me {one more|another|another one|a different one|more|a new one|the next one}|{got|have you got|do you have|do you know} {another|one more|any more|more stories|another one|a different one}|{can|could|may} I {have|hear|get} {another|one more|another one}|one more{| please| story| time}|another{| one| story}{|, please}|{and|now} another{| one}|I {want|would like} {another one|one more|to hear more|more}|a new one{|, please}|more stories{|, please}|please {another|one more|tell one more}|again{|, please}}|{Another one|Another one, please|One more|Tell me another one|Another story|One more story, please|Can you tell me another one|Do you know another story}"
    then = "{What happened then|And then|What happened next|How does it go on|Go on|Continue|What happened after that|And after that}"
    answers = [
        (
            question(expand(r, then)),
            f"Then {v['N']} went home and told everyone about {v['n']}. And they were friends for a long time.",
        )
    ]
    asides = [(question(expand(r, another)), second)]
    if r.random() < 0.4:
        new = r.choice([h for h in [*zoo, *_HEROES] if h != hero])
        with_hero = "{And|Now|Okay, now|Now tell me|Can you tell me|Tell me|How about|And what about|Do you know|I would like|Please, } one {about|with} <x>{|, please| too}|{Now|And} {a story|another story|another one} {about|with} <x>{|, please}"
        asides = [
            (question(expand(r, with_hero, {"x": f"{article(new)} {new}"})), _tell(new, zoo, "first", templates)[0])
        ]
    return Chat([question(ask), text], "story", f"The user wants a story. I will write a short one about {article(hero)} {hero}.", answers=answers if r.random() < 0.15 else [], more=more, asides=asides)  # fmt: skip


# --- jokes and facts --------------------------------------------------------------------------------------------------------


def joke(r: random.Random) -> Chat:
    kind = r.choice(["joke", "joke", "fact"])
    said = [row[1] for row in table("jokes") if row[0] == kind]
    if kind == "joke":
        ask = "{Tell me|Do you know|Give me|Can you tell me|I want to hear|Could you tell me|Say|Let me hear|I need|Know|Please tell me} a {|good |funny |short |silly }joke{|, please}|{Make me laugh|Say something funny|Tell me something funny|Can you make me laugh|Are you funny|Do you have humor|Can you be funny|I want to laugh|A joke, please|Joke|Do you know any jokes|Do you tell jokes|Can you tell jokes|Tell me jokes}"
        again = "{|Haha, |Ha, |Lol, |Good one! |Okay, |Funny! |Nice, |Not bad, |Hm, |Cool, |Hahaha! |Hehe, |That was good. |I liked that. |Very funny! |Great, |Thanks, }{got {another|any more|one more|another one|more}|{do you have|have you got|do you know|is there} {another|another one|one more|any more|more|a better one|more of those}|{tell|give} me {another|one more|another one|a better one|a new one|the next one|a last one}|{can|could|may} I {hear|get|have} {another|one more|another one}|{one last|one more|another|a new|a different} {joke|one}{|, please| please}|{and|now} {another|one more}|the next one{|, please}|more{|, please| jokes|!}|I want {more|to hear another|another one}|again{|, please}|hit me with another one|keep them coming|let me hear {another|one more}|one more time}|{Another one|Another joke|One more|Another one, please|Tell me another one|Tell me another joke|One more joke, please|Do you know another one|Do you have another one|Again|More|Do you know more jokes|A different one}"
        why = "{I do not get it|Why is that funny|I do not understand it|Explain it|What does that mean|That is not funny|Not funny|I do not understand the joke}"
        about = "It is a play with words. Jokes are hard to explain."
    else:
        ask = "{Tell me|Do you know|Give me|Say|I want to hear|Can you tell me|Could you tell me|Please tell me} {something interesting|a fact|something new|a fun fact|an interesting fact|something that I do not know|something surprising|something strange|something funny about nature|a random fact|something about the world}{|, please}|{Surprise me|Teach me something|Amaze me|Teach me something new|Impress me|Fun fact, please|What is something interesting|I want to learn something new|I want to learn something}"
        again = "{|Wow, |Cool, |Okay, |Nice, |Interesting, |Great, |Really? |Haha, |I did not know that. }{got {another|any more|one more|another one|more}|{do you have|have you got|do you know} {another|another one|one more|any more|more}|{tell|give} me {another|one more|another one|a new one|one more fact|more}|one more{|, please| fact}|another {one|fact}{|, please}|{and|now} {another|one more}|more facts{|, please}|keep going|what else is there}|{Another one|Another fact|One more|Another one, please|Tell me another one|One more fact, please|Do you know another one|Something else|More|Tell me more|What else}"
        why = "{Really|Is that true|I did not know that|No way|Are you sure|That is interesting|Wow|How interesting|Amazing}"
        about = "Yes, that is what I learned. But I am a small demo model, so please check it."
    more = [(question(expand(r, why)), about)]
    if kind == "joke":
        more.append((question(expand(r, "{Haha|That is funny|Good one|Very funny|Lol|That was good|I like it|You are funny|Hahaha}")).replace(".", "!"), "I am glad that you like it!"))  # fmt: skip
    r.shuffle(more)
    turns = [question(expand(r, ask)), said[0]]
    x = r.random()
    if x < 0.65:
        turns += [question(expand(r, again)), said[1]]
        if x < 0.45:
            turns += [question(expand(r, again)), said[2]]
            if x < 0.2:
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
