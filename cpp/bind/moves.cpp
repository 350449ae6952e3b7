// Expansion and swap moves in one field, and best labels of many small fields at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "moves/batch_search.hpp"
#include "moves/expansion_move.hpp"
#include "moves/field_batch.hpp"
#include "moves/swap_move.hpp"
#include "moves/tree_proof.hpp"
#include "numeric/large_array.hpp"
#include "numeric/threads.hpp"
#include "numeric/transpose.hpp"

namespace {

using namespace setwise::bind;

// A wrapper that checks the preconditions of the kernel and keeps the arrays that it reads alive.
class BoundMoves {
  public:
    explicit BoundMoves(In2<double> unary)
        : n_(static_cast<Index>(unary.shape(0))),
          labels_(static_cast<Index>(unary.shape(1))),
          planes_(unary.size()) {
        constexpr Index most = std::numeric_limits<std::int32_t>::max();
        require(n_ < most && labels_ >= 1 && labels_ < 46341, "too large a field");
        setwise::transpose(unary.data(), n_, labels_, planes_.data());
        field_ = std::make_unique<setwise::MoveField>(static_cast<setwise::Variable>(n_),
                                                      static_cast<setwise::LabelIndex>(labels_),
                                                      planes_.data());
    }

    void add_potts(In<Index> edges, In<double> weights) {
        check_edges(edges);
        require(2 * weights.size() == edges.size(), "weights must have an entry an edge");
        for (std::size_t e = 0; e < weights.size(); ++e)
            require(weights.data()[e] >= 0 && std::isfinite(weights.data()[e]),
                    "weights must be finite and not negative");
        field_->pairs.add_potts(edges.data(), weights.data(), static_cast<Index>(weights.size()));
    }
    void add_tables(In<Index> edges, In<double> tables, In<double> weights) {
        check_edges(edges);
        const auto count = static_cast<Index>(edges.size() / 2), area = labels_ * labels_;
        const auto size = static_cast<Index>(tables.size());
        require(static_cast<Index>(weights.size()) == count, "weights must have an entry an edge");
        require(size == area || size == count * area,
                "tables must have labels**2 entries an edge, or once for all");
        field_->pairs.add_tables(edges.data(), hold(std::move(tables)), size == area,
                                 weights.data(), count);
    }
    void add_transitions(In<Index> edges, In<double> costs, In<double> concave) {
        check_edges(edges);
        require(static_cast<Index>(costs.size()) == labels_ * labels_, "costs must be labels**2");
        require(concave.size() == edges.size() / 2 + 1, "concave must have a value a count");
        const auto count = static_cast<Index>(edges.size() / 2);
        field_->pairs.add_transitions(edges.data(), count, costs.data(), hold(std::move(concave)));
        swaps_only_ = true;
    }
    void add_counts(In<Index> regions, In<Index> starts, In<double> table, In<Index> groups) {
        setwise::Layer layer = new_layer(setwise::Charge::concave, groups);
        require(starts.size() >= 1 && starts.data()[0] == 0, "starts must begin with 0");
        set_regions(layer, std::move(regions), static_cast<Index>(starts.size()) - 1);
        for (std::size_t r = 0; r + 1 < starts.size(); ++r)
            require(starts.data()[r + 1] - starts.data()[r] == layer.sizes[r] + 1,
                    "starts must leave a value a count");
        require(static_cast<Index>(table.size()) == starts.data()[starts.size() - 1],
                "starts must end with the length of table");
        layer.starts = hold(std::move(starts));
        layer.table = hold(std::move(table));
        field_->add_layer(std::move(layer));
    }
    void add_costs(In<double> costs, In<Index> groups) {
        setwise::Layer layer = new_layer(setwise::Charge::cost, groups);
        require(static_cast<Index>(costs.size()) >= layer.n_groups, "costs must be one a group");
        layer.costs.assign(costs.data(), costs.data() + costs.size());
        for (const double cost : layer.costs)
            require(cost >= 0 && std::isfinite(cost), "costs must be finite and not negative");
        layer.sizes.assign(1, n_);
        field_->add_layer(std::move(layer));
    }
    void add_robust(In<Index> regions, In<double> weights, In<double> truncation,
                    In<Index> groups) {
        setwise::Layer layer = new_layer(setwise::Charge::robust, groups);
        require(weights.size() == truncation.size(), "truncation must have an entry a weight");
        set_regions(layer, std::move(regions), static_cast<Index>(weights.size()));
        layer.weights = hold(std::move(weights));
        layer.truncation = hold(std::move(truncation));
        field_->add_layer(std::move(layer));
        swaps_only_ = true;
    }

