"""How far work has come: from any thread, by parts of stages, and the way to stop it."""

import pytest
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.errors import Cancelled
from seqloom.core.progress import Progress, UnitProgress


def test_any_thread_may_add() -> None:
    progress = Progress()
    progress.begin(80_000, "byte")
    run_tasks(8, lambda _: [progress.advance(1) for _ in range(10_000)], range(8))
    assert (progress.done, progress.total, progress.unit) == (80_000, 80_000, "byte")
    progress.begin(5, "record")
    assert (progress.done, progress.total) == (0, 5)


def test_whoever_advances_learns_that_the_work_is_to_stop() -> None:
    progress = Progress()
    progress.cancellation.cancel()
    progress.add(1)
    with pytest.raises(Cancelled):
        progress.advance(1)
    assert progress.done == 2


def test_stages_of_a_unit_share_its_cells_by_their_weights() -> None:
    progress = Progress()
    progress.begin(1000, "cell")
    unit = UnitProgress(progress, 1000, {"seed.words": 3, "extend.gapped": 1})
    here = Context(progress=unit.stage("seed.words"))
    here.advance(1, 4)
    assert progress.done == 188
    here.advance(20, 4)  # never more than there is
    assert progress.done == 750
    here = Context(progress=unit.stage("extend.gapped"))
    here.advance(0.5)
    assert progress.done == 875
    here.advance(1, 0)  # of nothing
    assert progress.done == 875
    unit.end()
    unit.end()
    assert progress.done == 1000


def test_a_stage_that_says_nothing_is_done_when_the_next_one_begins() -> None:
    progress = Progress()
    unit = UnitProgress(progress, 1000, {"seed.words": 3, "extend.gapped": 1})
    unit.stage("seed.words")
    assert progress.done == 0
    unit.stage("extend.gapped")
    assert progress.done == 750


def test_advancing_checks_the_cancellation() -> None:
    progress = Progress()
    context = Context(cancellation=progress.cancellation)
    context.advance(1, 2)
    progress.cancellation.cancel()
    with pytest.raises(Cancelled):
        context.advance(1, 2)
