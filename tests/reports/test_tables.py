"""Tables keep what stands in them, whatever they are written for."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bootdqn.reports.tables import Table

WRITTEN = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "[": "{[}",
    "ε": r"$\varepsilon$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "\N{MINUS SIGN}": "$-$",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
}


@given(st.text(alphabet=[*WRITTEN, *"ab .-"], max_size=12))
def test_latex_reads_every_letter_of_a_cell_as_itself(text):
    latex = Table("name", text, (text,), [(text,)]).to_latex()
    written = "".join(WRITTEN.get(letter, letter) for letter in text)
    assert f"\\caption{{{written}}}\n" in latex
    assert f"\\hline\n{written} \\\\\n\\hline\n{written} \\\\\n\\hline" in latex
    tokens = re.compile("|".join(re.escape(form) for form in sorted(WRITTEN.values(), key=len, reverse=True)))
    back = {form: letter for letter, form in WRITTEN.items()}
    assert tokens.sub(lambda found: back[found[0]], written) == text


def test_a_cell_of_two_lines_is_one_in_latex():
    assert "one two \\\\\n" in Table("name", "title", ("column",), [("one\ntwo",)]).to_latex()


def test_a_table_without_a_column_keeps_the_others_in_their_order():
    table = Table("name", "Title", ("a", "b", "c"), [("1", "2", "3"), ("4", "5", "6")], "note", text_columns=("c",))
    found = table.without("b")
    assert (found.columns, found.rows) == (("a", "c"), [("1", "3"), ("4", "6")])
    assert (found.name, found.title, found.note, found.text_columns) == ("name", "Title", "note", ("c",))


def test_a_cell_that_may_stand_alone_names_its_column():
    table = Table("name", "Title", ("a<b", "c"), [("1", "2")])
    assert '<td class="right" data-column="a&lt;b">1</td>' in table.to_html(stacked=True)
    assert '<td class="right">1</td>' in table.to_html()


def test_a_long_table_is_folded_and_its_note_is_not():
    table = Table("name", "Title", ("a",), [("1",), ("2",), ("3",)], "note")
    assert "<details>" not in table.to_html(max_rows=3)
    folded = table.to_html(max_rows=2)
    assert re.fullmatch(r"<h3>Title</h3><details><summary>Show 3 rows</summary>.*</details><p.*note</p>", folded)
    assert folded.count("<td") == 3


def test_a_table_for_a_paper_fits_a_column_and_leaves_out_what_is_too_wide():
    table = Table("name", "Title", ("a", "b", "c"), [("1", "2", "3")], text_columns=("b",), detail_columns=("c",))
    latex = table.to_latex()
    assert r"\begin{tabular}{rl}" in latex
    assert "1 & 2 \\\\\n" in latex
    assert r"\resizebox{\ifdim\width>\columnwidth\columnwidth\else\width\fi}{!}{%" in latex
    assert latex.count("{") == latex.count("}")
    assert "c" in table.to_csv().splitlines()[0]
