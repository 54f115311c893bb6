"""What one chat has of its own, prompt templates, and attachments from the composer to the model and back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QFileDialog
from pytestqt.qtbot import QtBot

from app.chat.chatsettings import ChatSettingsDialog
from app.chat.message import UserView
from app.chat.options import ChatOptions, options_of
from app.chat.templates import TemplateDialog
from app.store import Attachment, Repository, export
from app.store.attachments import compose
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask, idle


def dialog_of(window: MainWindow) -> ChatSettingsDialog:
    window.chat_settings()
    (dialog,) = window.findChildren(ChatSettingsDialog)
    return dialog


def test_a_chat_has_its_own_sampling_and_system_prompt(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    ask(qtbot, window, "one")
    dialog = dialog_of(window)
    assert [b.isEnabled() for b in dialog.resets.values()] == [False] * 5
    dialog.fields["temperature"].editor.setValue(0.25)
    dialog.fields["system_prompt"].editor.setPlainText("Be brief.")
    dialog.close()
    assert window.services.chats.options == ChatOptions("Be brief.", {"temperature": 0.25})
    ask(qtbot, window, "two")
    request = loader.requests[-1]
    settings = window.services.settings
    assert request.sampler == dataclasses.replace(settings.sampler(), temperature=0.25)
    assert (request.messages[0].role, request.messages[0].content) == ("system", "Be brief.")
    # What is not its own follows the settings.
    window.services.change_settings(dataclasses.replace(settings, top_k=7, temperature=1.5))
    ask(qtbot, window, "three")
    assert (loader.requests[-1].sampler.top_k, loader.requests[-1].sampler.temperature) == (7, 0.25)
    window.new_chat()
    ask(qtbot, window, "elsewhere")
    assert loader.requests[-1].sampler.temperature == 1.5
    assert loader.requests[-1].messages[0].role == "user"


def test_each_value_can_be_reset(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    window.services.change_settings(dataclasses.replace(window.services.settings, system_prompt="Usual."))
    ask(qtbot, window, "one")
    dialog = dialog_of(window)
    dialog.fields["top_p"].editor.setValue(0.5)
    dialog.fields["top_p"].flush()
    dialog.fields["system_prompt"].editor.setPlainText("Mine.")
    dialog.fields["system_prompt"].flush()
    assert dialog.resets["top_p"].isEnabled()
    dialog.resets["top_p"].click()
    dialog.resets["system_prompt"].click()
    assert window.services.chats.options == ChatOptions("Usual.", {})
    assert dialog.fields["top_p"].value() == window.services.settings.top_p
    assert not dialog.resets["top_p"].isEnabled()
    dialog.close()


def test_a_chat_that_does_not_exist_yet_keeps_what_was_chosen_for_it(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    window.new_chat()
    window.services.chats.set_options(window.services.chats.current, ChatOptions("Be brief.", {"temperature": 0.0}))
    ask(qtbot, window, "one")
    assert loader.requests[-1].sampler.temperature == 0.0
    assert window.services.chats.options == ChatOptions("Be brief.", {"temperature": 0.0})
    window.new_chat()
    assert window.services.chats.options == ChatOptions()


def test_what_was_chosen_for_a_chat_to_come_outlasts_changes_elsewhere(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Bug: its system prompt was gone as soon as the settings of another chat were changed."""
    ask(qtbot, window, "one")
    chats, there = window.services.chats, window.services.chats.current
    window.new_chat()
    chats.set_options(chats.current, ChatOptions("Be brief."))
    chats.open(there)
    chats.set_options(chats.current, ChatOptions("", {"temperature": 0.5}))
    window.new_chat()
    assert chats.options == ChatOptions("Be brief.")


