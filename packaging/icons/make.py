"""Draw the icon set from resources/icons/pacenote.svg: PNGs for Linux, pacenote.icns for macOS. See `make icons`."""

import sys
from pathlib import Path

from icnsutil import IcnsFile
from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "resources" / "icons" / "pacenote.svg"
LINUX = (16, 24, 32, 48, 64, 128, 256, 512)
# Pixels -> the names of Apple's icon families that hold a PNG of that size ("@2x" for screens of double density).
MAC = {
    16: ("icp4",),
    32: ("icp5", "ic11"),
    64: ("ic12",),
    128: ("ic07",),
    256: ("ic08", "ic13"),
    512: ("ic09", "ic14"),
    1024: ("ic10",),
}


def png(renderer: QSvgRenderer, size: int) -> bytes:
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data().data())


def draw(source: Path, target: Path) -> None:
    """Write pacenote-SIZE.png and pacenote.icns into a folder."""
    renderer = QSvgRenderer(QByteArray(source.read_bytes()))
    if not renderer.isValid():
        raise SystemExit(f"{source} is no SVG that Qt can draw")
    for size in LINUX:
        (target / f"pacenote-{size}.png").write_bytes(png(renderer, size))
    icns = IcnsFile()
    for size, families in MAC.items():
        for family in families:
            icns.add_media(family, data=png(renderer, size))
    icns.write(str(target / "pacenote.icns"), toc=False)


if __name__ == "__main__":
    application = QGuiApplication(["icons", "-platform", "offscreen"])
    draw(SOURCE, Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
