"""What the demo does not know: it names the subject, says so, and says what it can do. And free remarks of people, answered by rule."""

import random
import re
from functools import cache

from demo_model import sources
from demo_model.grammar import expand
from demo_model.nouns import article, nouns, pluralize
from demo_model.subjects import Chat, Pair, table, task_extras, words
from demo_model.wording import frame, question

CAN = "I can explain common words, give short tips and do small sums."
_UNSAFE = re.compile(
    r"\b(fuck|shit|sex|kill|porn|bitch|suicide|drugs?|damn|crap|gender|race|trump|biden|rape|naked|nazi)\w*", re.I
)
_WHY = (
    "{Why not|Why do you not know that|Why do you not know it|How come|Why|But why|Why is that|You do not know that|Really not}?",
    "I am a small demo, so that the app works at once and without the internet. Please download a larger model for real answers.",
)
_WHO_KNOWS = (
    "{Who knows that|Where can I find that|Who can answer that|Where can I look it up|How can I find out|Can you look it up|Who can help me with that|Can you find out|Where can I read about it|Can you look that up}?",
    "A larger model can tell you more. You can download one in the app.",
)
_NEVER_MIND = (
    "{Okay|Never mind|No problem|Too bad|That is a pity|Fine|All right|That is okay|What a pity|I see|Pity}{|, thank you|, thanks|}.",
    "I am sorry that I could not help. You can ask me something else.",
)
_THEN_WHAT = (
    "{So what do you know|What do you know then|What can you do then|Then what can you do|What can you tell me|What else can you do|What do you know|So what can you do|And what can you do|What can you help me with then}?",
    "I can chat about simple things, explain common words, give short tips, make small lists, and add small numbers.",
)


def deflect(subject: str) -> str:
    return f"I am a small demo model and do not know much about {subject}. {CAN}"


def _follow(r: random.Random) -> list[Pair]:
    return [(expand(r, a), b) for a, b in r.sample([_WHY, _WHO_KNOWS, _THEN_WHAT], 3)]


def _answer(r: random.Random) -> list[Pair]:
    return [(expand(r, _NEVER_MIND[0]), _NEVER_MIND[1])] if r.random() < 0.2 else []


@cache
def names() -> tuple[list[str], list[str], list[str]]:
    """Names of people, names of other things, and rare words: none of them is taught."""
    known = {w.word for part in words() for w in part} | {row[0] for row in table("animals")}
    people, things = [], []
    for a in sources.articles():
        title = re.sub(r"\s*\([^)]*\)", "", a.title).strip()
        if not title.isascii() or len(title) > 40 or title.lower() in known or _UNSAFE.search(title):
            continue
        first = a.extract[:200]
        is_person = re.search(r"\b(was|is) an? [^.]*(born|politician|actor|actress|singer|writer|player|artist|composer|physicist|leader|king|queen|emperor|poet|painter|philosopher|director)", first)  # fmt: skip
        (people if is_person or re.search(r"\(\w* ?\d{1,2}? ?\w* ?\d{4} ?[-–]", first) else things).append(title)
    rare = [
        w
        for w in sources.noun_index()
        if re.fullmatch(r"[a-z]{4,14}( [a-z]{3,12})?", w) and w not in known and not _UNSAFE.search(w)
    ]
    return people, things, rare


_SYLLABLES = ["ka", "lo", "mi", "ra", "ten", "sel", "vor", "an", "bri", "dal", "fen", "gor", "hol", "is", "jun", "kel", "lum", "mar", "nor", "os", "pel", "quin", "ros", "sal", "tur", "ul", "ven", "wil", "yar", "zor"]  # fmt: skip


def _invented(r: random.Random) -> str:
    return "".join(r.choices(_SYLLABLES, k=r.choice([2, 2, 3]))).capitalize()