def test_the_dialog_belongs_to_the_chat_that_it_was_opened_for(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """Bug: a file that was opened with Pacenote under the dialog got what was meant for the chat before."""
    ask(qtbot, window, "one")
    there = window.services.chats.current
    export.write(export.to_json(window.services.store, [there]), tmp_path / "a.json")
    dialog = dialog_of(window)
    window.import_file(str(tmp_path / "a.json"))
    imported = window.services.chats.current
    dialog.fields["system_prompt"].editor.setPlainText("meant for one")
    dialog.close()
    prompts = [window.services.store.conversation(number).system_prompt for number in (there, imported)]
    assert prompts == ["meant for one", ""]


@pytest.mark.parametrize("kept", [{"temperature": 99}, {"temperature": "hot"}, {"beam": 4}, {"top_k": 2.5}])
def test_values_that_do_not_fit_are_left_out(store: Repository, kept: dict[str, object]) -> None:
    """An imported file may hold anything; a reply must not fail for it."""
    chat = store.create_conversation()
    store.set_sampler(chat.id, {**kept, "min_p": 0.1})
    found = store.conversation(chat.id)
    assert found is not None
    assert options_of(found).sampler == {"min_p": 0.1}


def test_templates_are_kept_used_renamed_and_deleted(qtbot: QtBot, window: MainWindow) -> None:
    window.composer.set_text("Explain {{thing}} to a child.")
    window.save_template()
    (dialog,) = window.findChildren(TemplateDialog)
    assert not dialog.save.isEnabled(), "it has no name yet"
    dialog.name.setText("Explain")
    dialog.save.click()
    dialog.new.click()
    dialog.name.setText("& other")
    dialog.text.setPlainText("plain")
    dialog.save.click()
    assert [t.name for t in window.services.store.templates()] == ["& other", "Explain"]
    dialog.list.setCurrentRow(0)
    dialog.name.setText("other")
    dialog.save.click()
    assert [t.name for t in window.services.store.templates()] == ["Explain", "other"]
    dialog.list.setCurrentRow(1)
    dialog.delete.click()
    dialog.close()
    window.composer.clear()
    window.templates.fill()
    (action,) = window.templates.actions()
    assert action.text() == "Explain"
    action.trigger()
    qtbot.keyClicks(window.composer.box, "rain")
    assert window.composer.text() == "Explain rain to a child."


def test_an_attachment_goes_to_the_model_stays_with_its_message_and_can_be_edited(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("the notes\n", "utf-8")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(tmp_path / "notes.txt")], ""))
    window.composer.set_text("Sum up.")
    window.actions_by_key["attach"].trigger()
    window.composer.submit()
    idle(qtbot, window)
    files = (Attachment("notes.txt", "the notes\n"),)
    sent = compose("Sum up.", files)
    assert sent == "Sum up.\n\nnotes.txt:\n```\nthe notes\n```"
    assert loader.requests[-1].messages[-1].content == sent
    user = window.transcript.items[0]
    assert (user.content, user.attachments) == ("Sum up.", files)
    assert window.composer.draft().attachments == ()
    view = window.transcript.view(user.id)
    assert isinstance(view, UserView)
    (chip,) = view._chips.findChildren(QAbstractButton)
    assert chip.accessibleName() == "Attachment notes.txt, 10 characters. Show it"
    window.transcript.copy.emit(user.id)
    assert QGuiApplication.clipboard().text() == sent
    window.services.chats.edit(user.id)
    assert window.composer.draft().attachments == files
    window.composer.submit()
    idle(qtbot, window)
    assert loader.requests[-1].messages[-1].content == sent
    assert window.transcript.items[0].branches == 2
    assert [c.title for c in window.services.chats.conversations()] == ["Sum up."]


def test_attachments_of_a_draft_stay_with_their_chat(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    """Bugs 23 and 24: draft and files were lost on switching, and when typed while generating."""
    ask(qtbot, window, "one")
    chat = window.services.chats.current
    (tmp_path / "a.txt").write_text("a", "utf-8")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.txt"))])
    buttons, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, buttons, none))
    assert window.composer.draft().attachments == (Attachment("a.txt", "a"),)
    window.new_chat()
    assert window.composer.draft().attachments == ()
    window.services.chats.open(chat)
    assert window.composer.draft().attachments == (Attachment("a.txt", "a"),)
    assert window.services.store.draft(chat).attachments == (Attachment("a.txt", "a"),)


def test_an_attachment_alone_names_the_chat(qtbot: QtBot, window: MainWindow) -> None:
    window.composer._on_pasted("x" * 5000)
    window.composer.submit()
    idle(qtbot, window)
    assert window.services.chats.conversations()[0].title == "Pasted text"
    view = window.transcript.view(window.transcript.items[0].id)
    assert isinstance(view, UserView)
    assert view._bubble.isHidden(), "an empty block would look like a mistake"


def test_undo_stays_in_view_when_the_composer_grows(qtbot: QtBot, window: MainWindow) -> None:
    """Bug: attaching a file covered the button that brings a deleted message back."""
    ask(qtbot, window, "one")
    window.services.chats.delete_message(window.transcript.items[-1].id)
    before = window.stack.height()
    window.composer._on_pasted("x" * 5000)
    qtbot.waitUntil(lambda: window.stack.height() < before)
    assert window.toast.isVisible()
    assert window.toast.geometry().bottom() < window.stack.height()
