"""The two parts of the report to look at and play with: the 3D view and the gallery of frames."""

from collections.abc import Sequence

from geoweaver.results import FinishedRun
from geoweaver.viewer.report_html import Html, check, choice, data_uri, tag
from geoweaver.viewer.report_pictures import Strip
from geoweaver.viewer.report_sections import section


def map_section(points: int, found: int, lifted: bool) -> Html:
    """The 3D view with its controls."""
    source = "lifted from the depth maps" if lifted else "of the fused cloud"
    shown = f"{points:,} of {found:,} points {source}" if points < found else f"{points:,} points {source}"
    intro = f"{shown}. Drag to turn, right-drag or two fingers to move, wheel or pinch to zoom; "
    intro += "click a camera to pick its frame. "
    keys = "With the keyboard: arrows turn, shift and arrows move, + and − zoom, 0 starts over."
    colours = [("rgb", "Colour"), ("chunk", "Chunk"), ("trust", "Trust"), ("confidence", "Confidence")]
    bar = tag(
        "div",
        choice("colour-by", "Colour by", colours),
        check("show-points", "Points"),
        check("show-cameras", "Cameras"),
        check("show-path", "Path"),
        check("show-edges", "Loops", False),
        tag(
            "label",
            tag("span", "Size"),
            tag(
                "input",
                type="range",
                id="point-size",
                min="0.4",
                max="4",
                step="0.1",
                value="1.6",
                aria_label="Point size",
            ),
        ),
        tag(
            "label",
            tag("span", "Height"),
            tag(
                "input",
                type="range",
                id="cut",
                min="0",
                max="100",
                step="1",
                value="100",
                aria_label="Height up to which points are shown",
            ),
        ),
        tag("button", "Reset", type="button", id="reset-view"),
        class_="toolbar",
        role="group",
        aria_label="What the 3D view shows",
    )
    canvas = tag(
        "canvas",
        "Your browser does not draw this.",
        id="scene",
        tabindex="0",
        role="application",
        aria_label="Interactive 3D view of the cloud and the cameras",
        aria_describedby="map-intro",
    )
    stage = tag(
        "div",
        canvas,
        tag("p", id="scene-message", class_="message", hidden=True, role="status"),
        _inspector(),
        class_="stage",
    )
    return tag(
        "section",
        tag(
            "div",
            tag("h2", "The map", id="map-title"),
            tag("p", intro, tag("span", keys, class_="keys"), id="map-intro"),
            class_="section-head",
        ),
        tag(
            "div",
            bar,
            stage,
            tag("div", id="scene-legend", class_="legend", aria_live="polite"),
            class_="panel",
        ),
        id="map",
        aria_labelledby="map-title",
    )


def _inspector() -> Html:
    """The picked frame: picture, name, verdict, and the way through the sequence."""
    return tag(
        "div",
        tag("img", id="picked-picture", alt="", hidden=True),
        tag(
            "div",
            tag("strong", id="picked-name"),
            tag("span", id="picked-words"),
            class_="picked-text",
            aria_live="polite",
        ),
        tag(
            "div",
            tag(
                "button",
                "▶",
                type="button",
                id="play",
                aria_label="Play through the frames",
                aria_pressed="false",
            ),
            tag("input", type="range", id="scrub", min="0", max="0", value="0", step="1", aria_label="Frame"),
            tag("button", "Look", type="button", id="look", title="See the cloud alone from this camera"),
            class_="scrubber",
        ),
        class_="inspector",
        id="inspector",
    )


def pictures_section(run: FinishedRun, strips: Sequence[Strip]) -> Html:
    """Thumbnails with depth and confidence."""
    if not strips:
        return section("frames", "Frames", "The images of this run can no longer be read, so none are shown.")
    modes = [("all", "All three"), ("image", "Image"), ("depth", "Depth"), ("confidence", "Confidence")]
    bar = tag(
        "div",
        choice("pictures-show", "Show", modes),
        check("only-untrusted", "Only untrusted", False),
        class_="toolbar",
        role="group",
        aria_label="Which pictures are shown",
    )
    intro = (
        f"{len(strips):,} of {len(run.frames):,}, spread evenly, and keyframes that are not trusted. "
        "Depth: bright is near; "
        "confidence: bright is sure; stripes: nothing known. Choose one to see it in the map."
    )
    gallery = tag("div", *(_card(run, strip) for strip in strips), class_="gallery show-all", id="gallery")
    return section("frames", "Frames", intro, tag("div", bar, gallery, class_="panel"))


def _card(run: FinishedRun, strip: Strip) -> Html:
    frame, trusted = strip.frame, bool(run.result.trusted[strip.frame])
    verdict = "trusted" if trusted else "not trusted"
    name = run.result.names[frame]
    picture = tag(
        "img",
        src=data_uri("image/webp", strip.data),
        width=strip.width,
        height=strip.height,
        loading="lazy",
        decoding="async",
        alt=f"Frame {frame}: image, depth and confidence"
        if strip.has_depth
        else f"Frame {frame}: image, without depth",
    )
    caption = tag(
        "span",
        tag("b", str(frame)),
        tag("span", name, class_="name"),
        tag("i", "" if trusted else "not trusted", class_="verdict"),
        class_="card-text",
    )
    return tag(
        "button",
        tag("span", picture, class_="frame-picture", style=f"--ratio:{strip.width / 3 / strip.height:.4f}"),
        caption,
        type="button",
        class_="card" + ("" if trusted else " untrusted"),
        data_frame=frame,
        id=f"card-{frame}",
        title=f"{name} ({verdict})",
    )
