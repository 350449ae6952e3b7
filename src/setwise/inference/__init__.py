"""Inference: maximum flows and minimum cuts."""

from setwise.inference._flow_graph import FlowGraph
from setwise.inference._maxflow import Flow, maxflow, maxflow_batch

__all__ = ["Flow", "FlowGraph", "maxflow", "maxflow_batch"]