_WHO = "{Who is|Who was|Tell me about|Do you know|What do you know about|What did|Can you tell me about|Tell me something about|Have you heard of} <x>{|, please}|When was <x> born|When did <x> {die|live}|Where was <x> born|Where did <x> live|Why is <x> famous|What is <x> known for|How old is <x>|What did <x> {do|write|invent|say|paint}|Is <x> still alive|Who was <x>'s {wife|husband|father|mother|teacher}|Did <x> win a prize"
_THING = "{What is|What is|What was|Tell me about|Explain|What do you know about|Can you explain|Do you know|Tell me something about|Can you tell me about|Describe|Have you heard of|What can you tell me about} <x>{|, please| in simple words}|Who {invented|discovered|founded|wrote|made} <x>|When was <x> {founded|invented|built}|When did <x> {start|end}|Where is <x>|Why is <x> {important|famous}|How does <x> work|What is the history of <x>|How {big|old|high|long|far} is <x>|How many people live in <x>|What is the population of <x>|Is <x> {dangerous|expensive|big|good|real}|What is <x> used for|What do you think {of|about} <x>|How much does <x> cost|I {like|love|am interested in|am reading about|study} <x>. Do you know {it|something about it}"
_RARE = "What is <a>|What is <a>|What does {|the word }<w> mean|Define <w>|Explain <w>|Tell me about <ps>|What are <ps>|What do you know about <ps>|Do you know what <a> is|How does <a> work|What is <a> used for|Why are <ps> important|Where can I find <a>|Can you explain what <a> is|What is the meaning of <w>"
_VERBS = [
    "repair",
    "build",
    "paint",
    "fix",
    "sell",
    "raise",
    "install",
    "write",
    "translate",
    "invent",
    "record",
    "publish",
    "produce",
    "design",
    "restore",
    "tune",
    "hunt",
    "sharpen",
    "weld",
    "polish",
    "carve",
    "program",
    "hire",
    "import",
    "measure",
    "photograph",
    "analyze",
    "operate",
    "brew",
    "dye",
    "tame",
    "frame",
    "test",
    "insure",
    "rent",
    "register",
    "decorate",
    "assemble",
    "calibrate",
    "start",
    "lead",
    "found",
    "join",
    "manage",
    "organize",
    "solve",
    "win",
]
_TASKS = [
    "get rich",
    "become famous",
    "become a doctor",
    "become a pilot",
    "become president",
    "learn Chinese",
    "learn Japanese",
    "climb Mount Everest",
    "fly a helicopter",
    "win the lottery",
    "write a novel",
    "publish a book",
    "start a company",
    "file my taxes",
    "get a visa",
    "buy a house",
    "sell my house",
    "fix a computer virus",
    "install Windows",
    "build a robot",
    "make a movie",
    "train for a marathon",
    "run a marathon",
    "do a handstand",
    "do a backflip",
    "solve a Rubik's cube",
    "solve an equation",
    "calculate the area of a circle",
    "prove a theorem",
    "cook a turkey",
    "make sushi",
    "make cheese at home",
    "brew beer",
    "make wine",
    "make candles",
    "make soap",
    "keep bees",
    "breed dogs",
    "shoe a horse",
    "sail a boat",
    "fly a drone",
    "dive",
    "surf",
    "fence",
    "box",
    "do karate",
    "do magic tricks",
    "play poker",
    "play the harp",
    "play the trumpet",
    "compose a symphony",
    "record a song",
    "become an actor",
    "direct a film",
    "knit a sweater",
    "sew a dress",
    "make shoes",
    "repair a watch",
    "fix the roof",
    "lay tiles",
    "install a sink",
    "wire a lamp",
    "fix my car engine",
    "change the oil of my car",
    "parallel park",
    "park a truck",
    "drive a bus",
    "land an airplane",
    "navigate by the stars",
    "survive in the desert",
    "build an igloo",
    "build a raft",
    "find water in the desert",
    "cure a disease",
    "set a broken arm",
    "deliver a baby",
    "give first aid",
    "do surgery",
    "choose a lawyer",
    "write a contract",
    "sue someone",
    "adopt a child",
    "get a divorce",
    "name my baby",
    "raise twins",
    "choose a school",
    "get into university",
    "write a thesis",
    "learn physics",
    "learn chemistry",
    "build a telescope",
    "grind a lens",
    "launch a rocket",
    "go to space",
    "become an astronaut",
    "vote in an election",
    "run for mayor",
    "invest money",
    "trade stocks",
    "buy gold",
    "open a restaurant",
    "open a bank account",
    "get a loan",
    "export goods",
    "set up a website",
    "host a server",
    "back up my data",
    "encrypt a file",
    "recover a lost file",
    "edit a video",
    "edit photos",
    "make a podcast",
    "mix music",
    "play the lute",
    "tune a piano",
    "restore old furniture",
    "build a table",
    "build a bookshelf",
    "carve wood",
    "blow glass",
    "make pottery",
    "forge a knife",
    "weld steel",
    "lay bricks",
    "plaster a wall",
    "insulate a house",
    "install solar panels",
    "dig a well",
    "grow orchids",
    "prune roses",
    "grow bananas",
    "raise chickens",
    "milk a cow",
    "ride a horse",
    "shear a sheep",
    "train a parrot",
    "train a horse",
    "catch a snake",
    "remove a wasp nest",
    "get rid of mice",
    "treat a snake bite",
]
_FIELDS = [
    "quantum physics",
    "the stock market",
    "black holes",
    "the Roman Empire",
    "chemistry",
    "politics",
    "the Second World War",
    "philosophy",
    "economics",
    "medicine",
    "space travel",
    "climate change",
    "genetics",
    "machine learning",
    "blockchain",
    "nuclear power",
    "evolution",
    "ancient Egypt",
    "the French Revolution",
    "astronomy",
    "psychology",
    "geology",
    "tax law",
    "football results",
    "the World Cup",
    "fashion",
    "cars and engines",
    "video games",
    "anime",
    "modern art",
    "opera",
    "baseball",
    "cricket",
    "Formula 1",
    "the Olympic Games",
    "dinosaurs",
    "viruses",
    "vaccines",
    "vitamins",
    "insurance",
    "architecture",
    "robotics",
    "calculus",
    "algebra",
    "geometry",
    "trigonometry",
    "grammar",
    "poetry of the Middle Ages",
    "Greek myths",
    "Vikings",
    "pyramids",
    "the Moon landing",
    "the Bible",
    "Buddhism",
    "Islam",
    "yoga poses",
    "astrology",
    "tarot cards",
    "wine",
    "whisky",
    "fishing laws",
    "the Great Wall",
    "Napoleon",
    "dark matter",
    "the Big Bang",
    "string theory",
    "DNA",
    "photosynthesis",
    "plate tectonics",
    "inflation",
    "mortgages",
    "cryptocurrency",
    "electric cars",
    "wind turbines",
    "jet engines",
    "submarines",
    "steam engines",
    "the Titanic",
    "the Eiffel Tower",
    "Hollywood",
    "comics",
    "rap music",
    "K-pop",
    "TikTok",
    "smartphones",
    "Linux",
    "databases",
    "compilers",
    "neural networks",
    "prime numbers",
    "probability",
    "statistics",
    "sociology",
    "linguistics",
    "Latin grammar",
    "the Silk Road",
    "samurai",
    "knights and castles",
    "piracy",
    "democracy",
    "the European Union",
    "the United Nations",
    "human rights",
    "trade unions",
    "globalization",
    "migration",
    "earthquakes",
    "tsunamis",
    "hurricanes",
    "glaciers",
    "coral reefs",
    "rain forests",
    "the ozone layer",
    "recycling plants",
    "sewing machines",
    "perfume",
    "makeup",
    "tattoos",
    "wedding rings",
    "horse racing",
    "boxing",
    "golf",
    "surfing",
    "bodybuilding",
    "marathon training",
    "diets",
    "keto",
    "gluten",
    "allergies",
    "migraine",
    "diabetes",
    "blood pressure",
    "cancer",
    "dentistry",
    "surgery",
    "acupuncture",
]


