"""Whose a name is: files seldom write paths as the input folder has them."""

import pytest

from geoweaver.formats.names import match_names


@pytest.mark.parametrize(
    ("names", "frames", "found"),
    [
        (["cam0/000.png", "cam1/000.png"], ["cam0/000.png", "cam1/000.png"], {0: 0, 1: 1}),
        (["images/cam1/000.jpg", "images/cam0/000.jpg"], ["cam0/000.png", "cam1/000.png"], {0: 1, 1: 0}),
        (["000.png"], ["cam0/000.png", "cam1/000.png"], {}),
        (["cam0/000.png", "cam1/000.png"], ["000.png"], {}),
        (["cam1/000.png"], ["cam0/000.png", "cam1/000.png"], {1: 0}),
        (["001", "000"], ["images/000.png", "images/001.png"], {0: 1, 1: 0}),
        (["000.jpg", "000.png"], ["000.png"], {0: 1}),
        (["rgb/1305.17", "rgb/1305.21"], ["in/1305.21.png", "in/1305.17.png"], {0: 1, 1: 0}),
        (["./train/r_0", "./test/r_0"], ["train/r_0.png"], {0: 0}),
    ],
)
def test_a_name_is_never_another_folders(names: list[str], frames: list[str], found: dict[int, int]) -> None:
    assert match_names(names, frames) == found
