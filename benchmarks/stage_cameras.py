"""Every frame's camera after each stage of a simulated sequence's weave."""

from geoweaver.geometry import SE3, world_camera
from geoweaver.synth.simulated_sequence import Simulated
from geoweaver.weave import Woven, input_layouts


def stage_cameras(simulated: Simulated, woven: Woven) -> tuple[SE3, SE3, SE3]:
    """After Stages 1, 2 and 3."""
    observations, canonical = simulated.observations, woven.tables.canonical
    local, chunk = observations.cam_from_chunk[canonical], observations.chunk[canonical]
    first, second = (world_camera(x.world_from_chunk[chunk], local) for x in input_layouts(woven))
    return first, second, woven.state.cam_from_world