def unknown(r: random.Random) -> Chat:
    people, things, rare = names()
    x = r.random()
    if x < 0.17:
        name = r.choice(people) if r.random() < 0.6 else f"{_invented(r)} {_invented(r)}" if r.random() < 0.5 else r.choice(people)  # fmt: skip
        ask, subject = expand(r, _WHO, {"x": name}), name
    elif x < 0.45:
        name = r.choice(things) if r.random() < 0.6 else r.choice(_FIELDS) if r.random() < 0.8 else _invented(r)
        ask, subject = expand(r, _THING, {"x": name}), name
        if r.random() < 0.2:
            ask = frame(r, f"what {name} is")
    elif x < 0.62:
        word = r.choice(rare)
        countable = r.random() < 0.75
        a, many = (f"{article(word)} {word}", pluralize(word)) if countable else (word, word)
        ask = frame(r, f"what {a} is") if r.random() < 0.3 else expand(r, _RARE, {"a": a, "w": word, "ps": many})
        subject = many
    elif x < 0.8:
        return unknown_task(r)
    elif x < 0.9:
        return unknown_list(r)
    else:
        return unknown_relation(r)
    return Chat([question(ask), deflect(subject)], "outside", f"I do not know much about {subject}. I will say so.", answers=_answer(r), more=_follow(r))  # fmt: skip


@cache
def _known_tasks() -> frozenset[str]:
    return frozenset(t for row in table("howto") for t in (row[0], *task_extras().get(row[0], ([],))[0]))


