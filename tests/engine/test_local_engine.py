"""The local engine: order, the same bytes, errors with their place, bounded memory."""

import io
import os
import subprocess
import traceback

import mapped_functions as f
import pytest
import torch

from geoweaver.engine import WorkerError, available_cores, find_engine, map_pieces
from geoweaver.errors import ConfigError, GeoWeaverError, MissingExtraError


def as_bytes(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_results_come_in_order(workers):
    assert list(map_pieces(f.square, range(20), workers)) == [x * x for x in range(20)]
    assert list(map_pieces(f.square, iter([3, 1, 2]), workers)) == [9, 1, 4]
    assert list(map_pieces(f.square, [], workers)) == []


@pytest.mark.parametrize(
    ("pieces", "workers", "threads"),
    [(1, 2, [2]), (3, 2, [1, 1, 2]), (4, 2, [1] * 4), (2, 5, [2, 2]), (3, 1, [1] * 3)],
)
def test_last_pieces_use_the_cores_of_idle_workers(pieces, workers, threads):
    found = list(map_pieces(f.met_in_threads, range(pieces), workers))
    assert [most for most, _ in found] == threads
    assert [values for _, values in found] == [[k * x for k in range(6)] for x in range(pieces)]


def test_early_finishers_wait_for_their_turn():
    results = list(map_pieces(f.slow_first, range(8), 3))
    assert [x for x, _ in results] == list(range(8))
    assert os.getpid() not in {pid for _, pid in results}


def test_the_same_bytes_with_any_number_of_workers():
    many = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = [as_bytes(r) for r in map_pieces(f.reduce_many, range(5), 1)]
        for workers in (0, 2, 3):
            assert [as_bytes(r) for r in map_pieces(f.reduce_many, range(5), workers)] == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(many)


def test_one_thread_and_the_owners_environment(monkeypatch):
    for value in ("first", "second"):
        monkeypatch.setenv("GEOWEAVER_TEST", value)
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
        assert set(map_pieces(f.threads, range(3), 2)) == {(1, "1", value)}
        assert os.environ["OPENBLAS_NUM_THREADS"] == "5"


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_come_in_their_turn_after_the_results_before_them(workers):
    seen = []
    with pytest.raises(KeyError, match="the third one") as caught:
        for result in map_pieces(f.fail_at_three, range(50), workers):
            seen.append(result)
    assert seen == [0, 1, 2]
    told = "".join(traceback.format_exception(caught.value))
    assert "in fail_at_three" in told
    assert 'raise KeyError("the third one")' in told


@pytest.mark.parametrize(
    ("kind", "cls", "words"),
    [
        ("extra", MissingExtraError, r"pip install .*\[viewer\]'"),
        ("picky", f.PickyError, r"lost at \(1, 2\)"),
        ("local", RuntimeError, "LocalError: inner words"),
        ("command", subprocess.CalledProcessError, "returned non-zero exit status 3"),
        ("unicode", UnicodeDecodeError, "bad start"),
        ("group", RuntimeError, "several"),
        ("exit", SystemExit, "no"),
        ("file", FileNotFoundError, "/nowhere/at/all"),
        ("result", Exception, "lambda"),
    ],
)
def test_every_kind_of_error_travels(kind, cls, words):
    with pytest.raises(cls, match=words) as caught:
        list(map_pieces(f.raise_kind, [kind, kind], 2))
    assert "mapped_functions.py" in str(caught.value.__cause__) or kind == "result"


@pytest.mark.parametrize(
    ("function", "words"), [("die_at_three", "SIGKILL.*memory"), ("exit_at_three", "code 7")]
)
def test_a_killed_worker_is_a_clear_error(function, words):
    seen = []
    with pytest.raises(WorkerError, match=words) as caught:
        for result in map_pieces(getattr(f, function), range(40), 2):
            seen.append(result)
    assert seen == [0, 1, 2]
    assert isinstance(caught.value, GeoWeaverError)
    assert "\n" not in str(caught.value)
    assert "piece 3" in str(caught.value)


def test_pieces_are_taken_only_as_far_as_the_look_ahead():
    taken = []

    def pieces():
        for x in range(1000):
            taken.append(x)
            yield x

    results = map_pieces(f.square, pieces(), 2, look_ahead=5)
    assert taken == []
    for turn in range(20):
        assert next(results) == turn * turn
        assert len(taken) <= turn + 5
    results.close()
    assert len(taken) <= 25


def test_leaving_early_ends_the_workers():
    results = map_pieces(f.slow_first, range(1000), 2)
    _, pid = next(results)
    os.kill(pid, 0)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_initializer_runs_once_in_each_worker(workers):
    f.ready = False
    results = list(map_pieces(f.is_ready, range(12), workers, initializer=f.initialise))
    assert all(ready for ready, _ in results)
    assert f.ready == (workers == 1)
    f.ready = False


@pytest.mark.parametrize("workers", [1, 2])
def test_an_initializers_error_arrives(workers):
    with pytest.raises(OSError, match="no weights here"):
        list(map_pieces(f.is_ready, range(4), workers, initializer=f.refuse_to_initialise))


def test_large_tensors_both_ways():
    """Larger than any pipe's buffer, and than a container's /dev/shm."""
    made = list(map_pieces(f.big, [2, 20, 3], 2))
    assert [t.shape[0] for t in made] == [2, 20, 3]
    assert list(map_pieces(f.big_sum, made, 2)) == [4e6, 4e8, 9e6]


def test_maps_inside_workers_stay_there():
    assert list(map_pieces(f.nested, [3, 4], 2)) == [[0, 1, 4], [0, 1, 4, 9]]


def test_engines_by_name():
    assert list(find_engine("local", 2).map(f.square, range(4))) == [0, 1, 4, 9]
    assert available_cores() >= 1
    with pytest.raises(ConfigError, match="choose one of local, ray"):
        find_engine("cloud")
