// A network of variables, unaries and factors in a form whose numbers are all nonnegative, and a
// bound that grows as costs are moved from factors to variables and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "factors/release.hpp"

namespace setwise {

// A sum of multiples of one power of two without rounding: `rest` holds the rounding error of the
// float.
struct ExactSum {
    double sum = 0, rest = 0;

    void add(double x) {
        const double next = sum + x, second = next - sum;
        rest += (sum - (next - second)) + (x - second);
        sum = next;
    }
    double minus(const ExactSum& other) const { return (sum - other.sum) + (rest - other.rest); }
    // The largest float that is not above the sum.
    double below() const {
        const double total = sum + rest, back = total - sum;
        const double lost = (sum - (total - back)) + (rest - back);
        return lost < 0 ? std::nextafter(total, -unbounded) : total;
    }
};

// The energy is
//     bound + sum_i u_i(x_i) + sum_f (t_f(x_f) - sum over members i of f of m_fi(x_i)),
// with the same value for every labelling whatever the messages m are, and every bracket is at least
// 0 for labels that are still allowed. So `bound` is a lower bound. A visit of a variable receives
// the min-marginals of its factors, adds the least cost to the bound, removes labels that are too
// expensive, and gives shares of the rest to the factors ahead, as in sequential reweighted message
// passing (Kolmogorov, 2015).
//
// All numbers are multiples of `grid`, a power of two, and so small that their sums are exact. Given
// numbers are rounded down to such multiples. So the bound has no further rounding error.
//
// `mark` begins a level, and `undo` takes back all changes since the latest one.
class SoftNetwork {
  public:
    using Index = std::int64_t;

    SoftNetwork(Index variables, Index label_count, std::vector<double> unary)
        : n(variables), labels(label_count), unary_(std::move(unary)) {}

    // Add factors over k variables each: one table for each, or one for all, the last variable
    // fastest; infinite entries are forbidden.
    void add_tables(const std::vector<Index>& scopes, const std::vector<Index>& sides,
                    const std::vector<double>& tables) {
        const Index k = static_cast<Index>(sides.size());
        const Index count = static_cast<Index>(scopes.size()) / k;
        Index cells = 1;
        for (const Index side : sides) cells *= side;
        const bool shared = static_cast<Index>(tables.size()) == cells;
        const Index first = static_cast<Index>(tables_.size());
        tables_.insert(tables_.end(), tables.begin(), tables.end());
        const Index shape = static_cast<Index>(sides_.size());
        sides_.push_back(sides);
        for (Index f = 0; f < count; ++f)
            add_factor(scopes.data() + f * k, k, {first + (shared ? 0 : f * cells), shape, 0.0});
    }

    void add_potts(const std::vector<Index>& ends, const std::vector<double>& weights) {
        for (std::size_t e = 0; e < weights.size(); ++e)
            add_factor(ends.data() + 2 * e, 2, {-1, -1, weights[e]});
    }

    // Choose the grid and set up all costs, after the last factor was added.
    void begin() {
        index();
        choose_grid();
        messages_.assign(static_cast<std::size_t>((n + members()) * labels), 0.0);
        saved_at_.assign(static_cast<std::size_t>(n + members()), 0);
        size_.assign(n, 0);
        size_saved_at_.assign(n, 0);
        domain_.resize(n * labels);
        place_.assign(n * labels, 0);
        stale_.assign(members(), 1);
        dirty_.assign(n, both);
        for (Index i = 0; i < n; ++i)
            for (Index x = 0; x < labels; ++x) {
                domain_[i * labels + x] = x;
                place_[i * labels + x] = x;
            }
        std::fill(size_.begin(), size_.end(), labels);
        for (Index i = 0; i < n; ++i) {
            double* const row = messages_.data() + i * labels;
            double least = unbounded;
            for (Index x = 0; x < labels; ++x) least = std::min(least, unary_[i * labels + x]);
            for (Index x = labels; x-- > 0;) {
                if (unary_[i * labels + x] == unbounded) {
                    remove(i, x);
                    continue;
                }
                row[x] = unary_[i * labels + x] - least;
            }
            if (least < unbounded) bound_.add(least);
        }
        for (Index f = 0; f < factors(); ++f) {  // the constants that make factors nonnegative
            const double least = least_of(f);
            bound_.add(least);
            least_[f] = least;
            if (kind_[f].shape < 0) continue;
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m)  // labels beyond a table's sides
                for (Index x = labels; x-- > sides_of(f)[m - starts_[f]];)
                    if (allowed(variable_[m], x)) remove(variable_[m], x);
        }
    }

