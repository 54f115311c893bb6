"""The models window: what it offers, what happens when it is pressed, and what it says when things go wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backends.fail
import keyring.errors
import pytest
from pytestqt.qtbot import QtBot

from app.happenings import Envelope, Ids, Loaded, LoadFailed
from app.models import dialog as dialogs
from app.models import rowlist
from app.models.dialog import ModelsDialog
from app.models.entry import DEMO, Entry, State
from app.models.jobs import Jobs
from app.models.loader import ModelLoader, Numbers
from app.models.other import named
from app.models.own import OwnFolders
from app.models.row import facts, progress_words
from app.models.scripted import GIB, ScriptedHub
from app.models.shelf import Shelf
from app.models.token import TokenStore
from app.pump import Pump
from app.worker import EngineThread
from engine import (
    Begun,
    DoesNotFit,
    DownloadProgress,
    Fit,
    Found,
    HubError,
    KnownError,
    LoadOptions,
    LocalModel,
    Need,
    Step,
    Unusable,
)
from tests.unit.app.fakes import FakeLoader

BIG = "mlx-community/Qwen3.8-27B-4bit"
BIG_HEAD = "mlx-community/Qwen3.8-27B-MTP-4bit"
NINE = "mlx-community/Qwen3.5-9B-MLX-4bit"
GATED = HubError("You have no access to it.", todo="Open its page, accept its licence.", status=403)


class FakeTokens(TokenStore):
    def __init__(self) -> None:
        self.kept: list[str] = []
        self.reason = ""
        self.loads = 0

    def load(self) -> str | None:
        self.loads += 1
        return self.kept[-1] if self.kept else None

    def save(self, token: str) -> str:
        if not self.reason:
            self.kept.append(token)
        return self.reason


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedHub:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return ScriptedHub(tmp_path / "heads")


@pytest.fixture
def tokens() -> FakeTokens:
    return FakeTokens()


@pytest.fixture
def shelf(qapp: object, hub: ScriptedHub, tokens: FakeTokens, tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(hub, OwnFolders(tmp_path / "models.toml"), tokens)
    yield made
    hub.go_on.set()
    made.close()


@pytest.fixture
def loader(qapp: object) -> Iterator[ModelLoader]:
    thread = EngineThread(FakeLoader())
    yield ModelLoader(thread, Numbers())
    thread.close()


@pytest.fixture
def window(qtbot: QtBot, shelf: Shelf, loader: ModelLoader) -> ModelsDialog:
    made = ModelsDialog(shelf, loader)
    qtbot.addWidget(made)
    made.show()
    settle(qtbot, shelf)
    return made


def settle(qtbot: QtBot, shelf: Shelf) -> None:
    qtbot.waitUntil(lambda: not shelf.jobs._running, timeout=10_000)


def held(qtbot: QtBot, shelf: Shelf, hub: ScriptedHub, key: str) -> None:
    """Begin a download that stands at 37 %."""
    hub.go_on.clear()
    shelf.fetch(key)
    qtbot.waitUntil(lambda: (e := shelf.entry(key)) is not None and e.progress is not None and e.progress.done > 0)


def test_demo_first_then_what_is_here_then_the_catalogue(window: ModelsDialog, shelf: Shelf) -> None:
    """Every entry says what it is, whether it fits, and what nobody could check."""
    entries = shelf.entries()
    assert [e.state for e in entries] == [State.HERE] + [State.AWAY] * (len(entries) - 1)
    assert "Fits: needs about" in window.rows[DEMO].text
    assert window.rows[DEMO].offered() == ["load"]
    text = window.rows[BIG].text
    for words in ("about 13.88 GiB", "4-bit group 64", "about 66 % accepted at block 3", "apache-2.0", "unchecked"):
        assert words in text
    assert window.rows[BIG].offered() == ["fit", "fetch"]


def test_fit_is_asked_for_before_downloading(qtbot: QtBot, window: ModelsDialog, shelf: Shelf) -> None:
    """Headers only; the context that was chosen counts."""
    window.rows[BIG].press("fit")
    settle(qtbot, shelf)
    assert "Fits: needs about 17." in window.rows[BIG].text
    assert "at 8,192 tokens" in window.rows[BIG].text
    assert window.rows[BIG].offered() == ["fetch"]
    window._context.setCurrentIndex(3)
    settle(qtbot, shelf)
    assert window.rows[BIG].offered() == ["fit", "fetch"], "an answer for another context is no answer"
    window.rows[BIG].press("fit")
    settle(qtbot, shelf)
    assert "Does not fit: needs about 33." in window.rows[BIG].text
    assert "more would be needed" in window.rows[BIG].text


def test_a_download_fetches_the_pair_and_then_offers_it(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    window.rows[BIG].press("fetch")
    settle(qtbot, shelf)
    assert [call for call in hub.calls if call[0] == "download"] == [("download", BIG), ("download", BIG_HEAD)]
    assert shelf.entry(BIG).state is State.HERE  # type: ignore[union-attr]
    assert "load" in window.rows[BIG].offered()


def test_a_head_without_a_repo_is_taken_out_of_the_original(qtbot: QtBot, shelf: Shelf, hub: ScriptedHub) -> None:
    shelf.refresh()
    settle(qtbot, shelf)
    shelf.fetch(NINE)
    settle(qtbot, shelf)
    assert ("extract", "Qwen/Qwen3.5-9B") in hub.calls


def test_pause_go_on_and_cancel(qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub) -> None:
    held(qtbot, shelf, hub, BIG)
    row = window.rows[BIG]
    assert row.offered() == ["pause", "cancel"]
    assert "5.92 GiB of 16.00 GiB · 91.6 MiB/s · about 2 min left · 4 of 9 files" in row.text
    row.press("pause")
    assert (row.offered(), "Pausing" in row.text) == ([], True)
    settle(qtbot, shelf)
    assert row.offered() == ["discard", "resume"]
    assert "5.92 GiB of unfinished files kept" in row.text
    assert row.error.isHidden(), "a pause is no error"
    row.press("resume")
    qtbot.waitUntil(lambda: row.offered() == ["pause", "cancel"])
    row.press("cancel")
    qtbot.waitUntil(lambda: ("discard", BIG) in hub.calls)
    settle(qtbot, shelf)
    assert ("discard", BIG_HEAD) in hub.calls
    assert row.offered() == ["fit", "fetch"]


def test_what_an_earlier_run_began_is_offered_to_go_on(qtbot: QtBot, shelf: Shelf, hub: ScriptedHub) -> None:
    """After a restart: a pair of the catalogue under its name, another repo under its own; a head under its pair."""
    hub.found = Found(begun=(Begun(BIG_HEAD, 5), Begun("someone/model", 7)))
    shelf.refresh()
    settle(qtbot, shelf)
    begun = [e for e in shelf.entries() if e.state is State.BEGUN]
    assert {(e.key, e.kept) for e in begun} == {(BIG, 5), ("someone/model", 7)}


def test_a_refusal_stands_where_it_happened_and_can_be_tried_again(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    hub.refusals[BIG] = HubError("The disk is full.", todo="Free some space; then go on.", kept="3 GiB are kept.")
    window.rows[BIG].press("fetch")
    settle(qtbot, shelf)
    assert window.rows[BIG].error.text == "The disk is full.\n3 GiB are kept. Free some space; then go on."
    assert window.rows[BIG].offered() == ["fit", "retry"]
    window.rows[BIG].press("retry")
    settle(qtbot, shelf)
    assert window.rows[BIG].error.isHidden()


def test_a_gated_repo_leads_to_its_licence_and_takes_a_token(
    qtbot: QtBot,
    window: ModelsDialog,
    shelf: Shelf,
    hub: ScriptedHub,
    tokens: FakeTokens,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Page, token, test, keychain, and the download goes on by itself. A wrong token is kept nowhere."""
    opened: list[str] = []
    typed = iter([("hf_wrong", True), ("hf_good", True)])
    monkeypatch.setattr(dialogs.QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    monkeypatch.setattr(dialogs.QInputDialog, "getText", lambda *args: next(typed))
    hub.refusals[BIG] = GATED
    window.rows[BIG].press("fetch")
    settle(qtbot, shelf)
    row = window.rows[BIG]
    page, token = row.error.buttons()
    page.click()
    assert opened == [f"{hub.endpoint}/{BIG}"]
    token.click()
    settle(qtbot, shelf)
    assert (
        window.error.text == "The hub does not know this token.\nNothing on this computer was changed. Copy it again."
    )
    assert (tokens.kept, hub.token) == ([], None)
    token.click()
    settle(qtbot, shelf)
    assert (tokens.kept, hub.token) == (["hf_good"], "hf_good")
    assert shelf.entry(BIG).state is State.HERE  # type: ignore[union-attr]


def test_without_a_keychain_the_token_is_used_and_the_reason_told(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub, tokens: FakeTokens
) -> None:
    tokens.reason = "this system has no keychain that can be used"
    shelf.use_token("hf_good")
    settle(qtbot, shelf)
    assert hub.token == "hf_good"
    assert "it is not stored: this system has no keychain" in window.error.text


def test_the_keychain_is_asked_once_and_only_for_the_hub(
    qtbot: QtBot, shelf: Shelf, hub: ScriptedHub, tokens: FakeTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking at this computer asks for nothing; HF_TOKEN comes before the keychain."""
    tokens.kept = ["hf_kept"]
    shelf.refresh()
    settle(qtbot, shelf)
    assert tokens.loads == 0
    monkeypatch.setenv("HF_TOKEN", "hf_env")
    shelf.look_at(BIG)
    settle(qtbot, shelf)
    assert (tokens.loads, hub.token) == (0, None)
    monkeypatch.delenv("HF_TOKEN")
    shelf.look_at(BIG)
    shelf.look_at(NINE)
    settle(qtbot, shelf)
    assert (tokens.loads, hub.token) == (1, "hf_kept")


class MemoryKeyring:
    """Poses as the system's keychain. No `KeyringBackend`: keyring lists every subclass, and would use it elsewhere."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = False
        self.bug: Exception | None = None

    def get_password(self, service: str, username: str) -> str | None:
        if self.bug is not None:
            raise self.bug
        if self.broken:
            raise keyring.errors.KeyringLocked("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.bug is not None:
            raise self.bug
        if self.broken:
            raise keyring.errors.PasswordSetError("locked")
        self.kept[service, username] = password


def test_the_token_lives_in_the_systems_keychain_or_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain-text store counts as none, a locked one gives a reason."""
    chain, store = MemoryKeyring(), TokenStore()
    monkeypatch.setattr(keyring, "get_keyring", lambda: chain)
    monkeypatch.setattr(keyring, "get_password", chain.get_password)
    monkeypatch.setattr(keyring, "set_password", chain.set_password)
    monkeypatch.setattr(MemoryKeyring, "__module__", "keyrings.alt.file")
    assert store.save("hf_x") == "this system has no keychain that can be used"
    assert (store.load(), chain.kept) == (None, {})
    monkeypatch.setattr(MemoryKeyring, "__module__", "keyring.backends.macOS")
    assert store.save("hf_x") == ""
    assert store.load() == "hf_x"
    chain.broken = True
    assert store.save("hf_y") == "the keychain refuses (locked)"
    assert store.load() is None
    monkeypatch.setattr(keyring, "get_keyring", keyring.backends.fail.Keyring)
    assert store.refusal()


def test_a_keychain_that_does_not_work_stops_no_download(
    qtbot: QtBot, hub: ScriptedHub, loader: ModelLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: what keyring's backends let through, such as an error of the bus, was a mistake of Pacenote's."""
    chain = MemoryKeyring()
    chain.bug = ConnectionRefusedError("no bus")
    monkeypatch.setattr(MemoryKeyring, "__module__", "keyring.backends.SecretService")
    monkeypatch.setattr(keyring, "get_keyring", lambda: chain)
    monkeypatch.setattr(keyring, "get_password", chain.get_password)
    monkeypatch.setattr(keyring, "set_password", chain.set_password)
    shelf = Shelf(hub, OwnFolders(tmp_path / "models.toml"))
    window = ModelsDialog(shelf, loader)
    qtbot.addWidget(window)
    shelf.fetch(BIG)
    settle(qtbot, shelf)
    entry = shelf.entry(BIG)
    assert entry is not None
    assert (entry.state, entry.error) == (State.HERE, {})
    assert "The system's keychain cannot be read." in window.error.text
    assert TokenStore().save("hf_x") == "the keychain refuses (no bus)"
    chain.bug = ConnectionRefusedError()
    assert TokenStore().save("hf_x") == "the keychain refuses (ConnectionRefusedError)", "was: ()"
    shelf.close()


def test_loading_is_asked_with_target_and_head(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    """A pair as it was found; what does not fit is offered all the same, by name."""
    hub.found = Found((LocalModel("a/b", "a/head", True, 5 * GIB, "none", 4096), LocalModel(BIG, "", False, 1, "", 0)))
    hub.free = 8 * GIB
    shelf.refresh()
    settle(qtbot, shelf)
    asked: list[tuple[str, str, bool]] = []
    window.load_wanted.connect(lambda *args: asked.append(args))
    window.rows["a/b"].press("load")
    assert window.rows[BIG].offered() == ["head", "anyway"]
    window.rows[BIG].press("anyway")
    window.rows[DEMO].press("load")
    assert asked == [("a/b", "a/head", False), (BIG, "", True), ("", "", False)]


def test_a_load_that_was_refused_can_be_had_anyway(
    qtbot: QtBot, window: ModelsDialog, loader: ModelLoader, loading: FakeLoader
) -> None:
    asked: list[tuple[str, str, bool]] = []
    window.load_wanted.connect(lambda *args: asked.append(args))
    fit = Fit(Need(2, 0, 0, 0, 0, 0), 1, 1, 1, "1 byte is free")
    loading.fail = DoesNotFit("It does not fit in memory.", todo="Load it anyway.", fit=fit)
    loader.load(LoadOptions(target="a/b", head="a/h"))
    qtbot.waitUntil(lambda: not window.error.isHidden())
    assert "does not fit" in window.error.text
    window.error.buttons()[0].click()
    assert asked == [("a/b", "a/h", True)]


@pytest.fixture
def loading(window: ModelsDialog, loader: ModelLoader) -> Iterator[FakeLoader]:
    """The window with a thread that loads what the fake says."""
    fake = FakeLoader()
    thread = loader._thread = EngineThread(fake)
    thread.start()
    pump = Pump(thread)
    pump.arrived.connect(loader.on_events)
    yield fake
    thread.close()


def test_after_a_load_that_failed_others_can_be_pressed(
    qtbot: QtBot, window: ModelsDialog, loader: ModelLoader, loading: FakeLoader
) -> None:
    """Was: "Loading ..." stood there and every Load stayed grey until something else happened."""
    loading.fail = KnownError("It is damaged.", todo="Download it again.")
    loader.load(LoadOptions(target="a/b"))
    qtbot.waitUntil(lambda: not window.error.isHidden())
    assert not window._memory.text().startswith("Loading")
    assert window.rows[DEMO]._buttons["load"].isEnabled()


def test_in_use_is_the_model_that_is_although_its_load_was_cancelled_too_late(
    qtbot: QtBot, loader: ModelLoader, loading: FakeLoader
) -> None:
    """Was: the line of the model before it stayed marked."""
    options = [LoadOptions(target="a/first"), LoadOptions(target="a/second")]
    loader.load(options[0])
    qtbot.waitUntil(lambda: loader.info is not None)
    late = Envelope(Ids(loader._numbers.next()), Loaded(loader.info))  # type: ignore[arg-type]
    loader._asked[late.ids.generation] = options[1]
    loader._generation = loader._numbers.next()  # a third one is asked for meanwhile
    loader.on_events([late])
    assert (loader.options, loader.loading) == (options[1], True)
    loader.on_events([Envelope(Ids(loader._generation), LoadFailed(None, "", None, cancelled=True))])
    assert (loader.options, loader.info) == (None, None)


def test_a_load_that_waits_for_a_reply_says_so(qtbot: QtBot, loader: ModelLoader, loading: FakeLoader) -> None:
    """Was: "starting", for as long as the reply took."""
    loader.load(LoadOptions(target="a/first"))
    assert loader.stage == "starting"
    qtbot.waitUntil(lambda: loader.info is not None)
    loader.load(LoadOptions(target="a/second"))
    loader.progress = None
    assert loader.stage == "waits until the reply is written"
    qtbot.waitUntil(lambda: not loader.loading)


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        (" owner/model ", "owner/model"),
        ("https://huggingface.co/owner/model", "owner/model"),
        ("https://mirror/owner/model/tree/main?x=1", "owner/model"),
        ("http://[::1", "http://[::1"),
        ("https://huggingface.co/owner", "https://huggingface.co/owner"),
        ("/a/folder", "/a/folder"),
    ],
)
def test_the_address_of_a_page_is_taken_for_its_repo(typed: str, place: str) -> None:
    """Was: "there is no folder https://..."."""
    assert named(typed) == place


def test_another_model_by_folder_or_repo(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub, tmp_path: Path
) -> None:
    """A folder is loaded and remembered, a repo is fetched, anything else is a sentence."""
    asked: list[tuple[str, str, bool]] = []
    window.load_wanted.connect(lambda *args: asked.append(args))
    window.other.place.setText(str(tmp_path))
    window.other.head.setText("/some/head")
    window.other.add.click()
    settle(qtbot, shelf)
    assert asked == [(str(tmp_path), "/some/head", False)]
    assert ("folder", str(tmp_path)) in hub.calls
    window.other.place.setText("someone/model")
    window.other.add.click()
    settle(qtbot, shelf)
    assert ("download", "someone/model") in hub.calls
    window.other.place.setText("/nowhere/at/all")
    window.other.add.click()
    assert "There is no folder /nowhere/at/all" in window.error.text
    assert window.other.place.text() == "/nowhere/at/all", "what was typed stays to be mended"


def test_own_folders_survive_and_a_damaged_list_is_an_empty_one(tmp_path: Path) -> None:
    own = OwnFolders(tmp_path / "models.toml")
    own.add(tmp_path)
    own.add(tmp_path)
    assert OwnFolders(tmp_path / "models.toml").load() == [tmp_path]
    (tmp_path / "models.toml").write_text("not [toml")
    assert own.load() == []


def test_what_cannot_be_used_says_why_and_is_not_loaded(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    """A repo can be fetched again; a folder is the user's to mend."""
    hub.found = Found(unusable=(Unusable("a/broken", "model.safetensors is damaged."), Unusable("/my/own", "Cut off.")))
    shelf.refresh()
    settle(qtbot, shelf)
    assert (window.rows["a/broken"].offered(), window.rows["/my/own"].offered()) == (["fetch"], [])
    assert "damaged" in window.rows["a/broken"].text


def test_closing_pauses_downloads_and_keeps_them(qtbot: QtBot, shelf: Shelf, hub: ScriptedHub) -> None:
    """The window ends; what arrived is on disk, and nothing runs on."""
    held(qtbot, shelf, hub, BIG)
    shelf.close()
    assert hub.found.begun[0].repo == BIG
    assert not [t for t in threading.enumerate() if t.name.startswith("job ")]


def test_a_bug_in_a_job_reaches_the_crash_log(qtbot: QtBot, shelf: Shelf, hub: ScriptedHub) -> None:
    hub.refusals[BIG] = ZeroDivisionError("a bug")  # type: ignore[assignment]
    with qtbot.waitSignal(shelf.bug) as caught:
        shelf.fetch(BIG)
    assert "ZeroDivisionError: a bug" in caught.args[0]
    settle(qtbot, shelf)


def test_a_look_asked_for_while_one_fails_is_not_forgotten(
    qtbot: QtBot, shelf: Shelf, hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: a download that ended meanwhile stood as begun until something else made the window look again."""
    failing = threading.Event()

    def fails(*args: object) -> Found:
        failing.wait(5)
        monkeypatch.undo()
        raise ZeroDivisionError("a bug")

    hub.found = Found((LocalModel("a/b", "", False, GIB, "none", 4096),))
    monkeypatch.setattr(hub, "local", fails)
    shelf.refresh()
    shelf.refresh()
    failing.set()
    settle(qtbot, shelf)
    assert shelf.entry("a/b") is not None


def test_jobs_run_once_per_key_and_tell_on_the_gui_thread(qtbot: QtBot) -> None:
    jobs, threads, go = Jobs(), set(), threading.Event()
    jobs.told.connect(lambda key, value: threads.add(threading.get_ident()))

    def call(stop: threading.Event, tell: object) -> None:
        tell("x")  # type: ignore[operator]
        go.wait(5)

    assert jobs.start("a", call)
    assert not jobs.start("a", call)
    with qtbot.waitSignal(jobs.done):
        go.set()
    assert not jobs.running("a")
    jobs.close()
    assert not jobs.start("a", call)


def test_words_for_progress_and_facts() -> None:
    step = DownloadProgress(Step.FETCHING, GIB, 4 * GIB, 100.0 * 2**20, 30.0, 1, 2, "It hangs. Trying again in 3 s.")
    assert progress_words(step) == (
        "1.00 GiB of 4.00 GiB · 100 MiB/s · about 30 s left · 1 of 2 files · It hangs. Trying again in 3 s."
    )
    assert progress_words(DownloadProgress(Step.HEAD, 1 << 20, 2 << 20)).endswith(
        "fetching the head out of the original"
    )
    looking = DownloadProgress(Step.LOOKING, trouble="The hub has a fault. Trying again in 1 s.")
    assert progress_words(looking) == "Looking at the repo · The hub has a fault. Trying again in 1 s."
    here = Entry("a/b", "a/b", State.HERE, size=GIB, quantization="none", has_head=False)
    assert facts(here, in_use=True) == ["in use", "1.00 GiB", "16 bit", "no MTP head: plain decoding"]


def test_a_damaged_catalogue_is_told_once_and_what_is_here_can_be_loaded(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: the window listed the demo pair only, though models were here."""
    hub.found = Found((LocalModel("a/b", "", False, GIB, "none", 4096),))

    def damaged() -> None:
        raise KnownError("The catalogue cannot be read.", todo="Install Pacenote again.")

    monkeypatch.setattr(hub, "catalogue", damaged)
    shelf.refresh()
    settle(qtbot, shelf)
    assert "The catalogue cannot be read." in window.error.text
    assert set(window.rows) == {DEMO, "a/b"}
    assert window.rows["a/b"].offered() == ["load"]
    window.error.hide()
    shelf.refresh()
    settle(qtbot, shelf)
    assert window.error.isHidden()


def test_every_model_stands_once_and_in_one_place(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    """A broken one of the catalogue, and one that is here while its head is fetched."""
    hub.found = Found((LocalModel(BIG, "", False, GIB, "", 0),), (Unusable(NINE, "A shard is missing."),))
    shelf.refresh()
    settle(qtbot, shelf)
    held(qtbot, shelf, hub, BIG)
    entries = shelf.entries()
    assert len({e.key for e in entries}) == len(entries)
    assert [e.key for e in entries[:3]] == [DEMO, NINE, BIG]
    assert [e.state for e in entries[:3]] == [State.HERE, State.BROKEN, State.BUSY]
    assert [title for title, _ in window.list.shown] == sorted(
        (t for t, _ in window.list.shown), key=lambda t: t != rowlist.HERE
    )


def test_no_line_is_cut_off_however_narrow_the_window_is(
    qtbot: QtBot, window: ModelsDialog, shelf: Shelf, hub: ScriptedHub
) -> None:
    """Was: after the list had changed, a fit of two lines covered the line above it and lost its second one."""
    window.resize(window.minimumWidth(), 500)
    hub.free, hub.found = GIB, Found(begun=(Begun("someone/model", 7),))
    shelf.refresh()
    settle(qtbot, shelf)
    for entry in shelf.entries():
        if entry.state is State.AWAY:
            shelf.look_at(entry.key)
    settle(qtbot, shelf)

    def cut_off() -> list[str]:
        layouts = {key: (row, row.layout()) for key, row in window.rows.items()}
        return [k for k, (row, inner) in layouts.items() if inner and row.height() < inner.heightForWidth(row.width())]

    qtbot.waitUntil(lambda: not cut_off(), timeout=5000)
