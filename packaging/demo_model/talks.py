"""Talks about one thing over several turns: a trip and its place, a dish to cook, a pet to get. Each function makes the first turn and what may follow."""

import random
import re
from functools import cache

from demo_model.grammar import Block, expand, read_scripts
from demo_model.kinds import animal
from demo_model.subjects import Chat, Pair, table, task_extras
from demo_model.wording import question

_WHEN = "{|| tomorrow| next week| this weekend| soon| on Friday| on Saturday| next month| in two days| in the summer| this summer| in May| tonight| for a week| for a few days| for two weeks| with my family| with my friends| with the kids| by train| by car}"
_GO = (
    "{I am|We are|My wife and I are|My friends and I are|My family and I are} {going|traveling|driving|flying|off|heading|about to go|taking a trip} to <x><when>|{I|We} {will|want to|would like to|plan to|would love to|hope to} {go|travel|drive|fly} to <x><when>"
    "|{Next week|Tomorrow|This weekend|On Friday|This summer|Next month|Soon|In two days|On Saturday} {I am|we are} {going|traveling|driving|off|flying} to <x>|{I am|We are} {planning|preparing|looking forward to|excited about} {a trip|a weekend trip|a vacation|a holiday|a journey|our trip} to <x><when>"
    "|{I|We} {booked|have booked|planned} {a trip|a week|a holiday|a weekend|tickets} {|to go }to <x>|{My|Our} {next trip|next vacation|holiday} {is|goes} to <x><when>|Guess what, {I am|we are} going to <x><when>|{I have|We have} a trip to <x> {coming up|planned|soon}|It is my first {trip|time going} to <x>|{I|We} leave for <x><when>"
)  # fmt: skip
_ON = "{I am|We are} {going on|planning|looking forward to|getting ready for} <x><when>|{Next week|Tomorrow|This weekend|Soon} {I am|we are} {going on|off on} <x>|{I|We} {will|want to|would like to} go on <x><when>"
_ALONG = "{What|Which things} {should|must|do|could|would|will} {I|we} {take along|take|bring|bring along|pack|put in {my|our|the} {bag|suitcase|backpack}|need|have to bring|have to take|need to bring|need to pack|take with {me|us}}{| for that| there| for the trip| with me| with us}|What {to|else to} {pack|bring|take}|What {is useful|is good to have|is a must|belongs in the bag|do people take|would you pack|would you take|should be in my bag|must I not forget|should I not forget}{| there| for that}|{Can|Could} you help {me|us} {pack|with packing}|{Any|Got any} {packing tips|tips for packing}|{Which|What} {clothes|kind of clothes} {should|do} {I|we} {take|need|pack|bring|wear}|Help me pack|I {still have to|need to|have not yet} {pack|packed}. What do I need|What do I pack"
_WEATHER = "{Is|Will} it {be |get |}{cold|warm|hot|chilly|cool|sunny|windy}{| there| up there| over there| at this time}|{How|What} is the weather{| like} there|How {cold|warm|hot} {is it|will it be|does it get} there|{Do|Will} {I|we} need {a coat|a jacket|warm clothes|an umbrella|a sweater}{| there}|Will it {rain|snow}{| there}|What {weather|temperature} {should I expect|can I expect|is it} there|{Should|Shall} I take {a jacket|a coat|warm clothes}|Does it get cold{| at night| there}|And the weather"
_DO = "{What|What things|What else} {can|could|should|would} {I|we|one|you} {do|see|visit|try}{| there| over there| at that place}|{Do you have|Any|Got any|Have you got} {tips|ideas|suggestions|a tip|advice|recommendations}{| for {me|us|the trip|what to do}| what to do there}|{What|Which things} {are there|is there} to {do|see}{| there}|What {do people do|would you do|is nice|is fun|is worth seeing|do you recommend|do you suggest} there|What {is there for|can I do with} {kids|children}|I have no {idea|plan} what to do there|{Where should|What should} {we|I} {go|see} first"
_OTHERS = [
    ("How {do|can|should} {I|we} {get|travel|go} there|{Should|Shall} {I|we} {take the {train|car|bus}|fly|drive}|{Train or car|Car or train|Train or plane}|How far is it|Is it far|How long is the {way|drive|flight}|What is the best way to get there", "I do not know the way. A map or a travel website can tell you."),
    ("How {long|many days} should {I|we} stay|How many days {do I need|are enough|is good}|Is {a week|a day|a weekend} enough|How long is a good time", "A few days are good if you want to see a lot and also rest."),
    ("{Can|Will|Do you want to|Would you like to|Do you} {you |}come {with me|with us|along|too}|Have you {ever |}been there|Do you {travel|know the place|like to travel}|Would you like it there", "I am a program, so I cannot travel. But I wish you a good trip!"),
    ("Is it {dangerous|safe}{| there}|Is it {really |}safe{| for kids}", "I cannot judge that. Read about it before you go, and be careful."),
    ("Is it {expensive|cheap}{| there}|{How much|What} {does it|will it|does that} cost|How much money {do I need|should I take}|Will it be expensive", "It depends on when and how you travel. Compare prices before you book."),
    ("{What|And what} if it {rains|is cold|snows|is too hot}|{And|But} if {it rains|the weather is bad}|I hope it does not rain", "Then look for something nice inside, such as a museum, a cafe or a good book."),
    ("What {can|should} {I|we} eat{| there}|What is the food like{| there}|Where can {I|we} eat|{And|What about} {the food|food}", "Try the food that the people there like. Ask them for a good place."),
    ("{I am|We are} {so |really |very |a bit |}{excited|looking forward to it|happy|nervous}{| about it}|I {can't|cannot} wait|It will be {great|fun|nice|lovely}|I need {a break|a rest|this vacation}|It is {my|our} first {trip|vacation} {there|together|this year}", "I hope you have a great time!"),
    ("{Any last|One last|Any other} {tip|advice|tips}|{Anything else|What else} {I should know|should I know|to think of}|Is there something {I should not forget|important to know}", "Take your papers, some money and your phone, and enjoy every day."),
]  # fmt: skip
_PLANS = [("{I want to|We want to|I would like to|I will|We will|I plan to|Maybe|We plan to|Just|I just want to} {swim|hike|relax|see the city|eat well|take photos|visit museums|ski|rest|walk a lot|see everything|climb|read and sleep|have fun|lie in the sun|go shopping|explore|have a good time|be in nature|meet people|play in the sand}{| and {relax|eat well|swim|have fun|sleep|walk|see a lot}}|{Swimming|Hiking|Relaxing|Sightseeing|Walking|Shopping|Skiing|Camping|Fishing|Eating} and {relaxing|swimming|eating|walking|having fun}|{Swim|Hike|Relax|Rest|Lie in the sun|Walk around|See the sights|Take it easy}", "That sounds like a good plan! I hope you have a great time."),
    ("{I do not know{| yet}|I am not sure{| yet}|No idea{| yet}|Nothing{| special}|I have no {plan|plans|idea}|We have no plans{| yet}|We will see|I have not decided{| yet}|Just rest}", "You can decide when you are there. A walk is always a good start."),
    ("{Visit {my sister|my brother|family|a friend|some friends|my aunt|my parents|my cousin}|{I|We} {visit|will visit|want to visit|will see} {my sister|my brother|family|a friend|some friends|my aunt|my parents}|Meet {friends|my family|some people}|See my {family|grandmother|friends}|{A wedding|A birthday|A party|A family party}}", "How nice! They will be happy to see you."),
    ("{Work|I have to work|For work|It is for work|A meeting|A conference|It is a business trip|I go there for work}", "I hope you also find time to see something nice there."),
]  # fmt: skip


