"""One self-contained HTML page: it opens offline, and nothing in it comes from elsewhere."""

import re
from html import escape
from typing import NamedTuple

_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --soft: #5a5a5a; --back: #ffffff; --line: #8884; --keep: 100%; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --soft: #a8a8a8; --back: #16181c; --keep: 72%; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem;
       color: var(--text); background: var(--back); }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.2rem; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
h3 { margin: 1.5rem 0 0.5rem; }
nav a { margin-right: 1rem; color: inherit; }
.soft, .note, figcaption { color: var(--soft); font-size: 0.9rem; overflow-wrap: anywhere; }
.answer { font-size: 1.25rem; line-height: 1.4; margin: 0.6rem 0; }
figure { margin: 1.5rem 0; }
figure svg { width: 100%; max-width: 60rem; min-width: 34rem; height: auto; display: block; margin: auto; }
figure svg text { fill: currentColor; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { position: sticky; top: 0; background: var(--back); }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.left { text-align: left; }
summary { cursor: pointer; }
@media (max-width: 40rem) {
  .stacked thead { display: none; }
  .stacked tr, .stacked td { display: block; text-align: left; white-space: normal; }
  .stacked tr { border-bottom: 2px solid var(--line); }
  .stacked td { border: 0; padding: 0.15rem 0; }
  .stacked td:empty { display: none; }
  .stacked td::before { content: attr(data-column) ": "; color: var(--soft); }
}
"""
_COLOUR = re.compile(r"(?<=[ ;\"])(fill|stroke): (#[0-9a-f]{6})")
_INK, _PAPER = "#000000", "#ffffff"


class Heading(NamedTuple):
    """The first lines of a page, as text."""

    title: str
    """Names the experiment."""
    headline: str
    facts: str
    """Runs and seeds, date, version, commit and command."""


def figure_html(svg: str, caption: str) -> str:
    """Return a figure for the page: black and white become the page's ink and paper, colours lighter on dark paper."""

    def follow(match: re.Match[str]) -> str:
        name, colour = match.groups()
        if colour in (_INK, _PAPER):
            return f"{name}: {'currentColor' if colour == _INK else 'var(--back)'}"
        return f"{name}: color-mix(in srgb, {colour} var(--keep), white)"

    return (
        f"<figure><div class='wide'>{_COLOUR.sub(follow, svg)}</div><figcaption>{escape(caption)}</figcaption></figure>"
    )


def page(heading: Heading, comparison: str, sections: list[tuple[str, str]]) -> str:
    """Return the page.

    Args:
        heading: Title, headline and facts.
        comparison: The table that the headline is based on, as HTML that is escaped already; may be empty.
        sections: Titles as text, and what stands below them as HTML that is escaped already.
    """
    anchors = [re.sub(r"\W+", "-", title.lower()).strip("-") for title, _ in sections]
    links = "".join(
        f'<a href="#{anchor}">{escape(title)}</a>' for anchor, (title, _) in zip(anchors, sections, strict=True)
    )
    body = "".join(
        f'<section><h2 id="{anchor}">{escape(title)}</h2>{html}</section>'
        for anchor, (title, html) in zip(anchors, sections, strict=True)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(heading.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(heading.title)}</h1>
<p class="answer">{escape(heading.headline)}</p>
{comparison}
<p class="soft">{escape(heading.facts)}</p>
<nav>{links}</nav>
{body}
</body>
</html>
"""
