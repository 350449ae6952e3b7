"""Set functions: families, the Lovász extension, checks, decomposition, minimisation."""

from setwise.functions._base import SetFunction
from setwise.functions._check import check
from setwise.functions._decomposition._decompose import decompose
from setwise.functions._families._cardinality import Cardinality
from setwise.functions._families._concave import ConcaveOfModular
from setwise.functions._families._counts import Counts
from setwise.functions._families._coverage import Coverage
from setwise.functions._families._cut import Cut
from setwise.functions._families._modular import Modular
from setwise.functions._families._oracle import Oracle
from setwise.functions._families._ratio import Ratio
from setwise.functions._families._table import Table, tabulate
from setwise.functions._lovasz import base_vertex, lovasz_extension
from setwise.functions._maximization._maximize import maximize
from setwise.functions._minimization._minimize import minimize

__all__ = [
    "Cardinality",
    "ConcaveOfModular",
    "Counts",
    "Coverage",
    "Cut",
    "Modular",
    "Oracle",
    "Ratio",
    "SetFunction",
    "Table",
    "base_vertex",
    "check",
    "decompose",
    "lovasz_extension",
    "maximize",
    "minimize",
    "tabulate",
]
