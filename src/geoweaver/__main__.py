"""`python -m geoweaver`: the same as the command `geoweaver`."""

import sys

from geoweaver.cli.main import main

sys.exit(main())
