"""The dialog of prompt templates: nothing that is written in it goes away by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app import dialogs
from app.chat.templates import TemplateDialog, TemplateMenu
from app.store import Repository


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the user was asked to discard; the answer is yes."""
    told: list[list[str]] = []

    def discard(_: object, names: list[str]) -> bool:
        told.append(names)
        return True

    monkeypatch.setattr(dialogs, "discard_changes", discard)
    return told


@pytest.fixture
def dialog(qtbot: QtBot, store: Repository, asked: list[list[str]]) -> Iterator[TemplateDialog]:
    """Over two templates, A and B; A is shown."""
    store.save_template("A", "text of A")
    store.save_template("B", "text of B")
    made = TemplateDialog(store)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.reject()


def kept(store: Repository) -> dict[str, str]:
    return {template.name: template.text for template in store.templates()}


def test_what_is_written_stays_while_another_template_is_looked_at(
    dialog: TemplateDialog, store: Repository, asked: list[list[str]]
) -> None:
    """Bug: a click on another name, or on New, threw it away."""
    dialog.text.setPlainText("changed A")
    dialog.list.setCurrentRow(1)
    assert dialog.text.toPlainText() == "text of B"
    dialog.new.click()
    assert dialog.text.toPlainText() == ""
    dialog.name.setText("C")
    dialog.list.setCurrentRow(0)
    assert (dialog.name.text(), dialog.text.toPlainText()) == ("A", "changed A")
    dialog.new.click()
    assert dialog.name.text() == "C"
    assert kept(store) == {"A": "text of A", "B": "text of B"}, "only Save writes"
    dialog.list.setCurrentRow(0)
    dialog.save.click()
    assert kept(store)["A"] == "changed A"
    dialog.reject()
    assert asked == [["C"]]


def test_closing_asks_about_what_is_not_saved(
    qtbot: QtBot, dialog: TemplateDialog, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: Esc closed the dialog, and with it went what was written."""
    monkeypatch.setattr(dialogs, "discard_changes", lambda _, names: asked.append(names))  # no
    dialog.text.setPlainText("changed A")
    qtbot.keyClick(dialog.text, Qt.Key.Key_Escape)
    dialog.close()
    assert asked == [["A"], ["A"]]
    assert dialog.isVisible()
    assert dialog.text.toPlainText() == "changed A"
    dialog.text.setPlainText("text of A")
    dialog.close()
    assert len(asked) == 2
    assert not dialog.isVisible()


def test_a_name_that_is_taken_is_replaced_only_in_so_many_words(dialog: TemplateDialog, store: Repository) -> None:
    """Bug: Save under the name of another template overwrote that one without a word."""
    dialog.new.click()
    dialog.text.setPlainText("new text")
    dialog.name.setText("  B ")
    assert (dialog.save.text(), dialog.save.toolTip()) == ("Replace", "There is a template “B” already")
    dialog.name.setText("B 2")
    assert (dialog.save.text(), dialog.save.toolTip()) == ("Save", "")
    dialog.name.setText("B")
    dialog.save.click()
    assert kept(store) == {"A": "text of A", "B": "new text"}
    assert (dialog.save.text(), dialog.list.currentItem().text()) == ("Save", "B")
    dialog.list.setCurrentRow(0)
    dialog.name.setText("B")
    assert dialog.save.text() == "Replace"


def test_a_deleted_template_can_be_saved_again(
    dialog: TemplateDialog, store: Repository, asked: list[list[str]]
) -> None:
    """Bug: one click beside New, and it was gone for good."""
    dialog.delete.click()
    assert kept(store) == {"B": "text of B"}
    assert dialog.note.text() == "Deleted. Save keeps it after all."
    dialog.save.click()
    assert kept(store) == {"A": "text of A", "B": "text of B"}
    dialog.delete.click()
    dialog.new.click()
    assert (dialog.name.text(), dialog.text.toPlainText()) == ("", "")
    dialog.reject()
    assert asked == [], "nobody wants what was deleted"


def test_odd_names_are_one_line_of_a_menu(qtbot: QtBot, dialog: TemplateDialog, store: Repository) -> None:
    """Bug: a tab in a name put the rest of it where the menu shows shortcuts; a long one was wider than the screen."""
    for name in ("a\tb", " \u2028 & ampersand ", "x" * 500, "اسم 会話 😀"):
        dialog.new.click()
        dialog.name.setText(name)
        dialog.text.setPlainText("t")
        dialog.save.click()
    assert set(kept(store)) == {"A", "B", "a b", "& ampersand", "x" * 80, "اسم 会話 😀"}
    menu = TemplateMenu(store, dialog)
    assert "&& ampersand" in [action.text() for action in menu.actions()]


@pytest.mark.parametrize(("name", "text"), [("", "t"), ("  ", "t"), ("n", ""), ("n", " \n ")])
def test_what_is_empty_cannot_be_saved(dialog: TemplateDialog, name: str, text: str) -> None:
    dialog.new.click()
    dialog.name.setText(name)
    dialog.text.setPlainText(text)
    assert not dialog.save.isEnabled()


def test_a_new_template_is_named_first(qtbot: QtBot, store: Repository, asked: list[list[str]]) -> None:
    made = TemplateDialog(store, "a prompt that is kept")
    qtbot.addWidget(made)
    assert made.focusWidget() is made.name
    made.reject()
    assert asked == [], "the prompt is in the composer still"
