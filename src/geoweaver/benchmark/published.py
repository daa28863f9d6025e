"""What the paper prints of GeoWeaver, copied from its tables; nothing of it was measured here."""

PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    # tab:tnt: AUC@3, ATE
    "tanks-and-temples": {
        "Barn": (52.8, 0.047), "Caterpillar": (72.9, 0.029), "Courthouse": (78.4, 0.011),
        "Ignatius": (77.0, 0.016), "Meetingroom": (78.1, 0.019), "Truck": (78.2, 0.021),
        "Average": (72.9, 0.023),
    },
    # tab:mip360: AUC@3, ATE
    "mip-nerf-360": {
        "bicycle": (59.7, 0.041), "bonsai": (48.2, 0.067), "counter": (77.2, 0.028),
        "flowers": (72.9, 0.024), "garden": (85.3, 0.009), "kitchen": (57.9, 0.052),
        "room": (54.6, 0.049), "stump": (69.9, 0.029), "treehill": (69.7, 0.027),
        "Average": (66.4, 0.036),
    },
    # tab:vkitti2: AUC@3, ATE
    "vkitti2": {
        "Scene01": (59.8, 0.705), "Scene02": (76.2, 0.087), "Scene06": (37.5, 0.020),
        "Scene18": (83.3, 0.473), "Scene20": (66.3, 1.851), "Average": (64.6, 0.627),
    },
    # tab:oxford: RRE, ATE
    "oxford-spires": {
        "keble-04": (0.432, 1.430), "observatory-01": (0.360, 1.820), "blenheim-05": (0.330, 1.430),
        "christ-church-02": (1.180, 12.810), "Average": (0.575, 4.372),
    },
}  # fmt: skip
"""By suite and scene, in the order of the suite's scores; averages as they are printed."""

PUBLISHED_STAGES = {
    # tab:ablation_stages, Tanks and Temples: ATE, AUC@3
    "tanks-and-temples": {"stage-1": (0.674, 24.4), "stage-2": (0.075, 43.8), "stage-3": (0.023, 72.9)},
}
