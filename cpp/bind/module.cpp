// The Python face of the kernels: the files of this folder are the only ones that know nanobind.
#include "bind/bind.hpp"

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of setwise; arguments are checked for size, not for meaning.";
    bind_boosting(m);
    bind_buckets(m);
    bind_count_sums(m);
    bind_cutting_planes(m);
    bind_decisions(m);
    bind_dual_blocks(m);
    bind_field_batch(m);
    bind_field_cut(m);
    bind_fields(m);
    bind_flows(m);
    bind_functions(m);
    bind_marginals(m);
    bind_messages(m);
    bind_moves(m);
    bind_poll(m);
    bind_relaxation(m);
    bind_sampling(m);
    bind_surrogates(m);
    bind_tracking(m);
}
