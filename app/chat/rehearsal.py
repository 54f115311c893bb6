"""What the first reply would otherwise pay for: fonts, styles and classes that are met for the first time."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.chat.item import Item
from app.chat.reply import view_for

WIDTH = 600
REPLY = """\
## Heading

Words, *soft* and **strong**, `code` and a [link](https://example.org).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```text
code
```
"""


def rehearse(parent: QWidget) -> None:
    """Lay out and paint a message of each kind where nobody sees it."""
    for item in (Item(0, "user", "Hello"), Item(0, "assistant", REPLY)):
        view = view_for(item, parent)
        view.resize(WIDTH, view.height_for(WIDTH))
        view.place()
        view.grab()
        view.hide()
        view.deleteLater()
