"""Where training clips come from: one small file per source, one line in the registry."""
