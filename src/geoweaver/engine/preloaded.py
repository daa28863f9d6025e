"""Imported by the server that workers are forked from, and only there: it ends silently when it is told to."""

import signal

from geoweaver.engine.signals import answer_signal

answer_signal(signal.SIGTERM, signal.SIG_DFL)
