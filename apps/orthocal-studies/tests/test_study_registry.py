"""The registry: every figure of the paper has its column, and names that do not exist are refused."""

import numpy as np
import pytest

import fake_studies
import orthocal as oc
from orthocal.examples import MODEL1
from orthocal_studies import printed as models
from orthocal_studies.printed import printed_numbers
from orthocal_studies.registry import STUDIES, columns_by_key, study_by_name
from orthocal_studies.replicate import data_set

PRINTED = {
    "table1": models.TABLE1,
    "table2": models.TABLE2,
    "table3": models.TABLE3,
    "finite1": models.FINITE1,
    "finite2": models.FINITE2,
    "outcomes": {},
    "unavailable": models.UNAVAILABLE,
}
#: how far the paper's means are from the truth, relatively: a slip of the pen would be seen
FARTHEST = {"unavailable": 0.14}


def test_the_studies_of_the_paper():
    assert list(STUDIES) == ["table1", "table2", "table3", "finite1", "finite2", "outcomes", "unavailable"]
    keys = {name: [column.key for column in columns_by_key(study, None)] for name, study in STUDIES.items()}
    # the columns of the paper's tables, from left to right
    assert keys["table1"] == ["pgp12", "pgp32", "pgp52", "pbart", "ogp12", "ogp32", "ogp52", "sgasp", "pcal"]
    assert keys["table2"] == ["pgp12", "pgp32", "pgp52", "pbart", "ogp12", "ogp32", "ogp52", "pcal"]
    assert keys["table3"] == ["pgp12", "pgp32", "pgp52", "pbart", "pbmars", "ogp52"]
    assert keys["finite1"] == keys["finite2"] == ["pgp12", "pgp32", "pgp52", "pbart"]
    assert len(keys["outcomes"]) == 8
    assert keys["unavailable"] == ["pgp-gp", "pbart-bart", "pbart-gp"]


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_figure_has_a_column_and_a_parameter(name):
    study = STUDIES[name]
    shown = [column.printed for column in study.columns if column.printed is not None]
    assert {id(printed) for printed in shown} == {id(printed) for printed in PRINTED[name].values()}
    p = len(study.model.parameters)
    for printed in shown:
        coverage = printed.coverage or ()
        assert len(printed.mean) == len(printed.sd) == p
        assert len(coverage) == (0 if name == "unavailable" else p)
        for text, truth in zip(printed.mean, study.model.theta_star, strict=True):
            np.testing.assert_allclose(printed_numbers(text), truth, rtol=FARTHEST.get(name, 0.051))
        assert all(0.9 <= printed_numbers(text)[0] <= 1 for text in coverage)
        assert all(0 < printed_numbers(text)[0] <= printed_numbers(text)[-1] for text in printed.sd)


def test_columns_make_methods():
    for study in STUDIES.values():
        for column in study.columns:
            assert hasattr(column.method(), "run"), (study.name, column.key)


def test_the_methods_have_the_papers_hyperparameters():
    told = STUDIES["table1"].column("pgp12").method().describe()
    assert told["bias"] == oc.bias.GP(nu=0.5, sd=1.0, lengthscale=0.5).describe()
    assert told["projection"] == "functional"
    assert STUDIES["finite2"].column("pbart").method().describe()["projection"] == "finite"


def test_fits_of_one_outcome_and_of_both():
    study = STUDIES["outcomes"]
    x, y = data_set(study.model, 1, 1)
    second = study.column("pgp32-second").problem(study.model, x, y)
    assert (second.data.y[:, 0] == y[:, 1]).all()
    assert study.column("pbart-identity").problem(study.model, x, y).loss_weight == "identity"
    stars = [round(study.theta_star(study.column(f"pgp32-{fit}"))[0], 4) for fit in ("first", "second", "precision")]
    assert stars == [3.5653, 3.5725, 3.5759]


def test_a_data_set_depends_on_seed_and_replication_only():
    first = data_set(MODEL1, 1, 1)
    assert all((a == b).all() for a, b in zip(first, data_set(MODEL1, 1, 1), strict=True))
    others = [data_set(MODEL1, 1, 2), data_set(MODEL1, 2, 1), data_set(MODEL1, 11, 1)]
    assert len({float(x[0, 0]) for x, _ in (first, *others)}) == 4


def test_names_that_do_not_exist():
    with pytest.raises(oc.errors.InputError, match=r"no study 'table9': choose one of table1, .*, all"):
        study_by_name("table9")
    with pytest.raises(oc.errors.InputError, match="cannot be loaded: No module named 'absent'"):
        study_by_name("absent:STUDY")
    with pytest.raises(oc.errors.InputError, match="is no study"):
        study_by_name("fake_studies:FOLDER")
    with pytest.raises(oc.errors.InputError, match=r"table3 has no method magic: it has pgp12, "):
        columns_by_key(STUDIES["table3"], ("pgp12", "magic"))
    assert study_by_name("fake_studies:CHEAP") is fake_studies.CHEAP
