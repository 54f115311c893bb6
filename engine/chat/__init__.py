"""Text in, tokens out, and back: templates, streaming text, stop strings, reasoning, prompt planning.

No Qt, no MLX and no transformers here: importing this package takes tens of milliseconds.
"""
