"""Mutate the core in one place at a time, and check that its tests fail: python tests/mutation

Each mutant runs the tests of its room in a process forked from one that has loaded the libraries. `--help` lists the
options. Surviving mutants are printed; the mutants in equivalent.toml, which change no behaviour, are skipped.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from mutation.mutants import equivalents, mutants  # noqa: E402

ROOMS = {
    "model/attention.py": (
        "model/test_encoder.py", "model/test_position.py", "analysis/causal/test_interventions.py",
    ),
    "model/position.py": ("model/test_position.py", "model/test_encoder.py"),
    "training/losses.py": ("training/test_losses.py", "model/test_prediction.py", "training/test_minimal_pairs.py"),
    "training/optimizer.py": ("training/test_optimizer.py",),
    "analysis/scores/heads.py": ("analysis/scores/test_heads.py",),
    "analysis/scores/statistics.py": ("analysis/scores/test_statistics.py", "analysis/scores/measures/test_effects.py"),
    "analysis/evidence/verdict.py": ("analysis/evidence/test_verdict.py", "analysis/evidence/test_protocol.py"),
    "data/batches/batching.py": ("data/batches/test_batching.py", "data/batches/test_shares.py"),
    "data/batches/encoded.py": ("data/batches/test_batching.py",),
}  # fmt: skip
"""Tests for each file of the core."""
LIBRARIES = ("torch", "scipy.stats", "datasets", "tokenizers", "hydra", "omegaconf", "pytest", "hypothesis")
LONGEST_SECONDS = 240


class Changed(MetaPathFinder, Loader):
    """Import hook that returns a module's mutated code."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self.name, self.path, self.code = name, path, code

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def is_noticed(name: str, path: Path, code: CodeType, tests: Sequence[str]) -> bool:
    """Return whether the tests fail with a mutated module, in a forked process."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            sys.meta_path.insert(0, Changed(name, path, code))
            signal.alarm(LONGEST_SECONDS)  # a mutant may never end

            import pytest

            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
            status = int(pytest.main([*options, *(str(ROOT / "tests" / test) for test in tests)]))
        os._exit(status)
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    """Test the mutants and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(ROOMS), help="this file alone")
    parser.add_argument("--sample", type=int, default=10, help="mutants of each file; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    os.chdir(ROOT)
    for library in LIBRARIES:
        import_module(library)
    tried = survived = same = 0
    begun = time.perf_counter()
    for file, tests in ROOMS.items():
        if options.only and file not in options.only:
            continue
        path = ROOT / "src" / "anaphora" / file
        name = f"anaphora.{file.removesuffix('.py').replace('/', '.')}"
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        sample = list(mutants(tree))
        number = len(sample)
        if options.sample:
            sample = random.Random(f"{options.seed} {file}").sample(sample, min(options.sample, number))
        if is_noticed(name, path, compile(tree, str(path), "exec", dont_inherit=True), tests):
            sys.exit(f"the tests of {file} fail on the file as it is")
        unnoticeable = [
            mutant
            for mutant in sample
            if any(equivalent.names(mutant, source.splitlines()) for equivalent in equivalents(file))
        ]
        sample = [mutant for mutant in sample if mutant not in unnoticeable]
        left = [mutant for mutant in sample if not is_noticed(name, path, mutant.compiled(tree, path), tests)]
        tried, survived, same = tried + len(sample), survived + len(left), same + len(unnoticeable)
        equal = f", {len(unnoticeable)} more are equivalent" if unnoticeable else ""
        print(f"{file}: {len(sample)} of {number} mutants, {len(left)} survive{equal}", flush=True)
        for mutant in sorted(left, key=lambda one: one.line):
            print(f"  {mutant}", flush=True)
    print(f"{survived} of {tried} survive, {same} more are equivalent; {time.perf_counter() - begun:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
