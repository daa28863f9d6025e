"""Procedural textured worlds with exact depth and cameras, and a prior and matches simulated in them."""