def unknown_task(r: random.Random) -> Chat:
    from demo_model.subjects import _HOW_TO, gerund

    if r.random() < 0.5:
        task = r.choice(_TASKS)
    else:
        n = r.choice([x for x in r.sample(nouns(), 5) if x.countable] or [nouns()[5]])
        task = (
            f"{r.choice(_VERBS)} {article(n.word)} {n.word}" if r.random() < 0.7 else f"{r.choice(_VERBS)} {n.plural}"
        )
    if task in _known_tasks():
        task = "win the lottery"
    ask = (
        frame(r, f"how to {task}")
        if r.random() < 0.25
        else question(expand(r, _HOW_TO, {"t": task, "g": gerund(task)}))
    )
    yours = task.replace(" my ", " your ")
    reply = f"I am a small demo model and do not know how to {yours}. I can help with simple things such as cooking an egg or cleaning a window."
    return Chat(
        [ask, reply], "outside", f"I do not know how to {yours}. I will say so.", answers=_answer(r), more=_follow(r)
    )


_ODD_LISTS = [
    "Greek gods",
    "Roman emperors",
    "presidents of France",
    "Nobel prize winners",
    "elements of the periodic table",
    "programming books",
    "operas by Mozart",
    "moons of Jupiter",
    "battles of the Civil War",
    "types of clouds",
    "kinds of rock",
    "human bones",
    "muscles of the leg",
    "car brands from Italy",
    "airlines",
    "newspapers in London",
    "football clubs in Spain",
    "streets in Rome",
    "bridges in Berlin",
    "restaurants in Tokyo",
    "hotels in Paris",
    "kings of Sweden",
    "dynasties of China",
    "verbs in Latin",
    "words in German",
    "songs by the Beatles",
    "films with Tom Hanks",
    "novels by Jane Austen",
    "poems by Goethe",
    "paintings in the Louvre",
    "diseases of the skin",
    "medicines against pain",
    "laws of physics",
    "famous theorems",
    "kinds of triangles",
    "chess openings",
    "yoga poses",
    "ballet steps",
    "wines from Italy",
    "beers from Belgium",
    "cocktails",
    "sushi kinds",
    "spices from India",
    "rare birds",
    "poisonous plants",
    "extinct animals",
    "dinosaurs",
    "types of sharks",
    "breeds of sheep",
    "kinds of apples",
    "constellations",
    "space missions",
    "rockets",
    "inventions of Edison",
    "kinds of cameras",
    "banks in Switzerland",
    "stock markets",
    "taxes",
    "insurance companies",
    "kinds of contracts",
    "trade routes",
    "deserts of Asia",
    "lakes in Finland",
    "volcanoes in Iceland",
    "islands of Greece",
    "states of India",
    "counties of England",
    "companies in Japan",
    "video games of last year",
    "actors from Brazil",
    "rap artists",
    "kinds of dances from Spain",
    "martial arts",
    "Olympic champions",
    "race tracks",
    "sailing knots",
    "kinds of steel",
    "plastics",
    "acids",
    "gases",
    "particles",
    "kinds of engines",
    "server types",
    "databases",
]


def unknown_list(r: random.Random) -> Chat:
    from demo_model.subjects import _LISTS, _NAMES

    what = r.choice(_ODD_LISTS)
    if r.random() < 0.3:
        n = r.choice(nouns()[:3000])
        what = f"{r.choice(['famous', 'rare', 'expensive', 'ancient', 'modern', 'French', 'typical', 'Chinese'])} {n.plural}"
    count = r.choice(["two", "three", "three", "three", "four", "five", "3", "ten"])
    ask = expand(r, _LISTS if r.random() < 0.4 else _NAMES, {"c": count, "p": what})
    reply = f"I am a small demo model and do not know a list of {what}. I can list simple things such as fruits, animals or colors."
    return Chat(
        [question(ask), reply], "outside", f"I do not know {what}. I will say so.", answers=_answer(r), more=_follow(r)
    )


_RELATIONS = [
    "the capital of <t>",
    "the history of <t>",
    "the population of <t>",
    "the price of <ps>",
    "the best <w> in the world",
    "the flag of <t>",
    "the president of <t>",
    "the weather in <t>",
    "the difference between <t> and <u>",
    "the color of <ps> in <t>",
    "the meaning of the name <n>",
    "the distance from <t> to <u>",
    "the area of <t>",
    "the number of <ps> in <t>",
    "the origin of <ps>",
    "the inventor of the <w>",
    "the king of <t>",
    "the language of <t>",
    "the currency of <t>",
    "the fastest <w>",
    "the oldest <w> in <t>",
    "the law about <ps>",
    "the formula of <w>",
    "the boiling point of <w>",
    "the square root of <k>",
    "the longest word",
    "the name of the <w>",
    "the price of a <w> in <t>",
    "the largest <w> in <t>",
]


