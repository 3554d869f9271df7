"""One self-contained HTML page: it opens offline, and nothing in it comes from elsewhere."""

import re
from html import escape

_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --soft: #5a5a5a; --back: #ffffff; --line: #8884; --card: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --soft: #a8a8a8; --back: #16181c; --card: #f4f4f4; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: var(--text); background: var(--back); }
h1 { margin-bottom: 0.2rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
h3 { margin: 1.5rem 0 0.5rem; }
nav a { margin-right: 1rem; color: inherit; }
.soft, .note, figcaption { color: var(--soft); font-size: 0.9rem; }
.answer { font-size: 1.25rem; line-height: 1.4; }
figure { margin: 1.5rem 0; background: var(--card); border-radius: 8px; padding: 0.5rem; }
figure figcaption { color: #555; padding: 0 0.5rem; }
figure svg { width: 100%; max-width: 60rem; height: auto; display: block; margin: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { position: sticky; top: 0; background: var(--back); }
.right { text-align: right; font-variant-numeric: tabular-nums; }
.left { text-align: left; }
"""


def page(answer: str, heading: str, sections: list[tuple[str, str]]) -> str:
    """Return the page.

    Args:
        answer: The first thing to read, as text.
        heading: What it rests on, as text.
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
<title>bootdqn: who explores best?</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Who explores best?</h1>
<p class="soft">{escape(heading)}</p>
<p class="answer">{escape(answer)}</p>
<nav>{links}</nav>
{body}
</body>
</html>
"""
