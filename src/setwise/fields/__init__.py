"""Random fields: energies over N variables with L labels, as unaries plus potentials."""

from setwise.fields._base import Potential
from setwise.fields._cardinality import CardinalityPotential
from setwise.fields._field import Field
from setwise.fields._label_cost import LabelCost
from setwise.fields._label_transition import LabelTransition
from setwise.fields._pairwise import Pairwise
from setwise.fields._potts import Potts
from setwise.fields._region_consistency import RegionConsistency
from setwise.fields._robust_pn import RobustPn

__all__ = [
    "CardinalityPotential",
    "Field",
    "LabelCost",
    "LabelTransition",
    "Pairwise",
    "Potential",
    "Potts",
    "RegionConsistency",
    "RobustPn",
]
