"""The Ray engine against a stand-in with Ray's documented calls: order, bounds, errors."""

import sys
from types import SimpleNamespace

import mapped_functions as f
import pytest

from geoweaver.engine import find_engine, ray_cluster
from geoweaver.errors import GeoWeaverError, MissingExtraError


class RayError(Exception):
    pass


class StandIn:
    """Runs a task when its result is asked for, and remembers how many were waiting."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self):
        self.pending = self.most = 0
        self.options = {}
        self.address = "never called"

    def is_initialized(self):
        return False

    def init(self, address, log_to_driver):
        if address == "nowhere:1":
            raise ConnectionError(address)
        self.address = address

    def cluster_resources(self):
        return {"CPU": 3.0}

    def put(self, value):
        return value

    def remote(self, **options):
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *a: self.submit(function, a))

    def submit(self, function, arguments):
        self.pending += 1
        self.most = max(self.most, self.pending)
        return lambda: function(*arguments)

    def get(self, reference):
        self.pending -= 1
        if self.address == "weak":
            raise RayError("The worker died.\nmany lines")
        return reference()


@pytest.fixture
def ray(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    monkeypatch.setattr(ray_cluster, "_initialized", set())
    return stand_in


def test_order_and_bound(ray):
    assert list(find_engine("ray", 0).map(f.square, range(20))) == [x * x for x in range(20)]
    assert ray.most == 6
    assert list(find_engine("ray", 2).map(f.square, iter(range(3)))) == [0, 1, 4]
    assert ray.options["runtime_env"]["env_vars"]["OMP_NUM_THREADS"] == "1"


def test_errors_look_as_on_the_local_engine(ray):
    with pytest.raises(KeyError, match="the third one") as caught:
        list(find_engine("ray", 2).map(f.fail_at_three, range(9)))
    assert "in fail_at_three" in str(caught.value.__cause__)


def test_the_initializer_runs_once(ray):
    f.ready = False
    results = list(find_engine("ray", 2).map(f.is_ready, range(3), initializer=f.initialise))
    assert all(ready for ready, _ in results)
    f.ready = False


def test_a_lost_worker_and_an_unknown_address_are_one_line(ray):
    with pytest.raises(GeoWeaverError, match=r"The worker died\.; run the same command again") as caught:
        list(find_engine("ray", 2, "weak").map(f.square, [1]))
    assert "\n" not in str(caught.value)
    with pytest.raises(GeoWeaverError, match="check --address"):
        list(find_engine("ray", 2, "nowhere:1").map(f.square, [1]))


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"\[ray\]"):
        list(find_engine("ray").map(f.square, [1]))
