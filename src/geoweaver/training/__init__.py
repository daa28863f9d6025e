"""The two-stage training of the Geometric Prior Model: losses, datasets, loop (docs/training.md)."""
