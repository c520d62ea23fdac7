"""The published crates in the order of publication, and sets of their features: none, each alone, each
pair, and all.

    crates.py            a line a crate: its name
    crates.py features   a line a build: the crate, and a set of its features with commas between
    crates.py docs       a line a crate: its name, and the options of its build on docs.rs

With `--oldest`, only the crates whose Rust version is the one that the workspace states, without
features that bring a newer one; with `--newer`, only the others.
"""

import itertools
import json
import subprocess
import sys

ARGUMENTS = sys.argv[1:]
METADATA = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
CRATES = {
    crate["name"]: crate
    for crate in json.loads(subprocess.check_output(METADATA))["packages"]
    if crate["publish"] != []
}


def needs(crate):
    """The published crates that must be there before this one. Cargo leaves out a dependency for
    tests that has no version."""
    return {d["name"] for d in crate["dependencies"] if d["name"] in CRATES and d["req"] != "*"}


def in_order():
    done = []
    while len(done) < len(CRATES):
        done += [n for n, c in CRATES.items() if n not in done and needs(c) <= set(done)]
    return [CRATES[name] for name in done]


def is_oldest(crate):
    return crate["rust_version"] == CRATES["tollgate"]["rust_version"]


def brings_newer(enabled):
    """Whether a feature brings a crate that needs a newer Rust version: by what it enables, such as
    `dep:tollgate-redis`, or a feature of another crate that does."""
    for name in enabled:
        crate, _, feature = name.removeprefix("dep:").replace("?", "").partition("/")
        if crate not in CRATES:
            continue
        if not is_oldest(CRATES[crate]) or brings_newer(CRATES[crate]["features"].get(feature, [])):
            return True
    return False


def sets_of_features(crate):
    is_left_out = brings_newer if "--oldest" in ARGUMENTS else lambda _: False
    features = crate["features"].items()
    names = sorted(name for name, enabled in features if name != "default" and not is_left_out(enabled))
    sizes = sorted({size for size in (0, 1, 2, len(names)) if size <= len(names)})
    return itertools.chain.from_iterable(itertools.combinations(names, size) for size in sizes)


def is_chosen(crate):
    oldest = is_oldest(crate)
    return not ("--oldest" in ARGUMENTS and not oldest or "--newer" in ARGUMENTS and oldest)


for crate in filter(is_chosen, in_order()):
    if "features" in ARGUMENTS:
        for features in sets_of_features(crate):
            print(crate["name"], ",".join(features))
    elif "docs" in ARGUMENTS:
        settings = ((crate["metadata"] or {}).get("docs") or {}).get("rs") or {}
        print(crate["name"], "--all-features" if settings.get("all-features") else "")
    else:
        print(crate["name"])
