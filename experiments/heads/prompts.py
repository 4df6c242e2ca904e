"""Prompts for training texts: four kinds of work from templates and from this repository's own text, no foreign text.

    code       the first lines of a function or of a file, to be continued
    prose      the first sentences of a story, to be continued
    question   a question in the chat template
    editing    a text to be repeated with a small change, in the chat template

The held-out prompts are those of `draftproof speculate` (engine/model/prompts.jsonl); none of them is made here.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELD_OUT = ROOT / "engine" / "model" / "prompts.jsonl"
WORKS = ("code", "prose", "question", "editing")

NAMES = ("Anton", "Beata", "Carlos", "Dina", "Erik", "Fatima", "Georg", "Hana", "Ivan", "Julia", "Karim", "Lena",
         "Mateo",
         "Nora", "Oskar", "Priya", "Quentin", "Rosa", "Stefan", "Tara", "Ulrich", "Vera", "Wanda", "Xenia", "Yusuf",
         "Zoe")
PLACES = ("the harbour", "the old mill", "the market square", "the school", "the station", "the mountain pass",
          "the garden",
          "the workshop", "the theatre", "the hospital", "the farm", "the beach", "the museum", "the forest",
          "the airport", "the bakery", "the castle", "the bridge", "the village hall", "the observatory")
THINGS = ("a lamp", "a map", "a key", "a violin", "a notebook", "a camera", "a coin", "a ladder", "a kite", "a radio",
          "a compass", "a basket of apples", "a wooden box", "a bicycle", "a telescope", "a red scarf", "a photograph")
TIMES = ("Early in the morning", "Late in the evening", "On the first day of autumn", "One cold night",
         "In the middle of July",
         "Long after the war", "On a quiet Sunday", "Before anybody was awake", "Just as the rain began",
         "At the end of the year")
MOODS = ("tired", "curious", "afraid", "happy", "angry", "silent", "proud", "lonely", "hopeful", "confused")
TOPICS = ("volcanoes", "bees", "electric cars", "the printing press", "glaciers", "vaccines", "the Roman roads",
          "coral reefs",
          "satellites", "the water cycle", "bread", "earthquakes", "bridges", "photosynthesis", "the human heart",
          "paper",
          "steam engines", "sleep", "sound", "rainbows", "deserts", "whales", "the alphabet", "money", "chess",
          "magnets",
          "clouds", "soap", "tea", "democracy", "the internet", "batteries", "gravity", "wolves", "penguins", "rice",
          "mirrors", "tides", "the calendar", "maps", "yeast", "recycling", "wind turbines", "the microscope", "cotton",
          "sorting algorithms", "databases", "encryption", "prime numbers", "fractions", "statistics", "triangles",
          "databases with indexes", "hash tables", "public libraries", "healthy breakfasts", "running", "swimming",
          "learning a language", "a job interview", "house plants", "saving money", "cooking pasta", "first aid")
QUESTIONS = ("What are {t}, and why do they matter?", "How do {t} work?", "Explain {t} in simple words.",
             "Write a short paragraph about {t}.", "Give me five facts about {t}.", "What is the history of {t}?",
             "List the advantages and disadvantages of {t}.", "What should a beginner know about {t}?",
             "Describe {t} to somebody who has never heard of them.",
             "Write three questions about {t} and answer them.",
             "What is the most surprising thing about {t}?", "Give me step by step advice on {t}.",
             "Write a short poem about {t}.", "Compare {t} with something from everyday life.",
             "Why do people study {t}?", "Summarize what is known about {t} in two sentences.")
ASKED = ("Write an email to {n} that moves the meeting from {d} to {e}.", "Write a short story about {n} and {x}.",
         "What can one cook from {f} and {g}?", "Write a Python function that {c}.", "Convert {k} kilometres to miles.",
         "How many minutes are in {k} hours? Explain.", "Plan a weekend at {p} for a family.",
         "Suggest three names for a shop that sells {f}.", "Write a dialogue between {n} and {m} about {f}.",
         "What is {k} plus {j}? Show each step.", "Write a to-do list for a person who organizes a party at {p}.")
TASKS = ("reverses a string", "counts the vowels of a text", "finds the largest of three numbers",
         "sorts a list of names",
         "checks whether a number is prime", "computes the average of a list", "removes duplicates from a list",
         "reads a file and counts its lines", "converts Celsius to Fahrenheit", "merges two sorted lists",
         "computes the factorial of a number", "finds the most common word of a text", "checks for balanced brackets")
FOODS = ("rice", "lentils", "apples", "honey", "potatoes", "cheese", "tomatoes", "carrots", "oats", "pears", "walnuts",
         "bread")
DAYS = ("Monday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
STORIES = ("{T}, {n} walked to {p} with {x}. Nobody had been there for years, and",
           "{n} was {a} when the message came. It said only that {m} had left {p}, and that",
           "\"You cannot take {x} with you,\" said {n}. {m} looked at {p} and",
           "There were two reasons why {n} never went back to {p}. The first was {x}. The second",
           "{T} a stranger came to {p}. In one hand was {x}, in the other a letter for {n}, who",
           "The children of {p} told each other a story about {n}, who had found {x} and",
           "{n} had always wanted to see {p}. {T} the chance came, because {m}",
           "Once upon a time there lived near {p} an old woman called {n}. She owned nothing but {x}, and",
           "The report of that day says little. {T}, {n} and {m} met at {p}. They were {a}, and",
           "My sister {n} collects things. Last year she found {x} behind {p}, and since then",
           "Every town has its secret. Ours lies under {p}, where {n}",
           "{T}, when the fog had gone, {n} saw that {p} was empty. Only {x}")
SENTENCES = ("{n} brought {x} to {p}.", "The door of {p} was closed until {d}.", "{m} asked for {f} and {g}.",
             "It took {k} hours to get there.", "The room was {a} and quiet, as {n} had said.",
             "{n} and {m} will meet again on {d}.", "Tickets cost {k} euros, children pay {j}.",
             "Please bring {f}, {g} and {x}.", "The meeting at {p} begins at {j} o'clock.",
             "In {y} the building was sold to {n}.", "{m} painted the wall next to {p}.", "Nobody was {a} any more.")
FUNCTIONS = ("def {v}_of({w}s):\n    \"\"\"The {v} of all {w}s.\"\"\"\n    result = 0\n    for {w} in {w}s:\n",
             "class {W}:\n    def __init__(self, {v}, {u}):\n        self.{v} = {v}\n        "
             "self.{u} = {u}\n\n    def ",
             "function {v}{W}({w}) {{\n  if (!{w}) {{\n    return null;\n  }}\n",
             "public class {W} {{\n    private int {v};\n    private String {u};\n\n    public {W}(int {v}, String "
             "{u}) {{\n",
             "// Returns the {v} of {w}, or -1.\nint {v}_of_{w}(const char* {w}, int {u}) {{\n",
             "SELECT {w}.{v}, {w}.{u}\nFROM {w}\nWHERE {w}.{v} > {k}\n",
             "import json\n\ndef load_{w}s(path):\n    with open(path) as file:\n        {w}s = json.load(file)\n",
             "def test_{v}_of_{w}():\n    {w} = {W}({k}, \"{u}\")\n    assert {w}.{v} == {k}\n\n\ndef test_",
             "<table>\n  <tr><th>{v}</th><th>{u}</th></tr>\n  <tr><td>{k}</td><td>{j}</td></tr>\n",
             "{w}:\n  {v}: {k}\n  {u}: {j}\n  items:\n    - name: ",
             "struct {W} {{\n  int {v};\n  int {u};\n}};\n\nbool operator==(const {W}& a, const {W}& b) {{\n",
             "#!/bin/bash\n# Copies every {w} to a folder.\nset -e\n{v}=$1\nfor {w} in *.{u}; do\n",
             "def {v}({w}, {u}={k}):\n    if {w} is None:\n        raise ValueError(\"{w} is missing\")\n")
WORDS = ("order", "user", "price", "city", "weight", "color", "score", "account", "message", "signal", "node", "table",
         "length", "width", "count", "owner", "label", "status", "title", "level", "speed", "volume", "region",
         "ticket")


def filled(template: str, draw: random.Random) -> str:
    n, m = draw.sample(NAMES, 2)
    f, g = draw.sample(FOODS, 2)
    d, e = draw.sample(DAYS, 2)
    v, u, w = draw.sample(WORDS, 3)
    return template.format(n=n, m=m, f=f, g=g, d=d, e=e, v=v, u=u, w=w, W=w.capitalize(), p=draw.choice(PLACES),
                           x=draw.choice(THINGS), T=draw.choice(TIMES), a=draw.choice(MOODS), t=draw.choice(TOPICS),
                           c=draw.choice(TASKS), k=draw.randrange(2, 90), j=draw.randrange(2, 30),
                           y=draw.randrange(1850, 2020))


def own_code() -> list[str]:
    """Pieces of this repository's sources, each beginning with a line that begins something."""
    pieces = []
    for pattern in ("engine/**/*.cpp", "reference/**/*.cpp", "experiments/**/*.py", "python/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            if "heads" in path.parts:
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            starts = [i for i, line in enumerate(lines) if line and line[0].isalpha() and line.rstrip()[-1:] in "{:"]
            pieces += ["\n".join(lines[i:i + 8]) + "\n" for i in starts]
    return [piece for piece in pieces if 80 < len(piece) < 500]


def own_prose() -> list[str]:
    """Sentences of this repository's documents."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return [part for part in paragraphs if 120 < len(part) < 420 and re.fullmatch(r"[A-Z][^|#*`\[\]{}<>]*[.]", part)]


def words_of(tokens: list[str]) -> list[str]:
    """The 10,000 most frequent words that are one token of the target (byte-level BPE, a space before them; ids are in
    the order of the merges): its own vocabulary is the widest list of topics that is here."""
    return [token[1:] for token in tokens if re.fullmatch("\u0120[A-Za-z][a-z]{3,}", token)][:10_000]


#: With {r}, {s}, {q}: words of the target's vocabulary.
WIDE = {
    "code": ("def {r}_{s}(self, {q}):\n    \"\"\"", "class {R}{S}:\n    {q} = None\n\n    def ",
             "const {r}{S} = ({q}) => {{\n",
             "// {R} {s} of the {q}\n#include <vector>\n\n", "<div class=\"{r}-{s}\">\n  <h2>{Q}</h2>\n  <p>",
             "{{\n  \"{r}\": \"{s}\",\n  \"{q}\": [\n",
             "CREATE TABLE {r} (\n  id INTEGER PRIMARY KEY,\n  {s} TEXT,\n  {q} ",
             "import {r}\nfrom {s} import {q}\n\n", "static void {r}_{s}(struct {q}* self) {{\n"),
    "prose": ("The {r} had been {s} since the {q}, and", "{n} thought of the {r}. It was a {s} one, and the {q}",
              "There was no {r} in {p}, only a {s}. Then the {q}",
              "People say that {r} and {s} are alike. {n}, who knew {q},",
              "It began with a {r}. {T}, the {s} near {p} was",
              "A letter about the {r} lay on the table. {n} read: \"The {s}",
              "In the history of {r}, {s} is often", "The {q} of {R} is known for its {r} and"),
    "question": ("What does the word {r} mean? Use it in a sentence.", "What do {r} and {s} have in common?",
                 "Write a paragraph about {r} and {s}.", "Tell me a story with a {r}, a {s} and a {q}.",
                 "Why is {r} important for {s}?", "Explain the difference between {r} and {s}.",
                 "Give me three examples of {r}.", "How would you describe {r} to a child?",
                 "Write a headline and a short news article about {r} in {p}.",
                 "Name some words that are similar to {r}.",
                 "What is known about the {s} of {R}?", "Write a list of ten things that concern {r} or {q}."),
    "editing": ("Repeat these words and add {q} at the end.\n\n{r}\n{s}\n{u}\n{w}\n{r}s",
                "Copy this text.\n\n{S1} {S2} The {r} is {s}.",
                "Repeat this text with {q} instead of {r}.\n\nThe {r} of {n} is {s}. {S1} Every {r} needs a {s}. {S2}",
                "Write this again and change {s} to {q}.\n\n{S1} A {s} was in {p}. {m} liked the {r} and the {s}. {S2}",
                "Repeat the letter but address it to {n}.\n\nDear {m},\n\nthe {r} that you asked for is {s}. "
                "{S1}\n\nYours,\n{R}"),
}


def widened(work: str, draw: random.Random, words: list[str]) -> str:
    r, s, q = draw.sample(words, 3)
    template = draw.choice(WIDE[work])
    for name, value in (("{r}", r), ("{s}", s), ("{q}", q), ("{R}", r.capitalize()), ("{S}", s.capitalize()),
                        ("{Q}", q.capitalize()), ("{S1}", draw.choice(SENTENCES)), ("{S2}", draw.choice(SENTENCES))):
        template = template.replace(name, value)
    return filled(template, draw)


def editing(draw: random.Random, prose: list[str], code: list[str]) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        items = draw.sample(FOODS + WORDS, draw.randrange(5, 10))
        return f"Repeat this list and add \"{draw.choice(WORDS)}\" at the end.\n\n" + "\n".join(items)
    if kind == 1:
        lines = [f"{word}: {draw.randrange(1, 5000)}" for word in draw.sample(WORDS, draw.randrange(5, 9))]
        word = draw.choice(lines).split(":")[0]
        return f"Write this configuration again and set {word} to {draw.randrange(1, 99)}.\n\n" + "\n".join(lines)
    if kind == 2:
        piece = draw.choice(code)
        names = sorted(set(re.findall(r"\b[a-z_]{4,}\b", piece)))
        return (f"Rename {draw.choice(names or ['value'])} to {draw.choice(WORDS)} in this code and show all of it."
                f"\n\n{piece}")
    text = draw.choice(prose) if kind == 3 else " ".join(
        filled(sentence, draw) for sentence in draw.sample(SENTENCES, draw.randrange(4, 8)))
    words = sorted(set(re.findall(r"\b[A-Za-z]{4,}\b", text)))
    word, other = draw.choice(words), draw.choice(WORDS)
    order = draw.choice(("Repeat the following text, but replace \"{a}\" by \"{b}\".",
                         "Copy this text with {b} instead of {a}.",
                         "Write this paragraph again and change {a} to {b}.", "Repeat this text word for word.",
                         "Put the word \"{b}\" behind \"{a}\" and repeat the rest as it is.",
                         "Correct the mistakes of the text and leave the rest unchanged."))
    return order.format(a=word, b=other) + "\n\n" + text


def templates(count: int, seed: int, words: list[str] | None = None) -> list[dict]:
    """`count` different prompts, the four kinds in turn; `words`: with words of the target's vocabulary in them. The
    same seed and tree give the same prompts."""
    draw = random.Random(seed)
    code, prose = own_code(), own_prose()
    seen = {line["prompt"] for line in held_out_prompts()}
    prompts: list[dict] = []
    while len(prompts) < count:
        work = WORKS[len(prompts) % len(WORKS)]
        if words and draw.random() < 0.75:
            text = widened(work, draw, words)
        elif work == "code":
            text = draw.choice(code) if draw.random() < 0.25 else filled(draw.choice(FUNCTIONS), draw)
        elif work == "prose":
            text = filled(draw.choice(STORIES), draw)
            if draw.random() < 0.3:
                text = filled(draw.choice(SENTENCES), draw) + " " + text
        elif work == "question":
            text = filled(draw.choice(QUESTIONS if draw.random() < 0.7 else ASKED), draw)
        else:
            text = editing(draw, prose, code)
        if text in seen:
            continue
        seen.add(text)
        prompts.append({"work": work, "prompt": text, "chat": work in ("question", "editing")})
    return prompts


def training_prompts(words: list[str], count: int) -> list[dict]:
    """`count` prompts: 1,152 from templates alone, then ones that words of the target's vocabulary make wider; of the
    wider ones half are answered greedily, as the held-out texts are, the others at the temperature of `draftproof
    features`."""
    prompts = templates(1152, seed=1)
    wide = templates(count - len(prompts), seed=2, words=words)
    for i, line in enumerate(wide):
        if i // len(WORKS) % 2 == 1:
            line["temperature"] = 0
    return prompts + wide


def held_out_prompts() -> list[dict]:
    return [json.loads(line) for line in HELD_OUT.read_text(encoding="utf-8").splitlines()]


def write_prompts(path: Path, prompts: list[dict]) -> None:
    """For `draftproof features --prompts`, which knows no "work"."""
    lines = [json.dumps({key: value for key, value in line.items() if key != "work"}) for line in prompts]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
