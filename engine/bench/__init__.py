"""The benchmark: arms of one loaded pair, interleaved at random, compared pair by pair, with proof and record.

In the order data walks through: `prompts`, `rig` (one pair made measurable), `arms`, `design` (order), `trials`
(running), `statistics`, `equality`, `environment`, `presets`, `record`, `cli`.
`compare` reads two records; `check` is the resumable equality run.
"""

FORCED_QMV = "forced-qmv"
"""Verify kernels against stock; see `candidates`."""
PRESETS = ("mtp", "pace", "pace-alone", "quantized-drafter", "kernels", "shortlist", "classic-vs-mlx-lm", FORCED_QMV)
"""FORCED_QMV and the names of `presets.PRESETS`, here because importing that module takes seconds."""
SETS = ("code", "prose", "chat", "maths")
"""Prompt sets in resources/prompts, three prompts each."""
CONTEXTS = (100, 1000, 4000)
"""Prompt lengths of `--context` when none is named."""
BENCH_TOKENS, CHECK_TOKENS = 64, 200
"""Tokens per reply when nothing else is asked for: speed, equality."""
