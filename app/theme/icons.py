"""A few line icons on a 16 x 16 grid, drawn in a colour of the roles."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_PATHS = {
    "plus": "M8 3v10M3 8h10",
    "sidebar": "M2.5 3.5h11v9h-11zM6.5 3.5v9",
    "panel": "M2.5 12.5h11M4.5 10V7M7.5 10V3.5M10.5 10V5.5",
    "settings": "M2.5 5h5M10.5 5h3M2.5 11h3M8.5 11h5M9 3.5a1.5 1.5 0 1 1 0 3a1.5 1.5 0 1 1 0-3"
    "M7 9.5a1.5 1.5 0 1 1 0 3a1.5 1.5 0 1 1 0-3",
    "more": "M3.5 8h.01M8 8h.01M12.5 8h.01",
    "copy": "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
    "again": "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
    "edit": "M3 13l.6-2.6L10.8 3.2l2 2L5.6 12.4z",
    "left": "M9.5 4L5.5 8l4 4",
    "right": "M6.5 4l4 4l-4 4",
    "down": "M4 6.5l4 4l4-4",
    "delete": "M3.5 4.5h9M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
    "send": "M8 13V3.5M4 7l4-4l4 4",
    "stop": "M4.5 4.5h7v7h-7z",
    "check": "M3.5 8.5l3 3l6-7",
    "close": "M4 4l8 8M12 4l-8 8",
    "file": "M4 2.5h5.5l3 3v8h-8.5zM9.5 2.5v3h3M6 8.5h4.5M6 11h4.5",
    "play": "M5.5 3.5l6.5 4.5l-6.5 4.5z",
}


@lru_cache(maxsize=256)
def icon(name: str, colour: str) -> QIcon:
    """The icon in #rrggbb. Rendered at 1x, 2x and 3x, so it is sharp on any screen."""
    # colour "none": an empty icon of the same size.
    fill = colour if name == "stop" else "none"
    width = "2" if name == "more" else "1.4"
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        f'<path d="{_PATHS[name]}" fill="{fill}" stroke="{colour}" stroke-width="{width}" '
        'stroke-linecap="round" stroke-linejoin="round"/></svg>'
    )
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    result = QIcon()
    for scale in (1, 2, 3):
        pixmap = QPixmap(16 * scale, 16 * scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, 16 * scale, 16 * scale))
        painter.end()
        pixmap.setDevicePixelRatio(scale)
        result.addPixmap(pixmap)
    return result
