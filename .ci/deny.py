"""Checks the dependencies of the published crates against deny.toml without cargo-deny: licences,
sources, and crates of which there are two versions."""

import collections
import pathlib
import re
import subprocess
import sys
import tomllib

RULES = tomllib.loads(pathlib.Path("deny.toml").read_text())
LICENCES = set(RULES["licenses"]["allow"])
SKIPPED = {skip["crate"] for skip in RULES["bans"]["skip"]}


def published():
    return subprocess.check_output([sys.executable, ".ci/crates.py"], text=True).split()


def dependencies():
    """Name, version, licence, and source if it is not the registry, of each dependency."""
    options = ["--all-features", "--edges", "normal,build", "--target", "all", "--locked"]
    chosen = [option for crate in published() for option in ("--package", crate)]
    form = ["--prefix", "none", "--format", "{p}\t{l}"]
    lines = subprocess.check_output(["cargo", "tree", *options, *chosen, *form], text=True)
    for line in sorted(set(lines.replace(" (*)", "").splitlines()) - {""}):
        crate, licence = line.split("\t")
        name, version, *rest = crate.split(" ", 2)
        source = " ".join(rest).replace("(proc-macro)", "").strip()
        yield name, version, licence, source


def is_allowed(licence):
    """Whether the licences that are allowed fulfil an expression of SPDX."""
    # Exceptions only allow more; old manifests write a slash for OR.
    text = re.sub(r" WITH [\w.-]+", "", licence).replace("/", " OR ")
    words = re.findall(r"[()]|[\w.+-]+", text)
    return bool(words) and any_of(words) and not words


def any_of(words):
    allowed = all_of(words)
    while words[:1] == ["OR"]:
        del words[0]
        allowed |= all_of(words)
    return allowed


def all_of(words):
    allowed = one(words)
    while words[:1] == ["AND"]:
        del words[0]
        allowed &= one(words)
    return allowed


def one(words):
    word = words.pop(0)
    if word != "(":
        return word in LICENCES
    allowed = any_of(words)
    del words[0]
    return allowed


faults = []
versions = collections.defaultdict(set)
count = 0
for name, version, licence, source in dependencies():
    count += 1
    versions[name].add(version)
    if not is_allowed(licence):
        faults.append(f"{name} {version} has a licence that deny.toml does not allow: {licence or 'none'}")
    if source and not source.startswith(f"({pathlib.Path.cwd()}"):
        faults.append(f"{name} {version} is not from the registry: {source}")
for name, found in versions.items():
    if len(found) > 1 and name not in SKIPPED:
        faults.append(f"there are several versions of {name}: {', '.join(sorted(found))}")
for name in sorted(SKIPPED):
    if len(versions[name]) < 2:
        faults.append(f"deny.toml excuses two versions of {name}, of which there is one at most")
print("\n".join(faults) or f"{count} crates agree with deny.toml")
sys.exit(bool(faults))
