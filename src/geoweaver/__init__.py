"""GeoWeaver: long-video 3D reconstruction by hierarchical geometric assembly."""

__version__ = "0.1.0"