@cache
def _towns() -> list[str]:
    return read_scripts("scripts")[1]["town"]


def trip(r: random.Random) -> Chat:
    names, at, pack, do, weather = r.choices(table("places"), [5, 5, 3, 2, 3, 6, 2, 3, 2, 1, 1])[0]
    name = r.choice(names.split("; "))
    name = r.choice(_towns()) if name == "<town>" else name
    mine = name
    name = name.replace("my ", "your ")
    when = expand(r, _WHEN) if r.random() < 0.7 else ""
    when = f" {when[0].lower()}{when[1:]}" if when else ""
    ask = expand(r, _ON if mine.endswith("trip") else _GO, {"x": mine, "when": when})
    where = f"{at} {name}"
    packing: Pair = (question(expand(r, _ALONG)), f"For {name}, take {pack}.")
    rest = [
        packing,
        (question(expand(r, _WEATHER)), weather.replace("{P}", where)),
        (question(expand(r, _DO)), f"You could {do}."),
        *((question(expand(r, a)), b) for a, b in r.sample(_OTHERS, 3)),
    ]
    r.shuffle(rest)
    if r.random() < 0.6:
        rest.remove(packing)
        rest.insert(0, packing)
    other = r.choice([row for row in table("places")[:4] if row[0] != names])
    theirs = other[0].split("; ")[0]
    aside = "{And|What about|How about|And what about} <x>|And {what should I pack|what do I need|what should we take} for <x>"
    asides = [(expand(r, aside, {"x": theirs}) + "?", f"For {theirs}, take {other[2]}.")]
    if rest[0] is not packing:
        asides = []
    if r.random() < 0.25:  # the packing is asked at once
        asked = question(ask) if r.random() < 0.5 else ask + ","
        return Chat([f"{asked} {_small(packing[0]) if asked[-1] == ',' else packing[0]}", packing[1]], "trip", more=[p for p in rest if p is not packing])  # fmt: skip
    answers = [(question(expand(r, a)), b) for a, b in r.choices(_PLANS, [6, 2, 1, 1])] if r.random() < 0.45 else []
    return Chat([question(ask), "That sounds exciting! What do you want to do there?"], "trip", answers=answers, more=rest, asides=asides)  # fmt: skip


