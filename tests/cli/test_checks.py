"""``orthocal check`` of a problem before its run, and of a result."""

import json

from orthocal.cli.demo import SIMULATOR


def test_a_problem_file_as_run_check_does(small, program):
    done, same = program("check", "problem.toml"), program("run", "problem.toml", "--check")
    assert done.code == same.code == 0, done.out
    assert "cost: none with 1 x 20 draws" in done.out
    # both say what was measured a moment ago, times for instance
    assert [line.split(":")[0] for line in done.out.splitlines()] == [
        line.split(":")[0] for line in same.out.splitlines()
    ]
    assert not (small / "fit.nc").exists()


def test_a_problem_is_exit_code_1(small, program):
    (small / "simulator.py").write_text(SIMULATOR.replace("theta[0] * x[:, 0]", "x[:, 0]"))
    done = program("check", "problem.toml", "--json")
    assert done.code == 1
    document = json.loads(done.out)
    assert document["ok"] is False
    assert "has no effect on the simulator" in " ".join(one["message"] for one in document["findings"])
    assert done.err.startswith("[problem]")


def test_findings_of_a_result(fitted, program):
    done = program("check", "fit.nc", "--json")
    document = json.loads(done.out)
    assert {"orthogonality", "mixing"} <= {one["topic"] for one in document["findings"]}
    # 20 draws are too few, which is a problem
    assert (done.code, document["ok"]) == (1, False)
    assert {one["level"] for one in document["findings"]} <= {"fine", "note", "problem"}
    quiet = program("check", "fit.nc", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (1, "", "")


def test_what_cannot_be_checked_is_one_sentence_and_a_document(small, program):
    done = program("check", "absent.nc", "--json")
    assert done.code == 1
    assert json.loads(done.out)["error"] in done.err
    assert done.err.count("\n") == 1
    # the next command is asked anew
    plain = program("check", "absent.nc")
    assert plain.out == ""
