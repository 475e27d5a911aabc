"""The changelog: one line a change, written as fragments in ``changes/`` and assembled at a release."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "changelog.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the changelog's script is not beside the tests")
if SCRIPT.exists():
    specification = importlib.util.spec_from_file_location("changelog", SCRIPT)
    changelog = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(changelog)

#: bytes; measurements belong to the pages of docs/
LONGEST = 12_000


def test_every_fragment_is_well_formed():
    faults = [said for path in changelog.fragments() if (said := changelog.fault(path))]
    assert not faults, faults
    linked = {link for path in changelog.fragments() for link in re.findall(r"\]\(([^)#:]+)", path.read_text("utf-8"))}
    gone = [link for link in linked if not (ROOT / link).exists()]
    assert not gone, f"links of fragments begin at the root of the repository: {gone}"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("noise.md", "A thing.\n", "name it like"),
        ("noise.mended.md", "A thing.\n", "name it like"),
        ("two words.added.md", "A thing.\n", "name it like"),
        ("noise.added.md", "A thing.\nAnother.\n", "one line"),
        ("noise.added.md", "A thing.", "one line"),
        ("noise.added.md", "", "one line"),
        ("noise.fixed.md", "- A thing.\n", "without bullet"),
        ("noise.fixed.md", "A thing\n", "full stop"),
    ],
)
def test_a_fragment_that_is_not_well_formed_is_seen(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    assert said in changelog.fault(tmp_path / name)


def test_a_release_takes_the_fragments_in(tmp_path):
    (tmp_path / "changes").mkdir()
    shutil.copy(ROOT / "changes" / "README.md", tmp_path / "changes")
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    before = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in ("one.fixed", "two.added", "a-third.added"):
        (tmp_path / "changes" / f"{name}.md").write_text(f"The {name}.\n")
    changelog.assemble("9.0.0", "2030-01-02", tmp_path)
    after = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    added = "### Added\n\n- The a-third.added.\n- The two.added.\n\n"
    new = f"## 9.0.0 (2030-01-02)\n\n{added}### Fixed\n\n- The one.fixed.\n\n"
    assert after.count("\n## ") == before.count("\n## ") + 1
    assert after.replace(new, "") == before
    assert after.index("## Unreleased") < after.index("## 9.0.0") < after.index("## 0.2.0")
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["README.md"]
    with pytest.raises(SystemExit, match="no fragments"):
        changelog.assemble("9.0.1", "2030-01-03", tmp_path)


def test_the_changelog_is_short_and_a_change_is_one_line():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(text.encode()) < LONGEST, "a line a change; measurements belong to the pages of docs/"
    wrapped = [line for line in text.splitlines() if line.startswith(" ")]
    assert not wrapped, f"one line a change: {wrapped}"
