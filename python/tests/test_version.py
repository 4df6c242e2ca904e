"""The module's version is the project's, which stands in one place."""

import re
from pathlib import Path

import draftproof


def test_the_version_is_that_of_the_project():
    text = (Path(__file__).parents[2] / "CMakeLists.txt").read_text()
    assert draftproof.__version__ == re.search(r"project\(draftproof VERSION ([0-9.]+)", text).group(1)
