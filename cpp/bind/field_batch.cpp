// Best labels of many small fields at once, for Python.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "bind/bind.hpp"
#include "moves/batch_search.hpp"
#include "moves/field_batch.hpp"
#include "moves/tree_proof.hpp"
#include "numeric/threads.hpp"

using namespace setwise::bind;

namespace {

std::vector<Index> copied(const In<Index>& array) {
    return {array.data(), array.data() + array.size()};
}

// Starts 0 <= s_1 <= ... up to `last`.
void check_starts(const std::vector<Index>& starts, std::size_t count, Index last) {
    require(starts.size() == count + 1 && starts.front() == 0 && starts.back() == last &&
                std::is_sorted(starts.begin(), starts.end()),
            "starts must rise from 0 to the number of entries");
}

class BoundFieldBatch {
  public:
    BoundFieldBatch(In<Index> node_starts, In<Index> edge_starts, In<Index> edges, Index labels) {
        require(node_starts.size() >= 1 && labels >= 2 && labels < 46341 && edges.size() % 2 == 0,
                "a batch needs starts, pairs of nodes and at least two labels");
        batch_.labels = static_cast<setwise::LabelIndex>(labels);
        batch_.node_starts = copied(node_starts);
        batch_.edge_starts = copied(edge_starts);
        batch_.edges = copied(edges);
        const std::size_t n = node_starts.size() - 1;
        const Index nodes = batch_.node_starts.back();
        check_starts(batch_.node_starts, n, nodes);
        check_starts(batch_.edge_starts, n, static_cast<Index>(edges.size() / 2));
        for (std::size_t i = 0; i < n; ++i) {
            const Index begin = batch_.node_starts[i], end = batch_.node_starts[i + 1];
            require(end - begin < std::numeric_limits<std::int32_t>::max() / labels,
                    "too large a field");
            for (Index e = batch_.edge_starts[i]; e < batch_.edge_starts[i + 1]; ++e) {
                const Index u = edges.data()[2 * e], v = edges.data()[2 * e + 1];
                require(begin <= u && u < end && begin <= v && v < end && u != v,
                        "an edge must join two nodes of its graph");
            }
        }
        batch_.region_starts.assign(n + 1, 0);
        batch_.table_starts.assign(1, 0);
        cuts_.resize(n);
        messages_.resize(n);
    }

    BoundFieldBatch(const BoundFieldBatch&) = delete;

    // regions (M,) for each layer, -1 for none; tables of one value a count for each region.
    void add_regions(In2<Index> regions, In<Index> region_starts, In<Index> table_starts,
                     In<double> table) {
        const Index nodes = batch_.node_starts.back();
        require(batch_.layers.empty() && static_cast<Index>(regions.shape(1)) == nodes,
                "regions must have a row of M for each layer, once");
        const std::vector<Index> starts = copied(region_starts), at_table = copied(table_starts);
        require(!starts.empty() && starts.back() >= 0, "region_starts must have n + 1 entries");
        const auto count = static_cast<std::size_t>(starts.back());
        check_starts(starts, cuts_.size(), starts.back());
        check_starts(at_table, count, static_cast<Index>(table.size()));
        std::vector<Index> layer_of(count, -1), sizes(count, 0);
        for (std::size_t layer = 0; layer < regions.shape(0); ++layer)
            for (std::size_t i = 0; i < cuts_.size(); ++i)
                for (Index v = batch_.node_starts[i]; v < batch_.node_starts[i + 1]; ++v) {
                    const Index r = regions.data()[static_cast<Index>(layer) * nodes + v];
                    if (r == -1) continue;
                    require(starts[i] <= r && r < starts[i + 1],
                            "a region must be one of its graph");
                    Index& own = layer_of[static_cast<std::size_t>(r)];
                    require(own == -1 || own == static_cast<Index>(layer),
                            "a region must lie in one layer");
                    own = static_cast<Index>(layer);
                    ++sizes[static_cast<std::size_t>(r)];
                }
        for (std::size_t r = 0; r < count; ++r)
            require(at_table[r + 1] - at_table[r] == sizes[r] + 1,
                    "table_starts must leave a value a count");
        batch_.region_starts = starts;
        batch_.table_starts = at_table;
        batch_.table.assign(table.data(), table.data() + table.size());
        for (std::size_t layer = 0; layer < regions.shape(0); ++layer) {
            const Index* const row = regions.data() + static_cast<Index>(layer) * nodes;
            batch_.layers.emplace_back(row, row + nodes);
        }
    }

    // labels (M,): the start, and the answer; energies and gaps (n,).
    void search(In<double> unary, In<double> edges, In<double> regions, In<double> costs,
                Out<Index> labels, Out<double> energies, Out<double> gaps, bool prove,
                int threads) {
        const setwise::BatchWeights weights = check(unary, edges, regions, costs);
        check_labels(labels.data(), labels.size(), energies.size(), -1);
        require(gaps.size() == cuts_.size() && threads >= 1, "gaps must have n entries");
        require(!prove || batch_.labels == 2 || (batch_.layers.empty() && costs.size() == 0),
                "more than two labels are proved with edges alone");
        const auto one = [&](std::int64_t i, setwise::Poll poll) {
            const setwise::FieldOfBatch field(batch_, weights, i);
            std::int64_t* const z = labels.data() + field.first_node;
            if (std::find(z, z + field.n, -1) != z + field.n) field.least(z);
            gaps.data()[i] = gap_of(field, i, z, prove, poll);
            energies.data()[i] = field.energy(z);
            poll();
        };
        setwise::each_long_task(batch_.count(),
                                static_cast<int>(std::min<Index>(threads, worth_threads())),
                                poll_signals, one);
    }

