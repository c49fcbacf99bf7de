"""Explanations to look at: terminal and HTML."""

from likewise.explain.render.html import to_html
from likewise.explain.render.numbers import printed
from likewise.explain.render.terminal import to_console, to_text

__all__ = ["printed", "to_console", "to_html", "to_text"]
