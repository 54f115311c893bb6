"""The decision: which verify kernel is engaged at which widths, and why. Fails closed."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import ExactnessState, Verdict
from engine.exactness.kernels import Stock
from engine.exactness.probe import ProbeResult, probe
from engine.target import Target


def decide(target: Target, widths: Sequence[int], allow_inexact: bool) -> Verdict:
    """Probe and engage a kernel on `target`, or decline. Without a passing width there is no speculation."""
    kernel = Stock()
    target.verify_kernel = kernel
    result = probe(target, widths)
    if result.passed:
        return Verdict(
            ExactnessState.EXACT_STOCK,
            kernel.name,
            _words(result),
            widths=result.passed,
            inputs=result.inputs,
            seconds=result.seconds,
        )
    if allow_inexact:
        reason = f"{_words(result)} You chose to speculate all the same: text may differ from classic decode."
        return Verdict(
            ExactnessState.INEXACT_ALLOWED,
            kernel.name,
            reason,
            widths=tuple(widths),
            inputs=result.inputs,
            seconds=result.seconds,
        )
    return Verdict(
        ExactnessState.DECLINED,
        "",
        f"{_words(result)} Replies are written by classic decode.",
        inputs=result.inputs,
        seconds=result.seconds,
    )


def _words(result: ProbeResult) -> str:
    parts = []
    if result.passed:
        parts.append(f"Block = chain on {result.inputs} inputs at widths {', '.join(map(str, result.passed))}.")
    if result.failures:
        width, what = result.failures[0]
        parts.append(f"At width {width} the bytes differ: {what}.")
    return " ".join(parts)
