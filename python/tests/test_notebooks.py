"""The notebooks run from their first cell to their last, hold no outputs, and give the answers of the course."""

import json
import subprocess
from pathlib import Path

import pytest
from test_program import available

import draftproof

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path):
    names = {}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None, f"{path.name}, cell {number} holds outputs"
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    return names


@pytest.mark.skipif(not available(), reason="the program is not built: ./draftproof test builds it")
def test_the_notebook_of_the_course_runs_and_its_answers_are_right():
    names = run(NOTEBOOKS / "course.ipynb")
    for lesson in range(1, 5):
        checks = [word for number, answer in enumerate(names[f"answers_{lesson}"], start=1)
                  for word in ("--check", f"{number}={float(answer)!r}")]
        done = subprocess.run([draftproof.program(), "lesson", str(lesson), *checks], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_cell_that_fails_fails_the_run(tmp_path):
    cells = [{"cell_type": "code", "execution_count": None, "outputs": [], "source": ["assert 1 + 1 == 3\n"]}]
    path = tmp_path / "wrong.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(AssertionError):
        run(path)
