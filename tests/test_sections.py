"""Sections of TOML files, and what does not fit in them, in words."""

import subprocess
import sys

import pytest
from pydantic import Field, field_validator

from orthocal.errors import ConfigError
from orthocal.sections import Names, Section, read_sections


class Inner(Section):
    names: Names | None = None
    size: float | list[float] = Field(default=1.0)
    kind: str

    @field_validator("kind")
    @classmethod
    def _known(cls, value):
        if value != "grid":
            raise ValueError(f"there is no kind {value!r}: give 'grid'")
        return value


class File(Section):
    inner: Inner


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[inner]\nkind = 'grid'\nother = 1", "unknown key 'inner.other'"),
        ("[outer]\n[inner]", "missing key 'inner.kind'; unknown key 'outer'"),
        ("[inner]\nkind = 'sobol'", "inner.kind: there is no kind 'sobol': give 'grid'"),
        ("[inner]\nkind = 1", "inner.kind: input should be a valid string"),
        ("[inner]\nkind = 'grid'\nnames = [1]", "inner.names.0: input should be a valid string"),
        ("[inner", "is not valid TOML: "),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, text, words):
    file = tmp_path / "file.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_sections(file, File)
    assert str(refused.value).startswith(str(file))
    assert words in str(refused.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file or directory"):
        read_sections(tmp_path / "none.toml", File)
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe4'")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_sections(tmp_path / "latin.toml", File)


def test_one_name_is_a_list_of_one(tmp_path):
    (tmp_path / "file.toml").write_text("[inner]\nkind = 'grid'\nnames = 'x'")
    assert read_sections(tmp_path / "file.toml", File).inner.names == ["x"]


def test_the_library_does_not_load_pydantic():
    check = "import sys, orthocal as oc; oc.Problem; oc.calibrate; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
