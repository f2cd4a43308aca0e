"""Programs that README and guide show are ones that work. They are where the package is tested from a checkout."""

from __future__ import annotations

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "src" / "guide"
PAGES = [GUIDE / "python.md", GUIDE / "python-lab.md", GUIDE / "cluster.md", ROOT / "python" / "README.md"]


def programs(text: str) -> list[str]:
    """The blocks that are Python, in order."""
    blocks = text.split("```python\n")[1:]
    return [block.split("```")[0] for block in blocks]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_works(
    page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "python-lab.md":
        pytest.importorskip("matplotlib")
    names: dict[str, object] = {}
    shown = programs(page.read_text())
    assert shown
    for number, program in enumerate(shown):
        exec(compile(program, f"{page.name}, program {number + 1}", "exec"), names)