    void start(In<Index> labels) {
        require(!started_ && static_cast<Index>(labels.size()) == n_, "labels must have n entries");
        for (std::size_t i = 0; i < labels.size(); ++i) check_label(labels.data()[i]);
        field_->start(labels.data());
        started_ = true;
    }

    double expand(Index a) {
        require(started_ && !swaps_only_, "start first, with terms that expansions take");
        const auto label = check_label(a);
        if (!expansion_) expansion_ = std::make_unique<setwise::ExpansionMove>(*field_);
        return expansion_->expand(label, poll_signals);
    }
    double swap(Index a, Index b) {
        check_pair(a, b);
        return swaps().swap(check_label(a), check_label(b), poll_signals);
    }
    void offer_swap(Index a, Index b) {
        check_pair(a, b);
        swaps().offer(check_label(a), check_label(b));
        offered_ = true;
    }
    bool round() { return offered().round(poll_signals); }
    double bound() { return offered().bound(); }
    double change() { return offered().change(); }
    double gap() { return offered().gap(); }
    double rounding() { return offered().rounding(); }
    double commit() {
        const double change = offered().commit();
        offered_ = false;
        return change;
    }
    void read(Out<Index> labels) {
        const auto& present = field_->present();
        require(started_ && labels.size() == present.size(), "labels must have n entries");
        std::copy(present.begin(), present.end(), labels.data());
    }

  private:
    const double* hold(In<double> array) {
        doubles_.push_back(std::move(array));
        return doubles_.back().data();
    }
    const Index* hold(In<Index> array) {
        indices_.push_back(std::move(array));
        return indices_.back().data();
    }
    setwise::SwapMove& swaps() {
        require(started_, "start with a labelling first");
        if (!swap_) swap_ = std::make_unique<setwise::SwapMove>(*field_);
        return *swap_;
    }
    setwise::SwapMove& offered() {
        require(offered_, "offer a swap first");
        return *swap_;
    }
    setwise::LabelIndex check_label(Index a) const {
        require(a >= 0 && a < labels_, "a label must lie between 0 and labels - 1");
        return static_cast<setwise::LabelIndex>(a);
    }
    static void check_pair(Index a, Index b) { require(a != b, "a swap needs two labels"); }
    void check_edges(const In<Index>& edges) const {
        require(!started_ && edges.size() % 2 == 0, "edges must be pairs");
        for (std::size_t e = 0; e < edges.size(); ++e)
            require(edges.data()[e] >= 0 && edges.data()[e] < n_, "edges must lie in the field");
        for (std::size_t e = 0; e < edges.size(); e += 2)
            require(edges.data()[e] != edges.data()[e + 1], "an edge must join two variables");
    }
    setwise::Layer new_layer(setwise::Charge charge, const In<Index>& groups) const {
        require(!started_ && static_cast<Index>(groups.size()) == labels_,
                "groups must have an entry a label");
        setwise::Layer layer{};
        layer.charge = charge;
        for (std::size_t j = 0; j < groups.size(); ++j) {
            require(groups.data()[j] >= -1 && groups.data()[j] < labels_, "no such group");
            layer.groups.push_back(static_cast<std::int32_t>(groups.data()[j]));
            layer.n_groups = std::max(layer.n_groups, layer.groups.back() + 1);
        }
        return layer;
    }
    void set_regions(setwise::Layer& layer, In<Index> regions, Index count) {
        require(static_cast<Index>(regions.size()) == n_, "regions must have n entries");
        require(count * layer.n_groups < std::numeric_limits<std::int32_t>::max(),
                "too many regions");
        layer.sizes.assign(static_cast<std::size_t>(count), 0);
        for (std::size_t i = 0; i < regions.size(); ++i) {
            const Index r = regions.data()[i];
            require(r >= -1 && r < count, "regions must be in range");
            if (r >= 0) ++layer.sizes[static_cast<std::size_t>(r)];
        }
        layer.regions = hold(std::move(regions));
    }

