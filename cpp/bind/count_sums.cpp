// Sums over counts, for setwise.inference. Sizes and index ranges are checked here.
#include <vector>

#include "bind/bind.hpp"
#include "bind/field_arguments.hpp"
#include "marginals/count_sums.hpp"
#include "numeric/threads.hpp"

namespace {

using namespace setwise::bind;

void count_sums(In<Index> starts, In<double> logits, In<double> heights, Out<double> logs,
                Out<double> q, Out<double> with_count, Out<double> counts, Index n_threads) {
    const auto n = static_cast<Index>(logits.size());
    require(starts.size() >= 1 && starts.data()[0] == 0, "starts must begin with 0");
    const auto factors = static_cast<Index>(starts.size()) - 1;
    for (Index f = 0; f < factors; ++f)
        require(starts.data()[f] <= starts.data()[f + 1], "starts must not fall");
    require(
        starts.data()[factors] == n && static_cast<Index>(heights.size()) == n + factors &&
            counts.size() == heights.size() && static_cast<Index>(logs.size()) == factors &&
            static_cast<Index>(q.size()) == n && static_cast<Index>(with_count.size()) == n,
        "heights and counts must have one entry more than members for each factor, all else one");
    const int workers = threads(n_threads);
    std::vector<setwise::CountSums> sums(static_cast<std::size_t>(workers));
    setwise::each_long_task(workers, workers, poll_signals, [&](Index worker, setwise::Poll poll) {
        for (Index f = worker; f < factors; f += workers) {
            const Index begin = starts.data()[f], end = starts.data()[f + 1];
            logs.data()[f] = sums[static_cast<std::size_t>(worker)](
                logits.data() + begin, end - begin, heights.data() + begin + f, q.data() + begin,
                with_count.data() + begin, counts.data() + begin + f, poll);
        }
    });
}

}  // namespace

void bind_count_sums(nb::module_& m) {
    m.def("count_sums", &count_sums, "starts"_a.noconvert(), "logits"_a.noconvert(),
          "heights"_a.noconvert(), "logs"_a.noconvert(), "q"_a.noconvert(),
          "with_count"_a.noconvert(), "counts"_a.noconvert(), "n_threads"_a, Unlocked());
}