    // What labels cost.
    void measure(In<double> unary, In<double> edges, In<double> regions, In<double> costs,
                 In<Index> labels, Out<double> energies) {
        const setwise::BatchWeights weights = check(unary, edges, regions, costs);
        check_labels(labels.data(), labels.size(), energies.size(), 0);
        for (Index i = 0; i < batch_.count(); ++i) {
            const setwise::FieldOfBatch field(batch_, weights, i);
            energies.data()[i] = field.energy(labels.data() + field.first_node);
            poll_now_and_then(i);
        }
    }

  private:
    void check_labels(const Index* labels, std::size_t count, std::size_t answers,
                      Index least) const {
        require(static_cast<Index>(count) == batch_.node_starts.back() && answers == cuts_.size(),
                "labels must have M entries, and answers n");
        for (std::size_t i = 0; i < count; ++i)
            require(labels[i] >= least && labels[i] < batch_.labels,
                    "a label must lie between 0 and labels - 1, or at a start be -1 for none");
    }

    double gap_of(const setwise::FieldOfBatch& field, std::int64_t i, std::int64_t* z, bool prove,
                  setwise::Poll poll) {
        if (batch_.labels == 2 && !field.has_edges_only())
            return setwise::swap_both(field, z, poll);
        if (batch_.labels == 2) {
            auto& cut = cuts_[static_cast<std::size_t>(i)];
            if (!cut) cut = std::make_unique<setwise::KeptCut>(field);
            return cut->cut(field, z, poll);
        }
        if (prove) {
            std::vector<double> fresh;
            auto& messages = keeps_messages() ? messages_[static_cast<std::size_t>(i)] : fresh;
            return setwise::TreeProof(field).search(z, messages, poll);
        }
        setwise::expand_all(field, z, poll);
        return std::numeric_limits<double>::infinity();
    }

    // A thread is for a fraction of a millisecond of work at least.
    Index worth_threads() const {
        const Index nodes = batch_.node_starts.back(), pairs = batch_.edge_starts.back();
        return 1 + ((nodes + pairs) * batch_.labels >> 14);
    }

    bool keeps_messages() const {
        constexpr std::size_t most_bytes = std::size_t(1) << 28;
        return batch_.edges.size() / 2 * static_cast<std::size_t>(batch_.labels + 3) <=
               most_bytes / sizeof(double);
    }

    setwise::BatchWeights check(const In<double>& unary, const In<double>& edges,
                                const In<double>& regions, const In<double>& costs) const {
        require(static_cast<Index>(unary.size()) == batch_.node_starts.back() * batch_.labels &&
                    2 * edges.size() == batch_.edges.size() &&
                    static_cast<Index>(regions.size()) == batch_.region_starts.back() &&
                    (costs.size() == 0 ||
                     static_cast<Index>(costs.size()) == batch_.count() * batch_.labels),
                "unary must have M rows of labels, weights an entry an edge, a region, a label");
        for (std::size_t k = 0; k < unary.size(); ++k)
            require(std::isfinite(unary.data()[k]), "unaries must be finite");
        for (const auto& values : {edges, regions, costs})
            for (std::size_t k = 0; k < values.size(); ++k)
                require(values.data()[k] >= 0 && std::isfinite(values.data()[k]),
                        "weights must be finite and not negative");
        return {unary.data(), edges.data(), regions.data(), costs.size() ? costs.data() : nullptr};
    }

    setwise::FieldBatch batch_;
    std::vector<std::unique_ptr<setwise::KeptCut>> cuts_;
    std::vector<std::vector<double>> messages_;  // of the last proofs
};

}  // namespace

void bind_field_batch(nb::module_& m) {
    nb::class_<BoundFieldBatch>(m, "FieldBatch")
        .def(nb::init<In<Index>, In<Index>, In<Index>, Index>(), "node_starts"_a.noconvert(),
             "edge_starts"_a.noconvert(), "edges"_a.noconvert(), "labels"_a)
        .def("add_regions", &BoundFieldBatch::add_regions, "regions"_a.noconvert(),
             "region_starts"_a.noconvert(), "table_starts"_a.noconvert(), "table"_a.noconvert())
        .def("measure", &BoundFieldBatch::measure, "unary"_a.noconvert(), "edges"_a.noconvert(),
             "regions"_a.noconvert(), "costs"_a.noconvert(), "labels"_a.noconvert(),
             "energies"_a.noconvert(), Unlocked())
        .def("search", &BoundFieldBatch::search, "unary"_a.noconvert(), "edges"_a.noconvert(),
             "regions"_a.noconvert(), "costs"_a.noconvert(), "labels"_a.noconvert(),
             "energies"_a.noconvert(), "gaps"_a.noconvert(), "prove"_a, "threads"_a, Unlocked());
}
