"""What of a run goes into which format (docs/exports.md)."""

from geoweaver.export.run_exports import FORMATS, ExportChoice, export_run, require_format, write_exports

__all__ = ["FORMATS", "ExportChoice", "export_run", "require_format", "write_exports"]
