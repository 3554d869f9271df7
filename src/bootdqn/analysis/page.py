"""One self-contained HTML page: it opens offline, and nothing in it comes from elsewhere."""

from html import escape
from pathlib import Path

from bootdqn.analysis.deep_sea import COLUMNS, Result, cells, table_rows
from bootdqn.analysis.figures import episodes_to_solve, to_svg
from bootdqn.common.algorithms import algorithm
from bootdqn.common.files import write_text_atomically

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
figure { margin: 1.5rem 0; background: white; border-radius: 8px; padding: 0.5rem; }
figcaption { color: #555; font-size: 0.9rem; padding: 0 0.5rem; }
figure svg { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.6rem; text-align: right; border-bottom: 1px solid #8884; }
th:nth-child(2), td:nth-child(2), th:last-child, td:last-child { text-align: left; }
.answer { font-size: 1.2rem; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e8e8e8; } }
"""


def write_page(results: list[Result], path: Path) -> Path:
    """Write the page about DeepSea `results` to `path` and return it."""
    caps = ", ".join(f"{cap:,}" for cap in sorted({result.cap for result in results}))
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in table_rows(results))
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>DeepSea: who explores best?</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>DeepSea: who explores best?</h1>
<p class="answer">{escape(answer(results))}</p>
<p>One treasure, N steps to the right of the start; every step to the right costs a little, and one wrong step loses
it. An agent that follows the rewards it sees never finds it. Runs stop at {caps} episodes.</p>
<figure>{to_svg(episodes_to_solve(results))}
<figcaption>Each dot is a seed, a cross one that did not solve it before the cap; bars and lines are means over seeds,
with a triangle (▲) where the mean is only a lower bound.</figcaption></figure>
<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>
<p>A run is <em>solved</em> at the first episode at which fewer than 90&nbsp;% of its episodes so far were bad and at
least 10 were good (bsuite's rule with a minimum; bsuite's own has none, and the table counts the runs where the two
differ). A run that did not solve it counts with its cap, so a mean marked &ge; is a lower bound.</p>
</body>
</html>
"""
    write_text_atomically(path, page)
    return path


def answer(results: list[Result]) -> str:
    """Say which algorithm did best at the largest size, and on how much evidence."""
    largest = max(result.size for result in results)
    ranked = sorted(
        (cell for cell in cells(results) if cell.size == largest), key=lambda cell: (-cell.solved, cell.mean)
    )
    best, seeds = ranked[0], len(ranked[0].results)
    if not best.solved:
        return f"At N = {largest} no algorithm solved DeepSea before the cap ({seeds} seeds each)."
    bound = "at least " if best.censored else ""
    text = (
        f"At N = {largest}, {algorithm(best.strategy).label} needed the fewest episodes: {bound}{best.mean:,.0f} on "
        f"average, {best.solved} of {seeds} runs solved."
    )
    if len(ranked) > 1:
        second = ranked[1]
        bound = "at least " if second.censored else ""
        text += (
            f" Next: {algorithm(second.strategy).label}, {bound}{second.mean:,.0f}"
            f" ({second.solved} of {len(second.results)} solved)."
        )
    return text + (f" {seeds} seeds are few: this is a picture, not a proof." if seeds <= 3 else "")
