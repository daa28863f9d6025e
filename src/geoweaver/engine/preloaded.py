"""Imported by the server that workers are forked from, and only there: told to end, it is silent."""

import signal

from geoweaver.engine.signals import answer_signal

answer_signal(signal.SIGTERM, signal.SIG_DFL)
