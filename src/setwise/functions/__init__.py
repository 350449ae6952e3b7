"""Set functions: families, the Lovász extension, checks, decomposition, minimisation."""

from setwise.functions._base import SetFunction
from setwise.functions._cardinality import Cardinality
from setwise.functions._check import Check, check
from setwise.functions._compose import Complement, Contraction, Restriction, Sum
from setwise.functions._concave import ConcaveOfModular
from setwise.functions._counts import Counts
from setwise.functions._coverage import Coverage
from setwise.functions._cut import Cut
from setwise.functions._decompose import Decomposition, decompose
from setwise.functions._lovasz import base_vertex, lovasz_extension
from setwise.functions._maximize import maximize
from setwise.functions._maximum import Maximum
from setwise.functions._minimize import minimize
from setwise.functions._minimum import Minimum
from setwise.functions._modular import Modular
from setwise.functions._oracle import Oracle
from setwise.functions._ratio import Ratio
from setwise.functions._table import Table, tabulate

__all__ = [
    "Cardinality",
    "Check",
    "Complement",
    "ConcaveOfModular",
    "Contraction",
    "Counts",
    "Coverage",
    "Cut",
    "Decomposition",
    "Maximum",
    "Minimum",
    "Modular",
    "Oracle",
    "Ratio",
    "Restriction",
    "SetFunction",
    "Sum",
    "Table",
    "base_vertex",
    "check",
    "decompose",
    "lovasz_extension",
    "maximize",
    "minimize",
    "tabulate",
]
