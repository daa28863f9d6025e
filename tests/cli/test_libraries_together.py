"""Libraries that disturb each other: what the import of geoweaver keeps in order."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import geoweaver
import pycolmap
from PIL import Image
Image.effect_noise((640, 480), 50).save(sys.argv[1])
"""


def test_pictures_are_written_beside_pycolmap(tmp_path: Path) -> None:
    made = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "noise.png"], check=False, timeout=300)
    assert made.returncode == 0
    assert (tmp_path / "noise.png").stat().st_size > 1000
