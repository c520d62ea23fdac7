"""Leaves in a copy of the workspace what a user of the published crates builds: takes the packages
that are not published out of it, and the dependencies of tests, examples and benches.

    without_tests.py FOLDER
"""

import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(sys.argv[1])
# A table from its head to the next head.
TABLE = re.compile(r"^\[+(?P<name>[^\]\n]*)\]+\n(?:(?!\[).*\n?)*", re.MULTILINE)


def is_for_tests(name):
    return "dev-dependencies" in name or name in {"bench", "example", "test"}


for manifest in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]:
    text = manifest.read_text()
    text = TABLE.sub(lambda t: "" if is_for_tests(t["name"]) else t[0], text)
    if re.search("^publish = false$", text, re.MULTILINE):
        shutil.rmtree(manifest.parent)
        continue
    text = re.sub(r"^members = .*$", 'members = [".", "crates/*"]', text, flags=re.MULTILINE)
    manifest.write_text(text)
