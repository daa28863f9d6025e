"""Suites of recordings with references, methods that are scored on them, tables in the paper's form."""

from geoweaver.benchmark.plan import Plan
from geoweaver.benchmark.run import run_benchmark
from geoweaver.benchmark.scene import Scene, Suite
from geoweaver.benchmark.suites import SUITES, find_scenes

__all__ = ["SUITES", "Plan", "Scene", "Suite", "find_scenes", "run_benchmark"]
