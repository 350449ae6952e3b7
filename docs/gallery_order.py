"""The order of the gallery: photographs first, then learning, then set functions."""

ORDER = (
    # photographs
    "plot_scribbles", "plot_editable_cut", "plot_diverse", "plot_segmentation", "plot_marginals",
    "plot_many_images",
    "plot_conformal", "plot_tracking", "plot_certificates", "plot_budget", "plot_own_potential",
    # decisions and learning
    "plot_decisions", "plot_label_map", "plot_set_classifier", "plot_jaccard_digits",
    "plot_scorers", "plot_torch",
    "plot_field_layer", "plot_field_learning", "plot_struct_boost", "plot_gaps_and_words",
    "plot_thin", "plot_distill", "plot_calibration", "plot_dice_mixture",
    # losses, set functions, surrogates
    "plot_own_loss", "plot_surrogate_surfaces", "plot_set_functions", "plot_decompositions",
    "plot_dice_not_submodular",
)  # fmt: skip


class PhotographsFirst:
    """The sort key of scripts: the index in ORDER; other scripts follow, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        stem = str(filename).removesuffix(".py")
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)

    def __repr__(self) -> str:
        return "<PhotographsFirst>"