def unknown_relation(r: random.Random) -> Chat:
    n = r.choice(nouns()[:3000])
    _people, things, _ = names()
    values = {"t": _invented(r) if r.random() < 0.5 else r.choice(things), "u": r.choice(things), "w": n.word, "ps": n.plural, "n": _invented(r), "k": str(r.randint(101, 999))}  # fmt: skip
    subject = expand(r, r.choice(_RELATIONS), values)
    subject = subject[0].lower() + subject[1:]
    ask = (
        frame(r, f"what {subject} is")
        if r.random() < 0.3
        else question(expand(r, "{What is|What is|What was|Tell me|Do you know|Give me|I want to know|Can you tell me|What do you know about|Explain} <x>", {"x": subject}))
    )  # fmt: skip
    return Chat(
        [ask, deflect(subject)],
        "outside",
        f"I do not know {subject}. I will say so.",
        answers=_answer(r),
        more=_follow(r),
    )


# --- free remarks -----------------------------------------------------------------------------------------------------------

_BAD = re.compile(r"\b(sad|tired|bad|sick|ill|hurt|pain|lost|died|hate|angry|boring|bored|stress\w*|hard|difficult|terrible|awful|worst|sorry|unfortunately|failed|problem|cold|rough|busy|exam|miss|lonely|broke|worried|scared|annoy\w*|ugh|sucks?)\b", re.I)  # fmt: skip
_GOOD = re.compile(r"\b(good|great|nice|fun|happy|love|loved|enjoy\w*|awesome|amazing|wonderful|beautiful|glad|excited|best|cool|favorite|lovely|fantastic|delicious|won|relax\w*|vacation|holiday|party|birthday)\b", re.I)  # fmt: skip


def remark(text: str) -> str:
    """A safe reply by rule to whatever a person says, questions apart."""
    low = text.lower()
    if re.match(r"(thanks|thank you|thx)", low):
        return "You are welcome! Let me know if you need anything else."
    if re.search(r"\b(bye|goodbye|see you|good ?night|gotta go)\b", low):
        return "Goodbye! Have a nice day."
    if re.search(r"\bi (really |also |just |do )?(like|love|enjoy|prefer)\b", low):
        return "That is great! What do you like most about it?"
    bad, good = len(_BAD.findall(low)), len(_GOOD.findall(low))
    if re.search(r"\b(not|n't|never|no) (\w+ )?(good|great|nice|fun|happy|enjoy\w*)\b", low):
        bad, good = bad + 1, 0
    if bad > good and re.search(r"\b(i|my|me|i'm|im|we)\b", low):
        return "I am sorry to hear that. Do you want to tell me more about it?"
    if good > bad:
        return "That sounds nice! Please tell me more about it."
    if re.search(r"\b(i will|i'll|i am going to|i'm going to|going to|gonna|tomorrow|i plan|i want to)\b", low):
        return "I hope it goes well! Please tell me more about it."
    if re.search(r"\b(my|i|we|me)\b", low):
        return "I see. Please tell me more about it."
    return "That is interesting. Please tell me more about it."


@cache
def _remarks() -> list[str]:
    turns = [t for d in sources.dialogues() for t in d if 12 <= len(t) <= 100 and t.isascii()]
    greeting = re.compile(r"^(hi|hello|hey|good (morning|evening|afternoon)|yo|sup|howdy|what'?s up)\b", re.I)
    about_it = re.compile(r"\b(chat ?bot|robot|human|who are you|your name|an ai)\b", re.I)
    # Questions are left out: a vague reply to them is the first habit that a small model falls into with any free wording.
    asks = re.compile(r"\?|^(so |and |but |well,? )?(what|who|how|where|when|why|which|do|does|did|are|is|can|could|would|have|any|got)\b|\b(you|your|u)\b", re.I)  # fmt: skip
    bad = (_UNSAFE, greeting, about_it, asks)
    return [t for t in turns if not any(pattern.search(t) for pattern in bad)]


def with_a_remark(r: random.Random, ask: str) -> str:
    """The question behind something that the user tells first and that does not matter for it."""
    told = r.choice(_remarks())
    return f"{told}{'' if told[-1] in '.!?,' else r.choice(['.', ',', '.'])} {ask}" if len(told) < 60 else ask


def free_remark(r: random.Random) -> Chat:
    text = r.choice(_remarks())
    more: list[Pair] = []
    for _ in range(2):
        other = r.choice(_remarks())
        more.append((other, remark(other)))
    return Chat([text, remark(text)], "remark", "The user tells me something. I will answer in a friendly way.", more=more)  # fmt: skip
