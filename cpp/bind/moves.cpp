// Expansion and swap moves for Python.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "bind/bind.hpp"
#include "moves/expansion_move.hpp"
#include "moves/swap_move.hpp"
#include "numeric/large_array.hpp"
#include "numeric/transpose.hpp"

using namespace setwise::bind;

namespace {

// Checks what a kernel takes for granted, and holds on to the arrays that it reads.
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
    void add_tables(In<Index> edges, In<double> tables) {
        check_edges(edges);
        require(static_cast<Index>(2 * tables.size()) ==
                    static_cast<Index>(edges.size()) * labels_ * labels_,
                "tables must have labels**2 entries an edge");
        const auto count = static_cast<Index>(edges.size() / 2);
        field_->pairs.add_tables(edges.data(), hold(std::move(tables)), count);
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

}  // namespace

void bind_moves(nb::module_& m) {
    nb::class_<BoundMoves>(m, "Moves")
        .def(nb::init<In2<double>>(), "unary"_a.noconvert())
        .def("add_potts", &BoundMoves::add_potts, "edges"_a.noconvert(), "weights"_a.noconvert())
        .def("add_tables", &BoundMoves::add_tables, "edges"_a.noconvert(), "tables"_a.noconvert())
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
        .def("commit", &BoundMoves::commit, Unlocked())
        .def("read", &BoundMoves::read, "labels"_a.noconvert());
}
