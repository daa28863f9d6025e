"""One thread for torch and BLAS: the same bytes, and the owner's numbers afterwards."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg
import torch

from geoweaver.engine import one_blas_thread, one_thread
from geoweaver.engine.threads import _libraries


@pytest.fixture(autouse=True)
def two_blas_threads() -> Iterator[None]:
    if not blas_threads():
        pytest.skip("nothing here tells a BLAS its threads")
    with _libraries().limit(limits=2, user_api="blas"):
        yield


def blas_threads() -> list[int]:
    """Of those whose number holds for all threads of the process, as numpy's and scipy's do."""
    found = _libraries().info()
    return [library["num_threads"] for library in found if library.get("threading_layer") == "pthreads"]


def test_one_thread_inside_and_the_owners_number_after() -> None:
    many = torch.get_num_threads()
    with one_thread():
        assert set(blas_threads()) == {torch.get_num_threads()} == {1}
    assert set(blas_threads()) == {2}
    assert torch.get_num_threads() == many


def test_blocks_that_overlap_in_time_give_the_number_back_once() -> None:
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=first)
    other.start()
    assert entered.wait(10)
    with one_blas_thread():
        leave.set()
        other.join()
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_a_factorisation_has_the_same_bytes_however_many_threads_there_are() -> None:
    half = np.random.default_rng(0).normal(size=(400, 400))
    matrix = half @ half.T + np.eye(400)
    found = []
    for threads in (1, 2):
        with _libraries().limit(limits=threads, user_api="blas"), one_blas_thread():
            small = np.linalg.cholesky(matrix)
            found.append(small.tobytes() + scipy.linalg.cho_factor(matrix, lower=True)[0].tobytes())
    assert found[0] == found[1]
