"""The least upper bound on log Z by projected logits."""

from __future__ import annotations

from dataclasses import replace

from setwise._foundation._progress import is_heard
from setwise.fields._field import Field
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._relaxation._double_precision import double_pass
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation


def projection(field: Field, options: Options) -> Solution:
    r"""Minimise :math:`\sum_i \log \sum_j \exp(-s_{ij} / t)` over the base polytope, by blocks.

    With all labels but j fixed, the best block of label j is the Euclidean projection of
    :math:`s + t\,\mathrm{logit}\,p_j`, so a pass over all blocks has no step size; passes are
    extrapolated, and one that raises the bound is undone. Memory: 2 G + 4 arrays of N L numbers of
    ``dtype``, G the number of groups of disjoint blocks (4-connected grid and one layer of regions:
    3), and as many numbers as ``state`` holds (G arrays). With "float32" s lies in the base
    polytope up to rounding, 6e-8 of its entries, so one pass in double precision comes last, from
    which the bound, the gap and the probabilities are. The bounds are raised by what rounding may
    have taken from them, those before that pass by as much more.
    """
    t = options.temperature
    relaxation = Relaxation(field)
    if options.start is not None and options.state is None:
        raise ValueError("init must be a result of projection, got one without its blocks")
    size = sum(len(group.variables) * max(len(group.slots), 1) for group in relaxation.groups)
    if options.state is not None and options.state.size != size:
        raise ValueError(
            f"init must be a result with {size} block entries, got {options.state.size}: "
            "its field had other edges, regions or label costs"
        )
    # one label leaves nothing to sweep: the blocks where a descent starts are as good as any
    state = None
    if options.state is not None and field.n_labels > 1:
        state = relaxation.within(options.state)
    dtype = options.dtype if field.n_labels > 1 else "float64"
    descent = Descent(relaxation, t, options.n_threads, state, dtype=dtype, unit=t)
    options.watch.lap("set-up")
    constant = relaxation.constant / t - rounding_of_logs(field, t)

    def report(now: Descent) -> bool:
        if not is_heard(options.callback):
            return options.report(now.n_iter, now.objective / t)
        lost = now.rounding() / t
        value = now.objective / t - constant + lost
        return options.report(now.n_iter, value, now.relative_gap, now.gap / t + lost)

    if state is not None:
        descent.sweep()  # blocks of other weights need not lie in this base polytope
        descent.history = descent.history[1:]
    # the gap after the pass in double precision decides, and may be larger by rounding
    tol = options.tol
    if dtype == "float32":
        tol = min(tol, max(tol / 4, tol - 3e-6, 2.5e-7))
    try:
        converged, interrupted = descent.run(tol, options.max_iter, callback=report)
    except KeyboardInterrupt:  # in a pass, which is undone, or after one that is not looked at yet
        descent.look_again()
        converged, interrupted = descent.relative_gap <= options.tol, True
    descent.finish()
    blocks = descent.blocks()
    lost = descent.rounding(blocks) / t
    history = [value / t - constant + lost for value in descent.history]
    solution = Solution(
        probabilities=descent.probabilities(),
        upper=history[-1],
        gap=descent.gap / t + lost,
        relative_gap=descent.relative_gap,
        n_iter=descent.n_iter,
        converged=converged,
        interrupted=interrupted,
        history=history,
        state=blocks.astype(options.dtype, copy=False),
    )
    if dtype == "float64" or solution.state is None:
        return solution
    del descent  # the pass needs as much memory
    try:
        exact = double_pass(relaxation, t, solution.state, options.n_threads)
    except KeyboardInterrupt:  # without it there is no bound
        interrupted = True
        exact = double_pass(relaxation, t, solution.state, options.n_threads)
    upper = exact.objective / t - constant + exact.rounding / t
    return replace(
        solution,
        probabilities=exact.probabilities,
        upper=upper,
        gap=(exact.gap + exact.rounding) / t,
        relative_gap=exact.relative_gap,
        converged=exact.relative_gap <= options.tol,
        interrupted=interrupted,
        history=[*history[:-1], upper],
    )