def _small(text: str) -> str:
    return text if re.match(r"(I\b|I')", text) else text[0].lower() + text[1:]


@cache
def _block(name: str, reply: str) -> Block:
    return next(b for b in read_scripts(name)[0] if b.replies and b.replies[0].startswith(reply))


@cache
def dishes() -> dict[str, str]:
    """dish -> the task that makes it."""
    food = re.compile(r"(make|bake|cook) ((?:a |an )?(?:[a-z]+ ){0,2}[a-z]+)$")
    found = {
        m[2]: row[0]
        for row in table("howto")[:20] + table("howto")
        if (m := food.fullmatch(row[0])) and row[0] in task_extras()
    }
    no = ("my bed", "new friends", "a snowman", "a paper airplane", "a cup of tea", "coffee")
    return {d: t for d, t in found.items() if d not in no and "cup of" not in d}


_CHOICE = "{Let us|Let's} {go with|make|try|do|take|have|cook|choose} <d>{| then| today| tonight}|<d> it is{| then}|<d> {sounds|sound} {good|great|nice|perfect}|I {would prefer|would like|would love|will take|will go with|will make|choose|pick|think I will make|feel like|fancy|want|like|love|am in the mood for} <d>{| best| then| please|}|How about <d>|I think <d>|<d>|<d>, please|Then <d>|{We all|My kids|My parents|They|We} {like|love} <d>{| best|}|<d> would be {nice|perfect|great|good}|{Maybe|Perhaps|Definitely|Well, |Hm, |Oh, |Okay, }{|then }<d>|Could we make <d>|What about <d>"
_YES = "{Yes|Yes, please|Yes please|Sure|Of course|Please|Tell me how|Yes, tell me|Yes, I do|Yes, how|I would like that|Okay|Go on|Yes, show me how|Please tell me|Yeah|Yep|Absolutely|Please do|That would be {nice|great|helpful}|Yes, that would be {nice|great}}{|!}|How {do|can|should} {I|we} make {it|them|that|<d>}|How {is it|does that} {made|work}|{Tell|Show} me how to make {it|them|that}|What is the recipe|Do you know {the|a} recipe|Give me the recipe|What do I {have to do|do}|How does it go|What are the steps|Yes, I have never made {it|that|them}"
_NEEDED = "{What|Which {things|ingredients}} {do|will|would|should|must|shall} {I|we} {need|buy|need to buy|have to buy|get|need to get|need to have|have at home}{| for {that|it|them|<d>}| from the shop| at the store|}|What {goes|belongs} into {it|them|that}|What {is|are} the ingredients|What is in it|{What|Which things} {should be|must be} {on my shopping list|in my kitchen}|Give me {the|a} shopping list|What ingredients {do I need|are needed|go into it}"
_TIME = "How {long|much time} does {it|that|this} {take|need}|{How long|How much time} will {it|that} take|Does it take {long|a long time|much time}|How many minutes {does it take|do I need}|When will it be {ready|done}|Is it {quick|fast}|How {soon|fast} can we eat|How long do I have to {wait|cook}|How long until {we can eat|it is ready|it is done}"
_EASY = "Is {it|that} {hard|difficult|easy|complicated}{| to make| for a beginner|}|Can {I|a beginner|everyone|a child|my kids} {do|make|manage} {it|that}|Will I manage{| it| that|}|I {am not a good cook|cannot cook well|have never done that|am a beginner}"


