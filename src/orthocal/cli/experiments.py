"""``orthocal compare`` of a file with several experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .checkpoints import checkpoint_at, ended_in_words
from .documents import give, say
from .fits import provenance
from .outputs import LEAST_PAGE, outputs_in
from .prints import prints_left_out

if TYPE_CHECKING:
    from ..config.experiments_file import ExperimentsFile

TABLES = ("disagreements", "predictions")


def compared_experiments(
    config: ExperimentsFile, given: dict[str, Any], prints: bool, checkpoint: bool, restart: bool
) -> None:
    """Each experiment alone, all together, and all but one: tables and a page; ``given`` is what the command was."""
    from ..comparison.experiments import compare_experiments
    from ..config.experiments_file import build_any, files_of
    from ..config.problem_file import build_method
    from ..experiments import Experiments
    from ..files import whole_file

    if given["methods"] is not None or given["groups"] is not None:
        raise ConfigError("--methods and --groups are for one problem: experiments are compared with each other")
    path: Path = given["problem_file"]
    folder, sampling = given["out"] or path.parent / config.output.folder, config.sampling
    names = ("compare.html", *(f"compare-{name}.csv" for name in TABLES))
    title = config.output.title or f"Comparison of the experiments of {path.name}"
    with prints_left_out(prints), outputs_in(folder, names, files_of(config, path)) as outputs, ended_in_words():
        where = checkpoint_at(folder / "compare.ckpt", checkpoint, restart, "compare", **given)
        outputs.need(LEAST_PAGE)
        experiments = build_any(config, path)
        assert isinstance(experiments, Experiments)
        comparison = compare_experiments(
            experiments,
            build_method(config.method, config.loss),
            where,
            draws=sampling.draws,
            chains=sampling.chains,
            seed=sampling.seed,
            warmup=sampling.warmup,
        )
        comparison.together.record.data.attrs |= provenance(path, folder, given["settings"])

        def tables(folder: Path) -> str:
            for name, table in zip(TABLES, (comparison.disagreements(), comparison.predictions), strict=True):
                with whole_file(folder / f"compare-{name}.csv") as draft:
                    table.to_csv(draft)
            return ", ".join(str(folder / f"compare-{name}.csv") for name in TABLES)

        written = outputs.written(tables)
        page = outputs.written(lambda folder: comparison.report(folder / "compare.html", title))
        if where is not None and outputs.complete:
            where.path.unlink(missing_ok=True)
    say(f"\n{comparison}\n\nTables: {written}\nReport: {page}")
    give(
        {
            "disagreements": comparison.disagreements().reset_index(),
            "predictions": comparison.predictions.reset_index(),
            "files": {"tables": str(written).split(", "), "report": str(page)},
        }
    )
    outputs.conclude()
