"""Texts for the screenshots. They show what the transcript can do; no model wrote them."""

_SHORT = """A lighthouse is a tower with a strong lamp at its top. It stands where ships need to know the coast: at a \
cape, a harbour mouth, or a reef.

Three things make one useful:

1. **Height**, so that the light is seen over the curve of the sea.
2. **A pattern**, such as two flashes every ten seconds, that names it.
3. **A lens**, most often the one of *Augustin Fresnel*, which gathers the light into a beam.

> A keeper once wound the clockwork that turned the lens every two hours of the night.

Most are automatic today. See [the list of lights](https://example.org/lights) for more, or look at `lights.csv`."""

_CODE = """Here is a small program that counts words. It reads a file line by line, so that it never holds all of it.

```python
from collections import Counter
from pathlib import Path


def count_words(path: Path, least: int = 2) -> list[tuple[str, int]]:
    \"\"\"Words that occur at least `least` times, the most frequent first.\"\"\"
    words: Counter[str] = Counter()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            words.update(line.lower().split())  # punctuation stays with its word, good enough here
    return [(word, n) for word, n in words.most_common() if n >= least]


if __name__ == "__main__":
    for word, n in count_words(Path("book.txt")):
        print(f"{n:6d}  {word}")
```

Run it with:

```sh
python count.py | head -n 20
```

`std::vector<int> v;` and <b>tags</b> stay as they are."""

_TABLE = """Three ways to brew coffee, side by side:

| Method | Grind | Water | Time | Taste |
|:--|:--|--:|--:|:--|
| Press | coarse | 500 ml | 4:00 | full, some grounds |
| Filter | medium | 500 ml | 3:30 | clear, light |
| Moka | fine | 150 ml | 2:00 | strong, bitter edge |

## What you need

- [x] Fresh beans
- [x] A scale
- [ ] A grinder
  - a hand mill is enough
  - set it for the method

---

Prices went from $4 to $6 a bag this year."""

_RTL = """المنارة برج عالٍ في أعلاه مصباح قوي يرشد السفن ليلاً.

- تقف على الرؤوس والموانئ
- لكل منارة نمط ومضات خاص بها

And in Hebrew: מגדלור הוא מגדל עם אור חזק. In Japanese: 灯台は海岸に立つ塔です。"""

_THINKING = """The question asks for 17 x 24. Split it: 17 x 20 is 340 and 17 x 4 is 68.

Together that is 408. Check it the other way: 24 x 17 = 24 x 10 + 24 x 7 = 240 + 168 = 408. Both agree."""

SAMPLES: dict[str, tuple[str, str]] = {
    "short": ("", _SHORT),
    "code": ("", _CODE),
    "table": ("", _TABLE),
    "rtl": ("", _RTL),
    "reasoning": (_THINKING, "17 × 24 = **408**.\n\nSplit it into 17 × 20 = 340 and 17 × 4 = 68, then add."),
    "streaming": ("", _SHORT + "\n\n" + _CODE),
}
"""Prompt -> (reasoning, answer)."""
