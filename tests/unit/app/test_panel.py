"""The panel's figures agree with the engine's, are drawn at most ten times a second, and cost nothing when hidden."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app import figures
from app.panel.badge import WORDS, Badge, explain
from app.panel.live import INTERVAL_MS, Strip
from app.panel.meter import CLASSIC_SAMPLES, Meter, stats_dict
from app.panel.panel import Panel
from app.panel.words import STAGES, classic_text, drafter_text, speedup_text, why_text, width_text
from app.replay import DEMO_INFO, ScriptedEngine, stats_of
from app.services import Services
from app.window import MainWindow
from engine import (
    EngineInfo,
    ExactnessState,
    KnownError,
    Message,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Speculation,
    Verdict,
    time_parts,
)
from tests.unit.app.fakes import FakeLoader


@st.composite
def rounds(draw: st.DrawFn) -> list[Round]:
    made = []
    for index in range(draw(st.integers(1, 30))):
        width = draw(st.integers(1, 8))
        accepted = draw(st.integers(0, width - 1))
        cut = draw(st.integers(0, accepted))
        ms = [draw(st.floats(0, 50, allow_nan=False)) for _ in range(5)]
        made.append(Round(index, 0, width, width - 1, accepted, accepted + 1 - cut, cut, *ms, tokens=()))
    return made


@given(rounds())
def test_live_figures_are_the_final_ones(made: list[Round]) -> None:
    """What the panel counted from the rounds is what the engine says at the end, to the last digit."""
    meter = Meter()
    meter.prefill(PrefillProgress(12, 12, 0, 0.021))
    for event in made:
        meter.round(event)
    live, final = meter.stats, stats_of(made, 12)
    for name, value in dataclasses.asdict(final).items():
        assert getattr(live, name) == (value if isinstance(value, tuple) else pytest.approx(value)), name
    assert live.tokens == 1 + live.accepted + live.rounds - live.cut
    assert live.tokens == 1 + sum(r.emitted for r in made)
    assert sum(stage.share for stage in meter.stages()) == pytest.approx(1.0) or not sum(r.total_ms for r in made)
    assert sum(stage.ms for stage in meter.stages()) == pytest.approx(sum(r.total_ms for r in made) / len(made))
    meter.finish(final)
    assert meter.stats is final


def test_the_speed_up_is_told_only_after_enough_classic_rounds() -> None:
    meter = Meter()
    fast = Round(0, 0, 3, 2, 2, 3, 0, 1.0, 38.0, 0.0, 1.0, 0.0, tokens=(1, 2, 3))
    classic = Round(0, 0, 1, 0, 0, 1, 0, 0.0, 40.0, 0.0, 0.0, 0.0, tokens=(1,))
    for _ in range(CLASSIC_SAMPLES - 1):
        meter.round(classic)
    meter.round(fast)
    assert meter.speedup() is None
    meter.begin()
    meter.round(classic)
    assert meter.speedup() is None, "nothing was drafted in this reply"
    assert speedup_text(None, parked=meter.mostly_parked) == "classic speed"
    for _ in range(1000):
        meter.round(fast)
    assert meter.speedup() == pytest.approx(3.0, rel=0.01)
    meter.new_model()
    assert meter.speedup() is None, "another model has another classic speed"


def test_figures_that_are_stored_can_be_read_again() -> None:
    stats = stats_of([Round(0, 0, 3, 2, 1, 2, 0, 1, 2, 3, 4, 5, tokens=(1, 2))], 9)
    kept = stats_dict(stats)
    meter = Meter()
    meter.show_finished({**json.loads(json.dumps(kept)), "of_a_newer_program": 1})
    assert meter.stats == stats
    meter.show_finished(None)
    assert meter.stats.rounds == 0
    assert kept["acceptance_rate"] == 0.5


@pytest.fixture
def meter() -> Meter:
    return Meter()


def play(meter: Meter, count: int) -> None:
    rng = random.Random(1)
    engine = ScriptedEngine(lambda _: ("", ""))
    for index in range(count):
        meter.round(engine._round(Request((Message("user", "x"),)), rng, index, index, 99))


def test_it_draws_at_most_ten_times_a_second_and_rests_after(qtbot: QtBot, meter: Meter) -> None:
    assert 100 <= INTERVAL_MS <= 200
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.set_info(DEMO_INFO)
    panel.show()
    panel.set_live(True)
    before = panel.draws
    play(meter, 500)
    assert panel.draws == before, "a round draws nothing by itself"
    qtbot.waitUntil(lambda: panel.draws == before + 1)
    panel.set_live(False)
    assert not panel._timer.isActive()


def test_hidden_it_does_nothing(qtbot: QtBot, meter: Meter) -> None:
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.set_live(True)
    play(meter, 20)
    panel.tick()
    assert panel.draws == 0
    assert not panel._timer.isActive()
    panel.show()
    assert panel._timer.isActive()
    assert panel.draws == 1
    panel.hide()
    assert not panel._timer.isActive()
    panel.set_live(False)


def test_all_figures_are_there(qtbot: QtBot, meter: Meter) -> None:
    panel, strip = Panel(meter), Strip(meter)
    for view in (panel, strip):
        qtbot.addWidget(view)
        view.set_info(DEMO_INFO)
        view.show()
    play(meter, 64)
    panel.tick()
    strip.tick()
    stats = meter.stats
    assert panel.speed.text() == strip.speed.text() == figures.speed(stats.tokens_per_second)
    assert panel.acceptance.text() == figures.percent(stats.acceptance_rate)
    assert figures.percent(stats.acceptance_rate) in strip.acceptance.text()
    assert f"{stats.mean_acceptance_length:.2f}" in panel.length.text()
    assert panel.stage_labels["verify"][0].text() == f"{stats.verify_ms / stats.rounds:.1f}"
    shares = [int(share.text().split()[0]) for _, share in panel.stage_labels.values()]
    assert abs(sum(shares) - 100) <= 2
    assert panel.badge.text() == "Exact · forced qmv"
    assert "4-bit group 64, 1.5 MiB (dense 5.1 MiB)" in panel.drafter.text()
    assert "4,096" in panel.context.text()
    panel.grab()
    strip.grab()


def test_nothing_is_claimed_before_a_reply(qtbot: QtBot, meter: Meter) -> None:
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(None)
    assert (panel.speed.text(), panel.acceptance.text()) == ("–", "–")
    assert panel.badge.text() == "No model"
    panel.grab()


def test_a_park_says_why_until_it_ends(meter: Meter) -> None:
    meter.note(Notice("park", "Parked: block size 3 measures 0.94x classic here."))
    assert "0.94x" in width_text(meter, DEMO_INFO)
    meter.note(Notice("cache", "Read again from the start."))
    assert "0.94x" in width_text(meter, DEMO_INFO), "another kind of notice does not hide the reason"
    meter.note(Notice("unpark", "Trying again."))
    play(meter, 1)
    assert width_text(meter, DEMO_INFO) == "3: one bonus token and 2 drafts"


def test_without_a_drafter_the_reason_is_shown() -> None:
    bare = dataclasses.replace(DEMO_INFO, drafter=None, drafter_reason="The head has another hidden size.")
    assert "another hidden size" in width_text(Meter(), bare)
    assert drafter_text(bare) == "None"
    assert "another hidden size" in explain(bare)


@pytest.mark.parametrize("state", list(ExactnessState))
def test_every_state_has_its_word_and_its_reason(qtbot: QtBot, state: ExactnessState) -> None:
    info = dataclasses.replace(
        DEMO_INFO,
        verdict=Verdict(state, "stock", "Because of <this>.", (2, 3), inputs=24, cost=1.25, seconds=3.0, cached=True),
    )
    badge = Badge()
    qtbot.addWidget(badge)
    badge.show_info(info)
    assert badge.text().startswith(WORDS[state].word)
    assert (WORDS[state].role == "good") == (state in (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED))
    text = explain(info)
    for part in ("Because of <this>.", "24 inputs", "1.25x", "earlier start", "not a proof"):
        assert part in text
    badge.show()
    badge.open_popover()
    assert badge.popover is not None
    assert badge.popover.label.text() == text
    badge.popover.close()


def test_off_draws_only_classic_rounds() -> None:
    engine = ScriptedEngine(lambda _: ("", ""))
    request = Request((Message("user", "x"),), speculation=Speculation.OFF)
    made = engine._round(request, random.Random(1), 0, 0, 9)
    assert (made.width, made.drafted, made.emitted) == (1, 0, 1)


def test_numbers_are_written_one_way() -> None:
    assert figures.size(228 << 20) == "228 MiB"
    assert figures.size(int(1.5 * (1 << 30))) == "1.50 GiB"
    assert figures.parameters(19_900_000) == "19.9 M"
    assert figures.parameters(27_000_000_000) == "27.0 B"
    assert figures.percent(0.666) == "67 %"
    assert figures.ratio(1.518) == "1.52x"
    assert figures.seconds(75.2) == "1 min 15 s"
    assert figures.count(1, "token") == "1 token"
    assert figures.count(12345, "token") == "12,345 tokens"


def test_the_drafter_says_what_is_in_force_from_where_and_the_bytes_of_each() -> None:
    made = DEMO_INFO.drafter
    assert made is not None
    head = dataclasses.replace(
        made, representation="4-bit group 64", bytes=1 << 20, packed_bytes=1 << 20, dense_bytes=4 << 20
    )
    for by in ("default", "setting", "environment (PACENOTE_MTP_QUANTIZE_DRAFTER=1)", "checkpoint"):
        info = dataclasses.replace(DEMO_INFO, drafter=dataclasses.replace(head, decided_by=by))
        assert drafter_text(info) == f"4-bit group 64, 1.0 MiB (dense 4.0 MiB), by {by}"
    dense = dataclasses.replace(head, representation="dense bfloat16", bytes=4 << 20, decided_by="setting")
    info = dataclasses.replace(DEMO_INFO, drafter=dense)
    assert drafter_text(info) == "dense bfloat16, 4.0 MiB (quantized 1.0 MiB), by setting"


def test_the_acceptance_alarm_stays_on_the_panel_until_it_is_over(qtbot: QtBot, meter: Meter) -> None:
    """Over the next replies too, and gone with the next model."""
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(DEMO_INFO)
    meter.note(Notice("drafter", "Only 7 % of the last 200 drafts were accepted."))
    meter.begin()
    panel.tick()
    assert "Only 7 %" in panel.drafter.text()
    assert drafter_text(DEMO_INFO) in panel.drafter.text()
    meter.note(Notice("drafter", "Acceptance is back: 80 % of the last 200 drafts."))
    panel.tick()
    assert "Only 7 %" not in panel.drafter.text()
    assert "Acceptance is back" in panel.drafter.text()
    meter.new_model()
    panel.tick()
    assert panel.drafter.text() == drafter_text(DEMO_INFO)


def test_the_classic_speed_stands_beside_and_says_where_it_is_from(qtbot: QtBot, meter: Meter) -> None:
    """From the load until enough classic steps were seen; of another model nothing is left."""
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    meter.new_model(40.0)
    fast = Round(0, 0, 3, 2, 2, 3, 0, 1.0, 38.0, 0.0, 1.0, 0.0, tokens=(1, 2, 3))
    meter.prefill(PrefillProgress(5, 5, 0, 0.1))
    meter.round(fast)
    panel.tick()
    assert panel.classic.text() == "classic about 25.0"
    assert panel.speedup.text() == "about 3.00x classic"
    assert "while the model was loaded" in panel.classic.toolTip()
    for _ in range(CLASSIC_SAMPLES):
        meter.round(Round(0, 0, 1, 0, 0, 1, 0, 0.0, 20.0, 0.0, 0.0, 0.0, tokens=(1,)))
    panel.tick()
    assert panel.classic.text() == "classic about 50.0"
    assert f"last {CLASSIC_SAMPLES} classic steps" in panel.classic.toolTip()
    meter.new_model()
    panel.tick()
    assert panel.classic.text() == classic_text(None) == "classic not measured"


def test_the_width_comes_with_its_reason(meter: Meter) -> None:
    """As long as it holds: a park has its own, and a new reply begins without one."""
    meter.note(Notice("width", "3 rows: expected to give 2.31 tokens in 54.1 ms, 1.42x classic."))
    play(meter, 1)
    assert "1.42x classic" in width_text(meter, DEMO_INFO)
    meter.note(Notice("park", "Parked: costs more than it gives."))
    assert width_text(meter, DEMO_INFO) == "Parked: costs more than it gives."
    meter.note(Notice("unpark", "Trying again."))
    assert "1.42x" not in width_text(meter, DEMO_INFO)
    meter.note(Notice("width", "3 rows: again."))
    meter.begin()
    play(meter, 1)
    assert "again" not in width_text(meter, DEMO_INFO)


def test_why_this_speed_is_told_of_a_finished_reply(qtbot: QtBot, meter: Meter) -> None:
    """Restored and read tokens, every stage, and what was parked, summing to the time the reply took."""
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(DEMO_INFO)
    assert not panel.why.isEnabled()
    meter.prefill(PrefillProgress(100, 100, 60, 0.5))
    play(meter, 40)
    panel.tick()
    assert not panel.why.isEnabled(), "its figures are not complete yet"
    meter.finish(meter.stats)
    panel.tick()
    panel.why.click()
    assert panel.popover is not None
    text = panel.popover.label.text()
    panel.popover.close()
    assert text == why_text(meter)
    assert "prefill: 0.50 s" in text
    assert "40 of 100 prompt tokens read, 60 restored" in text
    for stage in ("draft_block", "verify forward", "accept hook", "rollback", "host", "of it parked"):
        assert f"\n{stage}: " in text
    assert "A round took" in text


def test_every_figure_has_its_plain_words(qtbot: QtBot, meter: Meter) -> None:
    """Nothing on the panel needs the vocabulary of the field to be understood."""
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(DEMO_INFO)
    figures_ = [panel.speed, panel.classic, panel.acceptance, panel.length, panel.positions, panel.bar, panel.round_ms]
    figures_ += [panel.sparkline, panel.width_label, panel.drafter, panel.context, panel.kept, panel.memory]
    figures_ += [panel.why, panel.badge, *(label for pair in panel.stage_labels.values() for label in pair)]
    assert all(len(widget.toolTip()) > 20 for widget in figures_), [w.toolTip() for w in figures_]
    assert {tip for _, tip in STAGES.values()} == {value.toolTip() for value, _ in panel.stage_labels.values()}
    assert "24 inputs" in panel.badge.toolTip()
    assert panel.memory.text() == figures.size(DEMO_INFO.target_bytes + 1_540_000)
    assert "Drafter: 1.5 MiB" in panel.memory.toolTip()


def test_the_panel_can_be_docked_and_undocked_and_stays_so(qtbot: QtBot, window: MainWindow) -> None:
    """In a window of its own it is there in a narrow window too; at the next start it is where it was."""
    assert not window.dock.isFloating()
    window.dock.float.click()
    assert window.dock.isFloating()
    assert window.dock.float.text() == "Dock"
    window.resize(700, 600)
    qtbot.waitUntil(lambda: window.width() < 900)
    assert window.panel.isVisible()
    assert window.strip.isHidden()
    window.toggle_panel()
    assert not window.panel.isVisible()
    window.toggle_panel()
    window.dock.float.click()
    assert not window.panel.isVisible(), "docked again, there is no room for it"
    assert not window.strip.isHidden()
    window.resize(1100, 700)
    window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, window.dock)
    window.save_geometry()
    window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, window.dock)
    window.restore_geometry()
    assert window.dockWidgetArea(window.dock) is Qt.DockWidgetArea.LeftDockWidgetArea


@pytest.mark.parametrize("floating", [False, True])
def test_the_probe_can_be_run_again_from_the_badge(
    qtbot: QtBot, window: MainWindow, services: Services, floating: bool
) -> None:
    """The model is loaded again with nothing kept; afterwards no setting waits for a reload."""
    if floating:
        window.dock.float.click()
    badge = window.panel.badge
    badge.open_popover()
    assert badge.popover is not None
    assert badge.popover.button.text() == "Run again"
    assert "compares anew, which took 2.4 s" in badge.popover.button.toolTip()
    former = services.loader.info
    assert services.loader.options is not None
    assert not services.loader.options.probe_again
    with qtbot.waitSignal(services.loader.changed):
        badge.popover.button.click()
        assert services.loader.loading
    assert services.loader.options.probe_again
    assert services.loader.info is not former or services.loader.info == former
    assert not services.reload_pending()


def test_the_strip_offers_the_probe_as_well_and_a_failed_one_leaves_the_model(
    qtbot: QtBot, window: MainWindow, services: Services, loader: FakeLoader
) -> None:
    loader.fail = KnownError("The model is gone.", todo="Open another one.")
    former = services.loader.info
    with qtbot.waitSignal(services.loader.failed):
        window.strip.badge.again.emit()
    assert services.loader.info is former
    window.reload_model()
    qtbot.waitUntil(lambda: not services.loader.loading)
    assert services.loader.options is not None
    assert not services.loader.options.probe_again, "it is asked for once"


@pytest.mark.parametrize("info", [None, dataclasses.replace(DEMO_INFO, drafter=None, drafter_reason="There is none.")])
def test_where_nothing_can_be_probed_nothing_offers_it(qtbot: QtBot, info: EngineInfo | None) -> None:
    badge = Badge()
    qtbot.addWidget(badge)
    badge.show_info(info)
    badge.show()
    badge.open_popover()
    assert badge.popover is not None
    assert badge.popover.button.isHidden()
    badge.popover.close()


def test_a_decline_of_wide_blocks_does_not_hide_the_one_in_use(meter: Meter) -> None:
    """ "Blocks of more than 5 rows were not found exact" once stood there in place of the width for the whole reply."""
    meter.note(Notice("decline", "Blocks of more than 5 rows were not found exact here; 5 are used."))
    assert width_text(meter, DEMO_INFO).startswith("Blocks of more than 5"), "nothing was drafted so far"
    meter.note(Notice("width", "5 rows: expected to give 3 tokens."))
    meter.round(Round(0, 9, 5, 4, 4, 5, 0, 1.0, 38.0, 0.0, 1.0, 0.0, tokens=(1, 2, 3, 4, 5)))
    told = width_text(meter, DEMO_INFO).splitlines()
    assert told[0] == "5: one bonus token and 4 drafts"
    assert told[1:] == [
        "5 rows: expected to give 3 tokens.",
        "Blocks of more than 5 rows were not found exact here; 5 are used.",
    ]


def test_a_look_at_classic_does_not_pass_for_a_park(meter: Meter) -> None:
    """The pace measures a classic step now and then. For an eighth of a second the panel once said "classic decode"."""
    meter.round(Round(0, 9, 3, 2, 2, 3, 0, 1.0, 38.0, 0.0, 1.0, 0.0, tokens=(1, 2, 3)))
    meter.round(Round(1, 12, 1, 0, 0, 1, 0, 0.0, 38.0, 0.0, 0.0, 0.0, tokens=(1,)))
    assert width_text(meter, DEMO_INFO).startswith("3: one bonus token and 2 drafts; now and then a classic step")
    meter.begin()
    meter.round(Round(0, 9, 1, 0, 0, 1, 0, 0.0, 38.0, 0.0, 0.0, 0.0, tokens=(1,)))
    assert width_text(meter, DEMO_INFO) == "1: classic decode"


def test_where_nothing_can_be_drafted_no_drafts_are_promised(qtbot: QtBot, meter: Meter) -> None:
    """Without a head, or declined, "no drafts yet" was once a promise that nobody keeps."""
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    declined = dataclasses.replace(DEMO_INFO, verdict=Verdict(ExactnessState.DECLINED, "", "Because."))
    for info, told in (
        (DEMO_INFO, "no drafts yet"),
        (declined, "nothing is drafted"),
        (dataclasses.replace(DEMO_INFO, drafter=None), "nothing is drafted"),
    ):
        panel.set_info(info)
        assert panel.length.text() == told


@given(rounds(), st.floats(0, 20))
def test_why_this_speed_sums_to_the_whole(made: list[Round], prefill: float) -> None:
    """Parts that are not inside others; the whole is told with them."""
    meter = Meter()
    meter.finish(dataclasses.replace(stats_of(made, 12), prefill_seconds=round(prefill, 9)))
    stats = meter.stats
    parts = [part for part in time_parts(stats) if not part.of_which]
    whole = stats.prefill_seconds + stats.decode_seconds
    assert sum(part.seconds for part in parts) == pytest.approx(whole, abs=1e-9)
    assert sum(part.share for part in parts) == pytest.approx(1.0) or not whole
    assert why_text(meter).splitlines()[-1] == f"in all: {whole:.2f} s"


def test_the_badge_pads_only_itself(qtbot: QtBot) -> None:
    """Its style once moved the text of the button in its popover."""
    badge = Badge()
    qtbot.addWidget(badge)
    badge.show_info(DEMO_INFO)
    badge.show()
    badge.open_popover()
    assert badge.popover is not None
    assert badge.styleSheet().startswith(f"QPushButton#{badge.objectName()} ")
    badge.popover.close()
