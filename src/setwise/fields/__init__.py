"""Random fields: energies over N variables with L labels, as unaries plus potentials."""

from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._pixels._contrast import contrast_weights
from setwise.fields._pixels._grid import grid_edges
from setwise.fields._pixels._label_maps import regions_from_labels
from setwise.fields._potentials._cardinality import CardinalityPotential
from setwise.fields._potentials._clique import CliquePotential
from setwise.fields._potentials._label_cost import LabelCost
from setwise.fields._potentials._label_transition import LabelTransition
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._potentials._potts import Potts
from setwise.fields._potentials._region_consistency import RegionConsistency
from setwise.fields._potentials._robust_pn import RobustPn
from setwise.fields._potentials._truncated import TruncatedLinear, TruncatedQuadratic
from setwise.fields._terms._base import Term
from setwise.fields._terms._cliques import CliqueTerm
from setwise.fields._terms._label_counts import CardinalityTerm, LabelTerm
from setwise.fields._terms._pairs import PottsTerm, TransitionTerm
from setwise.fields._terms._region_counts import CountTerm, RobustTerm
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm
from setwise.fields._terms._tables import TableTerm
from setwise.fields._uai._read import read_uai
from setwise.fields._uai._write import write_uai

__all__ = [
    "CardinalityPotential",
    "CardinalityTerm",
    "CliquePotential",
    "CliqueTerm",
    "ConstantTerm",
    "CountTerm",
    "Field",
    "LabelCost",
    "LabelTerm",
    "LabelTransition",
    "Pairwise",
    "Potential",
    "Potts",
    "PottsTerm",
    "RegionConsistency",
    "RobustPn",
    "RobustTerm",
    "TableTerm",
    "Term",
    "TransitionTerm",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "UnaryTerm",
    "contrast_weights",
    "grid_edges",
    "read_uai",
    "regions_from_labels",
    "write_uai",
]