    Index members() const { return static_cast<Index>(variable_.size()); }
    Index factors() const { return static_cast<Index>(kind_.size()); }
    Index size(Index i) const { return size_[i]; }
    const Index* domain(Index i) const { return domain_.data() + i * labels; }
    bool allowed(Index i, Index x) const { return place_[i * labels + x] < size_[i]; }
    double cost(Index i, Index x) const { return messages_[i * labels + x]; }
    const ExactSum& bound() const { return bound_; }
    double grid() const { return grid_; }
    // The largest amount by which rounding the given numbers down lowers an energy.
    double rounded() const { return rounded_; }
    // The factor at which the last propagation failed, -1 if none.
    Index failed() const { return failed_; }
    const std::vector<Index>& starts() const { return starts_; }
    const std::vector<Index>& variables() const { return variable_; }
    std::int64_t work() const { return work_; }

    // Labels of at least this excess over the bound are removed; unbounded if nothing is known.
    void set_limit(const ExactSum& limit, bool known) {
        limit_ = limit;
        limited_ = known;
    }
    double left() const { return limited_ ? limit_.minus(bound_) : unbounded; }

    // The energy of a labelling in rounded numbers; false if it is forbidden.
    bool energy(const Index* x, ExactSum& total) const {
        total = ExactSum();
        for (Index i = 0; i < n; ++i) {
            if (unary_[i * labels + x[i]] == unbounded) return false;
            total.add(unary_[i * labels + x[i]]);
        }
        for (Index f = 0; f < factors(); ++f) {
            double price;
            if (kind_[f].shape < 0) {
                price =
                    x[variable_[starts_[f]]] == x[variable_[starts_[f] + 1]] ? 0 : kind_[f].weight;
            } else {
                Index cell = 0;
                for (Index m = starts_[f]; m < starts_[f + 1]; ++m) {
                    const Index side = sides_of(f)[m - starts_[f]];
                    if (x[variable_[m]] >= side) return false;
                    cell = cell * side + x[variable_[m]];
                }
                price = tables_[kind_[f].table + cell];
            }
            if (price == unbounded) return false;
            total.add(price);
        }
        return true;
    }

    Index level() const { return static_cast<Index>(marks_.size()); }

    void mark() {
        marks_.push_back({trail_.size(), sizes_.size(), flags_.size(), bound_});
        stamps_.push_back(++stamp_);
    }

    void undo() {
        const Mark& mark = marks_.back();
        const std::size_t step = static_cast<std::size_t>(labels) + 1;
        for (std::size_t at = trail_.size(); at > mark.trail; at -= step) {
            const Index row = static_cast<Index>(trail_[at - 1]);
            std::copy(trail_.begin() + (at - step), trail_.begin() + (at - 1),
                      messages_.begin() + row * labels);
            saved_at_[row] = 0;
        }
        trail_.resize(mark.trail);
        for (std::size_t at = sizes_.size(); at > mark.sizes; --at) {
            size_[sizes_[at - 1].first] = sizes_[at - 1].second;
            size_saved_at_[sizes_[at - 1].first] = 0;
        }
        sizes_.resize(mark.sizes);
        std::fill(dirty_.begin(), dirty_.end(), 0);
        for (std::size_t at = flags_.size(); at > mark.flags; --at) {
            const Index m = flags_[at - 1] >> 1;
            stale_[m] = flags_[at - 1] & 1;
        }
        flags_.resize(mark.flags);
        bound_ = mark.bound;
        marks_.pop_back();
        stamps_.pop_back();
    }