def cook(r: random.Random) -> Chat:
    first = _block("scripts", "Cooking is fun!")
    values = {k: r.choice(v) for k, v in read_scripts("scripts")[1].items()}
    dish = r.choice(list(dishes()))
    task = dishes()[dish]
    recipe = next(row[1] for row in table("howto") if row[0] == task)
    _, needed, time = task_extras()[task]
    d = {"d": dish}
    told = (question(expand(r, _YES, d)), recipe)
    more = [
        (question(expand(r, _NEEDED, d)), f"You need {needed}."),
        (question(expand(r, _TIME, d)), f"It takes {time}."),
        (question(expand(r, _EASY, d)), "No, it is not very hard. Just take your time."),
        (question(expand(r, "{Any other tips|Do you have a tip|Anything else|What should I watch out for|What is important|Any tips}")), "Take your time, keep it simple and ask someone who has done it before."),
    ]  # fmt: skip
    r.shuffle(more)
    choice = (question(expand(r, _CHOICE, d)), f"Good choice! Do you want to know how to make {dish}?")
    then = told if r.random() < 0.55 else more.pop(0)
    rest = [*more[:2], told] if then is not told else more
    ask = question(expand(r, r.choice(first.asks), values))
    return Chat([ask, first.replies[0]], "cook", answers=[choice, then], more=rest)


def pet(r: random.Random) -> Chat:
    """Someone has or wants an animal, and asks on about its kind."""
    zoo = table("animals")
    row = r.choice([row for row in zoo if row[0] in ("dog", "cat", "rabbit", "horse", "parrot", "turtle", "mouse")])
    wants = r.random() < 0.6
    block = _block("chats", "A <pet> can bring") if wants else _block("scripts", "How lovely! What do you like most")
    values = {k: r.choice(v) for k, v in read_scripts("scripts")[1].items()} | {"pet": row[0]}
    ask = question(expand(r, r.choice(block.asks), values))
    facts = animal(r, row, zoo).more
    later = [(question(expand(r, a, values)), expand(r, b, values)) for a, b in r.sample(block.later, 2)]
    answers = []
    if r.random() < 0.35:
        a, b = r.choice(block.answers)
        answers = [(question(expand(r, a, values)), expand(r, b, values))]
    more = facts[:3] + later
    r.shuffle(more)
    return Chat([ask, expand(r, block.replies[0], values)], "pet", answers=answers, more=more)
