"""The pipeline by hand: each stage is a function, and its result is a value that you may look at or replace.

python examples/stage_by_stage.py INPUT OUT
"""

import sys
from pathlib import Path

from geoweaver.engine import find_engine
from geoweaver.features import compute_features, find_retriever
from geoweaver.frames import keep_pixels, open_frames, select_keyframes
from geoweaver.matching.protocol import find_matcher
from geoweaver.pipeline import Config
from geoweaver.placement import place_frames, placed_by_prior
from geoweaver.priors import find_prior
from geoweaver.stages import chunk_priors, cut_chunks, dense_matches, gather_observations, view_graph
from geoweaver.store import Store
from geoweaver.weave import weave


def main(input: Path, out: Path, chunk_size: int = 60) -> None:
    config, engine = Config(), find_engine(workers=2)
    with Store.open(out / "work") as store:
        frames = select_keyframes(
            open_frames(input, config.frames), config.keyframes, store=store, engine=engine
        )
        frames = keep_pixels(frames, store, engine)
        print(f"{len(frames)} frames, {int(frames.keyframe.sum())} keyframes of {frames.size}")

        features = compute_features(frames, store, config.features, engine)
        print(f"{len(features.read(0))} features in the first frame")

        chunks = cut_chunks(frames, features, store, engine, chunk_size, fixed=False)
        graph = view_graph(frames, features, chunks, store, engine, config.graph, find_retriever())
        print(f"{len(chunks)} chunks, {len(graph)} pairs of frames")

        matches = dense_matches(
            frames, features, graph, store, engine, find_matcher("classical", None)
        ).load()
        print(f"{len(matches)} matches")

        priors = chunk_priors(frames, features, chunks, store, engine, find_prior("sfm"), "sfm", workers=2)
        print(f"{len(priors)} sound pieces of geometry")

        observations = gather_observations(priors, frames.size)
        woven = weave(observations, graph, matches, priors.read, frames.camera, False, config.weave)
        for report in woven.reports:
            print(f"{report.name}: {report.iterations} iterations, median {report.median_px:.2f} px")

        result = place_frames(frames, woven, placed_by_prior(frames, woven))
        print(f"{int(result.trusted.sum())} of {len(result)} cameras are trusted")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
