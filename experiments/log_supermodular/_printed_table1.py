"""The printed figures of the log-supermodular paper's Table 1, for bandwidths 0, 5, 10 and 20."""

from __future__ import annotations

AREA = {
    "UNARY": (0.8254, 0.8602, 0.8841, 0.9112),
    "PAIR": (0.8443, 0.8708, 0.8905, 0.9119),
    "BP PAIR": (0.7727, 0.8034, 0.8245, 0.8504),
    "MF PAIR": (0.7663, 0.8006, 0.8226, 0.8499),
    "2-LAYER": (0.8735, 0.9035, 0.9132, 0.9233),
    "2-LAYER-PAIR": (0.8886, 0.9184, 0.9278, 0.9371),
    "3-LAYER": (0.8904, 0.9173, 0.9264, 0.9355),
}
DIVERGENCE = {
    "UNARY": (3.01, 2.39, 2.00, 1.55),
    "PAIR": (2.82, 2.22, 1.86, 1.45),
    "BP PAIR": (12.03, 9.66, 8.14, 6.34),
    "MF PAIR": (9.71, 8.62, 7.37, 5.77),
    "2-LAYER": (1.68, 1.16, 0.99, 0.79),
    "2-LAYER-PAIR": (1.62, 1.14, 0.97, 0.78),
    "3-LAYER": (1.57, 1.11, 0.95, 0.77),
}
ACCURACY = {  # per cent, standard error, seconds
    "UNARY": (83.71, 1.81, None),
    "PAIR": (83.92, 1.81, 12.58),
    "BP PAIR": (83.91, 1.81, 25.64),
    "MF PAIR": (83.83, 1.82, 203.53),
    "2-LAYER": (88.55, 1.80, 12.53),
    "2-LAYER-PAIR": (88.48, 1.68, 20.10),
    "3-LAYER": (88.61, 1.70, 15.86),
    "ROBUST-PN": (86.5, 1.0, 30.0),
}
