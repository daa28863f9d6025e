"""TUM and KITTI exports: evo reads them and finds the error that we find."""

import copy

import pytest
import torch
from evo.core import metrics, sync
from evo.tools import file_interface
from made_runs import moved, with_cameras

from geoweaver.evaluation import score_trajectory
from geoweaver.export import export_run
from geoweaver.formats.trajectory import read_trajectory

READERS = {
    "tum": file_interface.read_tum_trajectory_file,
    "kitti": file_interface.read_kitti_poses_file,
}


def evo_ate(reference, estimate):
    estimate = copy.deepcopy(estimate)
    estimate.align(reference, correct_scale=True)
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data((reference, estimate))
    return ape.get_statistic(metrics.StatisticsType.rmse)


@pytest.mark.parametrize("form", READERS)
def test_evo_agrees_on_the_ate(run, tmp_path, form):
    off = with_cameras(run, moved(run.result.cam_from_world, 0.05))
    truth, found = (export_run(r, form, tmp_path / f"{n}.txt") for n, r in enumerate((run, off)))
    reference, estimate = (READERS[form](str(path)) for path in (truth, found))
    if form == "tum":
        reference, estimate = sync.associate_trajectories(reference, estimate)
    ours = score_trajectory(read_trajectory(found), read_trajectory(truth)).ate
    assert ours > 0.005
    assert evo_ate(reference, estimate) == pytest.approx(ours, rel=1e-6)


def test_every_frame_is_there_trusted_or_not(run, tmp_path):
    from dataclasses import replace

    some = replace(run, result=replace(run.result, trusted=torch.zeros(8, dtype=torch.bool)))
    for form in READERS:
        path = export_run(some, form, tmp_path / form)
        assert len(path.read_text().splitlines()) == 8


def test_without_a_path_exports_stand_below_the_run(run):
    assert export_run(run, "tum") == run.folder / "exports/trajectory.tum"
    assert (run.folder / "exports/trajectory.tum").is_file()
