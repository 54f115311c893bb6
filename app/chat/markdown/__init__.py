"""Markdown on screen, block by block, safe for what a model may write.

`split` finds blocks, `writer` turns prose into a document, `body` keeps the widgets of one reply.
"""