    // Remove a label, and mark the neighbours of its variable for a visit. Return whether the
    // variable has labels left.
    bool remove(Index i, Index x) {
        if (!allowed(i, x)) return size_[i] > 0;
        const Index now = stamps_.empty() ? -1 : stamps_.back();
        if (now >= 0 && size_saved_at_[i] != now) {
            sizes_.push_back({i, size_[i]});
            size_saved_at_[i] = now;
        }
        Index* const row = domain_.data() + i * labels;
        Index* const place = place_.data() + i * labels;
        const Index at = place[x], last = --size_[i], other = row[last];
        std::swap(row[at], row[last]);
        place[x] = last;
        place[other] = at;
        dirty_[i] = both;
        for (Index k = own_starts_[i]; k < own_starts_[i + 1]; ++k) mark_others(own_[k]);
        return size_[i] > 0;
    }

    bool assign(Index i, Index x) {
        while (size_[i] > 1) {
            const Index* const row = domain(i);
            remove(i, row[size_[i] - 1] == x ? row[size_[i] - 2] : row[size_[i] - 1]);
        }
        return size_[i] == 1 && row_of(i)[0] == x;
    }

    // Remove the labels of all variables that are too expensive, now that the limit has changed.
    // Return whether every variable has one left.
    bool prune() {
        for (Index i = 0; i < n; ++i)
            if (!prune(i)) return false;
        return true;
    }

    // Visit the variables forward or backward, in a search only those that have changed. Return
    // false if there is no labelling below the limit.
    template <class Poll>
    bool pass(bool forward, Poll poll) {
        failed_ = -1;
        for (Index k = 0; k < n; ++k) {
            const Index i = forward ? k : n - 1 - k;
            const bool is_new = (dirty_[i] & (forward ? 1 : 2)) != 0;
            if (!is_new && (size_[i] == 1 || !stamps_.empty())) continue;
            if ((++visits_ & 63) == 0) poll();
            if (!visit(i, forward)) {
                failed_ = i;
                return false;
            }
        }
        return true;
    }

    // Pass until the bound hardly rises: by less than `little` of the distance to the limit.
    template <class Poll>
    bool propagate(Index most, double little, Poll poll) {
        if (limited_ && left() <= 0) return false;
        for (Index k = 0; k < most; ++k) {
            const ExactSum before = bound_;
            if (!pass(true, poll) || !pass(false, poll)) return false;
            if (k > 0 && !(bound_.minus(before) > little * (limited_ ? left() : 0.0))) break;
        }
        return true;
    }

    // ---- Windows: the variables whose costs exceed the bound, before any level was begun.

