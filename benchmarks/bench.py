"""What a suite is given: how much to measure, where, with which random numbers, and rounds that take turns.

The law: whatever is compared is measured in the same rounds, one after the other in each, and the order changes from round to
round, so that no drift of the machine counts for one of them. The first round warms up and is not counted. Between any two
measurements the garbage of the last is collected.
"""

from __future__ import annotations

import gc
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.samples import Sample

Step = Callable[[str, int, int], None]
"""``step(phase, done, of)``: how far a suite is."""


class Skipped(Exception):
    """A suite, or a part of one, cannot be measured here; the message says what is missing and how to get it."""


class Bench:
    """``quick``: few rounds. ``folder``: where databases are made (None: where the system makes temporary files)."""

    def __init__(
        self,
        *,
        quick: bool = False,
        seed: int = 1,
        folder: Path | None = None,
        only: tuple[str, ...] = (),
        step: Step = lambda phase, done, of: None,
    ) -> None:
        self.quick = quick
        self.seed = seed
        self.folder = folder
        self.only = only
        self.skipped: list[str] = []
        self._step = step

    def random(self) -> random.Random:
        """Random numbers from the start of this measurement's seed: the same in every round and every run."""
        return random.Random(self.seed)

    def times(self, usually: int, quick: int) -> int:
        """How many rounds."""
        return quick if self.quick else usually

    def rounds(self, phase: str, count: int, *, collect: bool = True) -> Iterator[int]:
        """0 to ``count`` - 1, telling how far it is; garbage is collected before each unless rounds are too short for it."""
        for number in range(count):
            self._step(phase, number, count)
            if collect:
                gc.collect()
            yield number
        self._step(phase, count, count)

    def in_turns(
        self, phase: str, contenders: Mapping[str, Callable[[], float]], count: int, *, warm_up: int = 1
    ) -> dict[str, Sample]:
        """``count`` rounds in which each contender is called once: what each gave, a value a round.

        Round by round the next one begins, and every other round goes backwards.
        """
        names = list(contenders)
        found: dict[str, list[float]] = {name: [] for name in names}
        for number in self.rounds(phase, warm_up + count):
            for name in turn(names, number):
                gc.collect()
                value = contenders[name]()
                if number >= warm_up:
                    found[name].append(value)
        return {name: Sample(values) for name, values in found.items()}

    def tell(self, phase: str, done: int, of: int) -> None:
        """How far a phase is whose rounds are not counted by ``rounds``."""
        self._step(phase, done, of)

    def skip(self, why: str) -> None:
        """Note that a part was left out."""
        if why not in self.skipped:
            self.skipped.append(why)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """A folder of its own on the disk that is measured, which goes with it."""
        with tempfile.TemporaryDirectory(prefix="concorde-bench-", dir=self.folder) as path:
            yield Path(path)


def turn(names: list[str], number: int) -> list[str]:
    """The order of round ``number``."""
    start = number // 2 % len(names) if names else 0
    order = names[start:] + names[:start]
    return order[::-1] if number % 2 else order


Suite = Callable[[Bench], Iterable[Figure]]
"""``suite(bench)`` measures."""
