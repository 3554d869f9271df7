"""A table, written for a page, a spreadsheet or a paper."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from bootdqn.common.text import format_count

_LATEX: dict[str, str | int | None] = {
    **{letter: f"\\{letter}" for letter in "&%_#${}"},
    **{letter: f"${letter}$" for letter in "<>|"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "[": "{[}",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "\N{MINUS SIGN}": "$-$",
    "ε": r"$\varepsilon$",
    "\n": " ",
}
"""Characters that LaTeX treats as commands or lacks; a bracket is a command at the beginning of a row."""


@dataclass(frozen=True)
class Table:
    """Rows of text under columns."""

    name: str
    """For files: letters and dashes."""
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    text_columns: tuple[str, ...] = ()
    """Columns of words, set to the left."""
    detail_columns: tuple[str, ...] = ()
    """Columns that are too wide for a paper, and left out there."""

    def without(self, *columns: str) -> "Table":
        """Return the table with fewer columns."""
        kept = [number for number, name in enumerate(self.columns) if name not in columns]
        rows = [tuple(row[number] for number in kept) for row in self.rows]
        return replace(self, columns=tuple(self.columns[number] for number in kept), rows=rows)

    def to_html(self, *, stacked: bool = False, max_rows: int | None = None) -> str:
        """Return it for a page; every cell is escaped.

        Args:
            stacked: Put the cells of a row below each other on a phone.
            max_rows: Fold the rows away, to be opened by a click, where they are more.
        """
        sides = ["left" if column in self.text_columns else "right" for column in self.columns]
        head = "".join(f'<th class="{side}">{escape(c)}</th>' for c, side in zip(self.columns, sides, strict=True))
        names = [f' data-column="{escape(column)}"' if stacked else "" for column in self.columns]
        body = "".join(f"<tr>{''.join(map(_html_cell, row, sides, names))}</tr>" for row in self.rows)
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        kind = " class='stacked'" if stacked else ""
        table = f"<div class='wide'><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        if max_rows is not None and len(self.rows) > max_rows:
            table = f"<details><summary>Show {format_count(len(self.rows), 'row')}</summary>{table}</details>"
        return f"<h3>{escape(self.title)}</h3>{table}{note}"

    def to_csv(self) -> str:
        """Return it for a spreadsheet."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """Return it for a README, without its title."""
        sides = ["---" if column in self.text_columns else "--:" for column in self.columns]
        lines = [
            "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (self.columns, *self.rows)
        ]
        return "\n".join([lines[0], "|" + "|".join(sides) + "|", *lines[1:]])

    def to_latex(self) -> str:
        """Return it for a paper: no wider than a column of its text (needs `graphicx`)."""
        table = self.without(*self.detail_columns)
        columns = "".join("l" if column in table.text_columns else "r" for column in table.columns)
        lines = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in (table.columns, *table.rows)]
        return "\n".join(
            [
                r"\begin{table}", r"\centering", r"\setlength{\tabcolsep}{4pt}",
                rf"\caption{{{_latex(self.title)}}}",
                r"\resizebox{\ifdim\width>\columnwidth\columnwidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline",
                r"\end{tabular}}", r"\end{table}", "",
            ]
        )  # fmt: skip


def _html_cell(text: str, side: str, name: str) -> str:
    return f'<td class="{side}"{name}>{escape(text)}</td>'


def _latex(text: str) -> str:
    return text.translate(str.maketrans(_LATEX))