    // Write for each variable the costs above the bound of a labelling, at the variable and its
    // factors: their sum is the energy minus the bound, where factors count once for each of their
    // members. Labels that were removed are first replaced by the cheapest ones.
    void pays(Index* x, double* paid) const {
        for (Index i = 0; i < n; ++i) {
            if (!allowed(i, x[i])) x[i] = cheapest(i);
            paid[i] = cost(i, x[i]);
        }
        for (Index f = 0; f < factors(); ++f) {
            const double price = price_of(f, x);
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m) paid[variable_[m]] += price;
        }
    }

    // Let each variable in turn take its best label given those before it.
    void decode(Index* x) const {
        std::vector<double> total(labels);
        for (Index i = 0; i < n; ++i) {
            for (Index k = 0; k < size_[i]; ++k) total[row_of(i)[k]] = cost(i, row_of(i)[k]);
            for (Index k = own_starts_[i]; k < own_starts_[i + 1]; ++k) {
                const Index f = owner_[own_[k]];
                if (starts_[f + 1] - starts_[f] != 2 || is_first_[own_[k]]) continue;
                for (Index q = 0; q < size_[i]; ++q) {
                    x[i] = row_of(i)[q];
                    total[x[i]] += price_of(f, x);
                }
            }
            x[i] = row_of(i)[0];
            for (Index k = 1; k < size_[i]; ++k) {
                const Index y = row_of(i)[k];
                if (total[y] < total[x[i]] || (total[y] == total[x[i]] && y < x[i])) x[i] = y;
            }
        }
    }

    // Give the costs of the variables outside a window to the factors that they share with it, and
    // let the window receive what these factors then cost whatever the outside labels.
    template <class Poll>
    bool push(const std::uint8_t* inside, Poll poll) {
        for (Index j = 0; j < n; ++j) {
            if (inside[j]) continue;
            if ((j & 1023) == 0) poll();
            crossing_.clear();
            for (Index k = own_starts_[j]; k < own_starts_[j + 1]; ++k)
                if (meets(owner_[own_[k]], inside)) crossing_.push_back(own_[k]);
            if (!crossing_.empty()) give(j, crossing_, 1.0 / static_cast<double>(crossing_.size()));
        }
        for (Index i = 0; i < n; ++i) {
            if (!inside[i]) continue;
            if ((i & 63) == 0) poll();
            if (!take(i)) return false;
        }
        return true;
    }

    // Write costs of the variables of a window, such that their sum and the given tables of the
    // factors inside are the costs of the window above the bound, plus the constant that is
    // returned. All other costs are at least 0.
    double window(const std::uint8_t* inside, double* costs) const {
        for (Index i = 0; i < n; ++i)
            for (Index x = 0; x < labels; ++x)
                costs[i * labels + x] = allowed(i, x) ? cost(i, x) : unbounded;
        double constant = 0;
        for (Index f = 0; f < factors(); ++f) {
            if (!within(f, inside)) continue;
            constant += least_[f];
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m) {
                const double* const to = messages_.data() + (n + m) * labels;
                for (Index x = 0; x < labels; ++x) costs[variable_[m] * labels + x] -= to[x];
            }
        }
        return constant;
    }

    const Index n, labels;

  private:
    bool meets(Index f, const std::uint8_t* inside) const {
        for (Index m = starts_[f]; m < starts_[f + 1]; ++m)
            if (inside[variable_[m]]) return true;
        return false;
    }

    bool within(Index f, const std::uint8_t* inside) const {
        for (Index m = starts_[f]; m < starts_[f + 1]; ++m)
            if (!inside[variable_[m]]) return false;
        return true;
    }

    Index cheapest(Index i) const {
        Index best = row_of(i)[0];
        for (Index k = 1; k < size_[i]; ++k) {
            const Index x = row_of(i)[k];
            if (cost(i, x) < cost(i, best) || (cost(i, x) == cost(i, best) && x < best)) best = x;
        }
        return best;
    }

    // Return the cost of a factor above its messages, for allowed labels.
    double price_of(Index f, const Index* x) const {
        double price;
        if (kind_[f].shape < 0) {
            const Index m = starts_[f];
            price = x[variable_[m]] == x[variable_[m + 1]] ? 0 : kind_[f].weight;
        } else {
            Index cell = 0;
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m)
                cell = cell * sides_of(f)[m - starts_[f]] + x[variable_[m]];
            price = tables_[kind_[f].table + cell];
        }
        for (Index m = starts_[f]; m < starts_[f + 1]; ++m)
            price -= messages_[(n + m) * labels + x[variable_[m]]];
        return price - least_[f];
    }

    // In a search, the smallest cost that a variable gives, as a share of the distance to the limit.
    static constexpr double notable = 1e-3;
    static constexpr char both = 3;  // a variable is to be visited forward (1) and backward (2)

    struct Kind {
        Index table, shape;  // -1 for Potts
        double weight;
    };
    struct Mark {
        std::size_t trail, sizes, flags;
        ExactSum bound;
    };

    void add_factor(const Index* scope, Index k, Kind kind) {
        if (starts_.empty()) starts_.push_back(0);
        variable_.insert(variable_.end(), scope, scope + k);
        starts_.push_back(static_cast<Index>(variable_.size()));
        kind_.push_back(kind);
        widest_ = std::max(widest_, k);
    }

    const std::vector<Index>& sides_of(Index f) const { return sides_[kind_[f].shape]; }
    const Index* row_of(Index i) const { return domain_.data() + i * labels; }

    void index() {
        if (starts_.empty()) starts_.push_back(0);
        owner_.resize(variable_.size());
        own_starts_.assign(n + 1, 0);
        for (const Index i : variable_) ++own_starts_[i + 1];
        for (Index i = 0; i < n; ++i) own_starts_[i + 1] += own_starts_[i];
        own_.resize(variable_.size());
        std::vector<Index> next(own_starts_.begin(), own_starts_.end() - 1);
        ahead_.assign(n, 0);
        std::vector<Index> behind(n, 0);
        is_last_.resize(variable_.size());
        is_first_.resize(variable_.size());
        for (Index f = 0; f < factors(); ++f) {
            const auto first = variable_.begin() + starts_[f],
                       end = variable_.begin() + starts_[f + 1];
            const Index low = *std::min_element(first, end), high = *std::max_element(first, end);
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m) {
                owner_[m] = f;
                own_[next[variable_[m]]++] = m;
                is_first_[m] = variable_[m] == low;
                is_last_[m] = variable_[m] == high;
                ahead_[variable_[m]] += !is_last_[m];
                behind[variable_[m]] += !is_first_[m];
            }
        }
        share_.resize(n);
        for (Index i = 0; i < n; ++i)
            share_[i] = 1.0 / static_cast<double>(std::max<Index>({ahead_[i], behind[i], 1}));
        least_.assign(factors(), 0.0);
        marginal_.resize(labels);
    }

    // The grid is so fine that a number as large as all costs at a variable together has 50 bits,
    // fewer if a factor has many variables, because sums over its members must be exact too.
    void choose_grid() {
        std::vector<double> size(n, 0.0);
        for (Index i = 0; i < n; ++i)
            for (Index x = 0; x < labels; ++x)
                if (unary_[i * labels + x] < unbounded)
                    size[i] = std::max(size[i], 2 * std::abs(unary_[i * labels + x]));
        std::vector<double> range(factors(), 0.0);
        for (Index f = 0; f < factors(); ++f) {
            range[f] = 2 * std::abs(kind_[f].weight);
            if (kind_[f].shape >= 0)
                for (Index c = 0; c < cells_of(f); ++c)
                    if (tables_[kind_[f].table + c] < unbounded)
                        range[f] = std::max(range[f], 2 * std::abs(tables_[kind_[f].table + c]));
            for (Index m = starts_[f]; m < starts_[f + 1]; ++m) size[variable_[m]] += range[f];
        }
        double largest = 0;
        for (const double one : size) largest = std::max(largest, one);
        int bits = 52;
        for (Index k = 1; k < widest_ + 1; k *= 2) --bits;
        int exponent = 0;
        if (largest > 0) std::frexp(largest, &exponent);
        grid_ = std::ldexp(1.0, std::max(exponent - bits, -1000));
        most_ = std::ldexp(grid_, bits + 1);
        Index lossy = 0;
        for (Index i = 0; i < n; ++i) {
            bool rounds = false;
            for (Index x = 0; x < labels; ++x) rounds |= round_down(unary_[i * labels + x]);
            lossy += rounds;
        }
        std::vector<char> rounded(tables_.size(), 0);
        for (std::size_t c = 0; c < tables_.size(); ++c) rounded[c] = round_down(tables_[c]);
        for (Index f = 0; f < factors(); ++f) {
            if (kind_[f].shape < 0) {
                lossy += round_down(kind_[f].weight);
                continue;
            }
            const auto first = rounded.begin() + kind_[f].table;
            lossy += std::find(first, first + cells_of(f), 1) != first + cells_of(f);
        }
        rounded_ = grid_ * static_cast<double>(lossy);
    }

    bool round_down(double& x) const {
        if (x == unbounded) return false;
        const double down = std::floor(x / grid_) * grid_;
        const bool changed = down != x;
        x = down;
        return changed;
    }

    Index cells_of(Index f) const {
        Index cells = 1;
        for (const Index side : sides_of(f)) cells *= side;
        return cells;
    }

    double least_of(Index f) const {
        if (kind_[f].shape < 0) return 0;
        const auto first = tables_.begin() + kind_[f].table;
        return *std::min_element(first, first + cells_of(f));
    }

    double* message(Index m) { return messages_.data() + (n + m) * labels; }

    void save(Index row) {
        if (stamps_.empty() || saved_at_[row] == stamps_.back()) return;
        saved_at_[row] = stamps_.back();
        trail_.insert(trail_.end(), messages_.begin() + row * labels,
                      messages_.begin() + (row + 1) * labels);
        trail_.push_back(static_cast<double>(row));
    }

    void set_stale(Index m, bool now) {
        if (stale_[m] == now) return;
        if (!marks_.empty()) flags_.push_back(2 * m + stale_[m]);
        stale_[m] = now;
    }

    void mark_others(Index m) {
        const Index f = owner_[m];
        for (Index other = starts_[f]; other < starts_[f + 1]; ++other)
            if (other != m) {
                set_stale(other, true);
                dirty_[variable_[other]] = both;
            }
    }

    bool prune(Index i) {
        if (limited_) {
            const double most = left();
            const double* const cost = messages_.data() + i * labels;
            const Index* const row = row_of(i);
            for (Index k = size_[i]; k-- > 0;)
                if (cost[row[k]] >= most) remove(i, row[k]);
        }
        return size_[i] > 0;
    }

    // Compute the least cost of factor f for each allowed label of its member m.
    void marginals(Index m) {
        const Index f = owner_[m], i = variable_[m];
        const Index* const own = row_of(i);
        const double* const from = message(m);
        if (starts_[f + 1] - starts_[f] == 2) {
            const Index other = m == starts_[f] ? m + 1 : m - 1, j = variable_[other];
            const Index* const theirs = row_of(j);
            const double* const to = message(other);
            if (kind_[f].shape < 0) {
                work_ += size_[i] + size_[j];
                double least = unbounded;
                for (Index k = 0; k < size_[j]; ++k) least = std::min(least, -to[theirs[k]]);
                const double different = kind_[f].weight + least;
                for (Index k = 0; k < size_[i]; ++k) {
                    const Index x = own[k];
                    const double equal = allowed(j, x) ? -to[x] : unbounded;
                    marginal_[x] = std::min(different, equal) - from[x];
                }
                return;
            }
            work_ += size_[i] * size_[j];
            const bool turned = m != starts_[f];
            const Index width = sides_of(f)[1];
            const double* const table = tables_.data() + kind_[f].table;
            const Index step = turned ? width : 1, stride = turned ? 1 : width;
            for (Index k = 0; k < size_[i]; ++k) {
                const Index x = own[k];
                const double* const at = table + x * stride;
                double least = unbounded;
                for (Index q = 0; q < size_[j]; ++q) {
                    const Index y = theirs[q];
                    least = std::min(least, at[y * step] - to[y]);
                }
                marginal_[x] = (least - from[x]) - least_[f];
            }
            return;
        }
        for (Index k = 0; k < size_[i]; ++k) marginal_[own[k]] = unbounded;
        const Index first = starts_[f], count = starts_[f + 1] - first;
        count_.assign(count, 0);
        const double* const table = tables_.data() + kind_[f].table;
        const std::vector<Index>& sides = sides_of(f);
        for (bool more = true; more;) {
            Index cell = 0;
            double given = 0;
            for (Index k = 0; k < count; ++k) {
                const Index x = row_of(variable_[first + k])[count_[k]];
                cell = cell * sides[k] + x;
                given += message(first + k)[x];
            }
            ++work_;
            const Index x = own[count_[m - first]];
            marginal_[x] = std::min(marginal_[x], (table[cell] - given) - least_[f]);
            more = false;
            for (Index k = count; k-- > 0 && !more;) {
                more = ++count_[k] < size_[variable_[first + k]];
                if (!more) count_[k] = 0;
            }
        }
    }

    bool receive(Index m) {
        set_stale(m, false);
        const Index i = variable_[m];
        for (Index k = starts_[owner_[m]]; k < starts_[owner_[m] + 1]; ++k)
            if (size_[variable_[k]] == 0) return false;
        marginals(m);
        double* const cost = messages_.data() + i * labels;
        double* const to = message(m);
        const Index* const own = row_of(i);
        bool moves = false, fits = true;
        for (Index k = size_[i]; k-- > 0;) {
            const Index x = own[k];
            if (marginal_[x] == unbounded) {
                remove(i, x);
                continue;
            }
            moves |= marginal_[x] != 0;
            fits &= std::abs(to[x] + marginal_[x]) < most_ && cost[x] + marginal_[x] < most_;
        }
        if (size_[i] == 0) return false;
        if (!moves || !fits) return true;
        save(i);
        save(n + m);
        for (Index k = 0; k < size_[i]; ++k) {
            const Index x = own[k];
            cost[x] += marginal_[x];
            to[x] += marginal_[x];
        }
        return true;
    }

    // Receive from the factors that have changed, move the least cost to the bound, and remove
    // labels. Return whether one is left.
    bool take(Index i) {
        for (Index k = own_starts_[i]; k < own_starts_[i + 1]; ++k)
            if (stale_[own_[k]] && !receive(own_[k])) return false;
        double* const cost = messages_.data() + i * labels;
        const Index* const own = row_of(i);
        double low = unbounded;
        for (Index k = 0; k < size_[i]; ++k) low = std::min(low, cost[own[k]]);
        if (low > 0 && low < unbounded) {
            save(i);
            for (Index k = 0; k < size_[i]; ++k) cost[own[k]] -= low;
            bound_.add(low);
        }
        return prune(i);
    }

    // Give a share of the costs of a variable to each of some factors, of which these are members.
    void give(Index i, const std::vector<Index>& members, double share) {
        double* const cost = messages_.data() + i * labels;
        const Index* const own = row_of(i);
        save(i);
        gift_.assign(labels, 0.0);
        for (Index q = 0; q < size_[i]; ++q)
            gift_[own[q]] = std::floor(cost[own[q]] * share / grid_) * grid_;
        for (const Index m : members) {
            double* const to = message(m);
            bool fits = true;
            for (Index q = 0; q < size_[i]; ++q) fits &= to[own[q]] - gift_[own[q]] > -most_;
            if (!fits) continue;
            save(n + m);
            for (Index q = 0; q < size_[i]; ++q) {
                to[own[q]] -= gift_[own[q]];
                cost[own[q]] -= gift_[own[q]];
            }
            mark_others(m);
            set_stale(m, true);  // it takes back costs that the others do not need
        }
    }

    bool visit(Index i, bool forward) {
        dirty_[i] &= static_cast<char>(forward ? 2 : 1);
        if (!take(i)) return false;
        double high = 0;
        for (Index k = 0; k < size_[i]; ++k) high = std::max(high, cost(i, row_of(i)[k]));
        if (high < grid_ / share_[i]) return true;
        // Shares that cannot raise the bound noticeably are kept, so that changes stay local.
        if (!stamps_.empty() && !(limited_ && high * share_[i] > notable * left())) return true;
        crossing_.clear();
        for (Index k = own_starts_[i]; k < own_starts_[i + 1]; ++k)
            if (!(forward ? is_last_[own_[k]] : is_first_[own_[k]])) crossing_.push_back(own_[k]);
        give(i, crossing_, share_[i]);
        return true;
    }

    std::vector<double> unary_, tables_;
    std::vector<std::vector<Index>> sides_;
    std::vector<Kind> kind_;
    std::vector<double> least_;  // (factors): subtracted from the factor, added to the bound
    std::vector<Index> starts_, variable_, owner_, own_starts_, own_, ahead_;
    std::vector<char> is_first_, is_last_;
    std::vector<double> share_;
    Index widest_ = 2;
    double grid_ = 0, most_ = 0, rounded_ = 0;

    std::vector<double> messages_;  // (n + members, labels): costs of variables, then messages
    std::vector<Index> domain_, place_, size_;  // allowed labels first
    std::vector<char> stale_, dirty_;
    ExactSum bound_, limit_;
    bool limited_ = false;
    Index failed_ = -1, visits_ = 0;
    std::int64_t work_ = 0;

    std::vector<double> trail_;
    std::vector<std::pair<Index, Index>> sizes_;
    std::vector<Index> flags_;
    std::vector<Mark> marks_;
    std::vector<Index> stamps_, saved_at_, size_saved_at_;
    Index stamp_ = 0;
    std::vector<double> marginal_, gift_;
    std::vector<Index> count_, crossing_;
};

}  // namespace setwise
