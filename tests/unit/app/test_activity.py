"""No App Nap while a reply is written: begun once, ended once, and never in the way."""

from __future__ import annotations

import ctypes
import sys

import pytest
from pytestqt.qtbot import QtBot

from app import activity
from app.activity import Activity, ProcessInfo
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import held, idle


class Fake:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refuses = False

    def begin(self, reason: str) -> str:
        if self.refuses:
            raise OSError("no")
        self.calls.append(f"begin {reason}")
        return "token"

    def end(self, token: str) -> None:
        self.calls.append(f"end {token}")


def test_it_is_held_exactly_while_a_reply_is_written(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    fake = Fake()
    held_activity = window.services.activity
    held_activity._system = fake
    held(qtbot, window, loader, "one")
    assert fake.calls == ["begin Writing a reply"]
    window.services.chats.new_chat()
    window.composer.set_text("another one waits")
    window.composer.submit()
    assert len(fake.calls) == 1, "two replies, one activity"
    loader.release()
    idle(qtbot, window)
    assert fake.calls == ["begin Writing a reply", "end token"]
    assert not held_activity.held


def test_a_system_that_refuses_is_not_asked_again() -> None:
    fake, running = Fake(), [True]
    fake.refuses = True
    made = Activity(lambda: running[0], fake)
    made.update()
    made.update()
    running[0] = False
    made.update()
    assert fake.calls == []
    assert made.problem == "OSError: no"


def test_it_ends_with_the_program() -> None:
    fake = Fake()
    made = Activity(lambda: True, fake)
    made.update()
    made.close()
    made.close()
    assert fake.calls == ["begin Writing a reply", "end token"]


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has one")
def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", None)
    assert activity.system() is None


def test_a_mac_without_the_runtime_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert activity.system() is None


def test_the_messages_are_those_of_nsprocessinfo() -> None:
    """A stand-in for libobjc: one C function that notes what it is sent."""
    sent: list[tuple[str, ...]] = []
    names: dict[int, bytes] = {}

    def known(name: bytes) -> int:
        number = 0x1000 + 16 * (len(names) + 1)
        names[number] = name
        return number

    pointer = ctypes.c_void_p

    def message(target: int, selector: int, first: int, second: int) -> int:
        what = names[selector].decode()
        if what == "stringWithUTF8String:":
            text = ctypes.cast(first, ctypes.c_char_p).value or b""
            sent.append((names[target].decode(), what, text.decode()))
            return known(b"text")
        more = (hex(first), names[second].decode()) if what.startswith("begin") else ()
        more = (names[first].decode(),) if what == "endActivity:" else more
        sent.append((names[target].decode(), what, *more))
        return known({"processInfo": b"info", "beginActivityWithOptions:reason:": b"activity"}.get(what, b"x"))

    class Runtime:
        objc_getClass = ctypes.CFUNCTYPE(pointer, ctypes.c_char_p)(known)
        sel_registerName = ctypes.CFUNCTYPE(pointer, ctypes.c_char_p)(known)
        objc_msgSend = ctypes.CFUNCTYPE(pointer, pointer, pointer, pointer, pointer)(message)

    info = ProcessInfo(Runtime)
    info.end(info.begin("Writing a reply"))
    assert sent == [
        ("NSString", "stringWithUTF8String:", "Writing a reply"),
        ("NSProcessInfo", "processInfo"),
        ("info", "beginActivityWithOptions:reason:", "0xefffff", "text"),
        ("activity", "retain"),
        ("NSProcessInfo", "processInfo"),
        ("info", "endActivity:", "activity"),
        ("activity", "release"),
    ]