    Index n_, labels_;
    setwise::ZeroedArray<double> planes_;  // unaries (labels, n)
    std::unique_ptr<setwise::MoveField> field_;
    std::unique_ptr<setwise::ExpansionMove> expansion_;
    std::unique_ptr<setwise::SwapMove> swap_;
    std::vector<In<double>> doubles_;
    std::vector<In<Index>> indices_;
    bool started_ = false, swaps_only_ = false, offered_ = false;
};

// Check that starts are 0 <= s_1 <= ... up to `last`.
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
        batch_.node_starts = copy(node_starts);
        batch_.edge_starts = copy(edge_starts);
        batch_.edges = copy(edges);
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

    // regions (M,) for each layer, -1 for none; tables with one value per count for each region.
    void add_regions(In2<Index> regions, In<Index> region_starts, In<Index> table_starts,
                     In<double> table) {
        const Index nodes = batch_.node_starts.back();
        require(batch_.layers.empty() && static_cast<Index>(regions.shape(1)) == nodes,
                "regions must have a row of M for each layer, once");
        const std::vector<Index> starts = copy(region_starts), at_table = copy(table_starts);
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

    // `labels` (M,) holds the start and receives the answer; `energies` and `gaps` are (n,).
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

    // Compute the energies of labels.
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

    // Return the number of threads such that each has at least a fraction of a millisecond of work.
    Index worth_threads() const {
        const Index nodes = batch_.node_starts.back(), pairs = batch_.edge_starts.back();
        return 1 + ((nodes + pairs) * batch_.labels >> 14);
    }

    bool keeps_messages() const {
        // Messages of at most 256 MiB are kept from one step to the next; larger ones are
        // recomputed. Not tuned.
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
    std::vector<std::vector<double>> messages_;  // the messages of the last proofs, as warm starts
};

}  // namespace

void bind_moves(nb::module_& m) {
    nb::class_<BoundMoves>(m, "Moves")
        .def(nb::init<In2<double>>(), "unary"_a.noconvert())
        .def("add_potts", &BoundMoves::add_potts, "edges"_a.noconvert(), "weights"_a.noconvert())
        .def("add_tables", &BoundMoves::add_tables, "edges"_a.noconvert(), "tables"_a.noconvert(),
             "weights"_a.noconvert())
        .def("add_transitions", &BoundMoves::add_transitions, "edges"_a.noconvert(),
             "costs"_a.noconvert(), "concave"_a.noconvert())
        .def("add_counts", &BoundMoves::add_counts, "regions"_a.noconvert(), "starts"_a.noconvert(),
             "table"_a.noconvert(), "groups"_a.noconvert())
        .def("add_costs", &BoundMoves::add_costs, "costs"_a.noconvert(), "groups"_a.noconvert())
        .def("add_robust", &BoundMoves::add_robust, "regions"_a.noconvert(),
             "weights"_a.noconvert(), "truncation"_a.noconvert(), "groups"_a.noconvert())
        .def("start", &BoundMoves::start, "labels"_a.noconvert())
        .def("expand", &BoundMoves::expand, "a"_a, Unlocked())
        .def("swap", &BoundMoves::swap, "a"_a, "b"_a, Unlocked())
        .def("offer_swap", &BoundMoves::offer_swap, "a"_a, "b"_a, Unlocked())
        .def("round", &BoundMoves::round, Unlocked())
        .def("bound", &BoundMoves::bound)
        .def("change", &BoundMoves::change)
        .def("gap", &BoundMoves::gap)
        .def("rounding", &BoundMoves::rounding)
        .def("commit", &BoundMoves::commit, Unlocked())
        .def("read", &BoundMoves::read, "labels"_a.noconvert());
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
