"""The page about the two paths says what the package says."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "two-paths.md"


def test_the_code_on_the_page_gives_what_the_page_shows():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    page = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner().run(page)
    assert results.attempted == len(page.examples) >= 9
    assert results.failed == 0
