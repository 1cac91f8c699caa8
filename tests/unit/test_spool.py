"""What is on disk when a run is killed."""

from dataclasses import replace

import pytest

from bench.errors import Exit, HostError
from bench.model import FailureKind, RunStatus
from bench.spool import Spool, recover
from bench.testing import make_run

RUN = make_run(seed=2)
EMPTY = replace(RUN, experiments=(), status=RunStatus.INTERRUPTED)


def spool_of(folder, *, alive=False, parts=RUN.experiments):
    spool = Spool(folder, EMPTY)
    for index, part in enumerate(parts):
        spool.experiment(index, part)
    if not alive:
        spool.release()
    return spool


def test_a_killed_run_comes_back_as_interrupted_with_all_it_had(tmp_path):
    spool_of(tmp_path)
    ((folder, run),) = recover(tmp_path)
    assert folder.name == RUN.key
    assert run.status is RunStatus.INTERRUPTED
    assert run.experiments == RUN.experiments
    assert run.finished_at >= run.started_at


def test_a_living_run_is_left_alone(tmp_path):
    spool = spool_of(tmp_path, alive=True)
    assert list(recover(tmp_path)) == []
    spool.release()
    assert len(list(recover(tmp_path))) == 1


def test_a_stored_run_leaves_nothing(tmp_path):
    spool = spool_of(tmp_path, alive=True)
    spool.done()
    assert list(recover(tmp_path)) == []
    assert not spool.folder.exists()


def test_a_newer_part_replaces_the_older_one(tmp_path):
    less = replace(RUN.experiments[0], launches=RUN.experiments[0].launches[:3])
    spool = spool_of(tmp_path, alive=True, parts=(less,))
    spool.experiment(0, RUN.experiments[0])
    spool.release()
    ((_, run),) = recover(tmp_path)
    assert len(run.experiments[0].launches) == 7


def test_arms_without_a_launch_are_unmeasured(tmp_path):
    part = RUN.experiments[0]
    first, *rest = part.results
    spool_of(tmp_path, parts=(replace(part, results=(replace(first, measurements=()), *rest)),))
    ((_, run),) = recover(tmp_path)
    assert run.experiments[0].results[0].failure.kind is FailureKind.UNMEASURED
    assert run.experiments[0].results[1].failure is None


@pytest.mark.parametrize("damage", [b"", b"{", b'{"schema": "bench-run"}'])
def test_damage_and_nothing_measured_come_back_as_nothing(tmp_path, damage):
    spool = spool_of(tmp_path)
    (spool.folder / "manifest.json").write_bytes(damage)
    assert [run for _, run in recover(tmp_path)] == [None]


def test_a_state_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="cannot be written") as caught:
        Spool(tmp_path / "file", EMPTY)
    assert caught.value.exit_code is Exit.ENVIRONMENT
