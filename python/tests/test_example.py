"""The example repository does what its workflow says, by the workflow's own commands."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import draftproof

EXAMPLE = Path(__file__).parents[1] / "example"


def commands():
    """What the workflow runs, but the installation: the module is here already."""
    text = (EXAMPLE / ".github/workflows/draftproof.yml").read_text()
    found = re.findall(r"^ *- run: (.*)$", text, re.MULTILINE)
    assert [command.startswith("python -m pip install") for command in found] == [True, False]
    return found[1:]


def run_workflow(folder):
    # An installed module brings its plugin by an entry point; that of a build's tree may not be on the path of a new
    # process.
    environment = {**os.environ, "PYTHONPATH": str(Path(draftproof.__file__).parents[1]),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    for command in commands():
        yield subprocess.run([sys.executable, *command.split()[1:]], cwd=folder, env=environment, capture_output=True,
                             text=True)


@pytest.mark.skipif(os.environ.get("DRAFTPROOF_ALL_TESTS") != "ON", reason="takes a minute: ./draftproof test --all")
def test_the_workflow_passes_and_fails_where_the_sampler_is_biased(tmp_path):
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    for done in run_workflow(folder):
        assert done.returncode == 0, done.stdout + done.stderr
    assert xml.parse(folder / "junit.xml").getroot().find("testsuite").get("tests") == "1"
    assert '"verdict": "consistent"' in (folder / "draftproof.json").read_text()

    sampler = folder / "engine/sampler.py"
    sound = 'before >= params["top_p"][b]'
    assert sampler.read_text().count(sound) == 1
    sampler.write_text(sampler.read_text().replace(sound, 'before >= 1.03 * params["top_p"][b]'))
    done = list(run_workflow(folder))[-1]
    assert done.returncode == 1 and "Biased" in done.stdout and "top_p" in done.stdout
