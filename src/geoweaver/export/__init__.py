"""What of a run goes into which format (docs/exports.md)."""

from geoweaver.export.run_exports import FORMATS, ExportChoice, export_run, write_exports

__all__ = ["FORMATS", "ExportChoice", "export_run", "write_exports"]
