"""What a command says: words for people, or with --json one document for programs and words beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..findings import Findings
    from ..results.posterior import Posterior


class _Asked:
    """How the command of this process was asked to speak; its options set it before the command begins."""

    document = quiet = given = False


def _json_asked(wanted: bool) -> bool:
    _Asked.document, _Asked.given = wanted, False
    return wanted


def _quiet_asked(wanted: bool) -> bool:
    _Asked.quiet = wanted
    return wanted


Json = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_json_asked,
        is_eager=True,
        help="Print one JSON document, and all words to standard error.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_quiet_asked,
        is_eager=True,
        help="No progress and no summary; notes and errors stay.",
    ),
]


def speak_plainly() -> None:
    """As if no option had been given."""
    _Asked.document = _Asked.quiet = _Asked.given = False


def document_asked() -> bool:
    """Whether standard output belongs to a JSON document."""
    return _Asked.document


def say(words: str) -> None:
    """Words of a result: to standard output, beside a document to standard error, not at all where quiet is asked."""
    if not _Asked.quiet:
        typer.echo(words, err=_Asked.document)


def give(document: Mapping[str, Any]) -> None:
    """The result for programs, where it is asked for: one document, once."""
    if _Asked.document and not _Asked.given:
        _Asked.given = True
        typer.echo(json.dumps(plain(document), allow_nan=False, ensure_ascii=False))


def give_error(message: str) -> None:
    """A command that fails gives a document, too."""
    give({"error": message})


@contextmanager
def quietly() -> Iterator[None]:
    """No bars inside of this block, where quiet is asked for."""
    from ..progress import silenced

    with silenced(_Asked.quiet):
        yield


def plain(value: object) -> Any:
    """What JSON can hold: numbers that are none are null, tables lists of their rows, files their names."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def found_document(found: Findings) -> list[dict[str, str]]:
    """Findings for programs."""
    return [one._asdict() for one in found]


def recorded_changes(posterior: Posterior) -> list[str]:
    """Settings of the problem file that the command changed, each ``key=value``."""
    return [str(one) for one in json.loads(posterior.record.data.attrs.get("changed_settings", "[]"))]


def fit_document(posterior: Posterior, found: Findings, files: Mapping[str, Path | str]) -> dict[str, Any]:
    """A fit for programs: its parameters, findings and files."""
    table = posterior.summary()
    lower, upper = (column for column in table.columns if str(column).startswith("eti"))
    named = table.rename(columns={lower: "lower", upper: "upper"})
    return {
        "ok": found.ok,
        "parameters": {str(name): row.to_dict() for name, row in named.iterrows()},
        "findings": found_document(found),
        "draws": posterior.record.draws,
        "chains": posterior.record.chains,
        "seed": posterior.record.seed,
        "settings": recorded_changes(posterior),
        "version": posterior.record.version,
        "files": dict(files),
    }
