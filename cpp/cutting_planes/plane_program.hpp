// The master problem of cutting planes: over x >= 0 whose entries from `cone` on sum to 1,
//        minimise  1/2 |sum_i x_i v_i|^2 - <g, x>,
// where the first `cone` vectors are directions and the others slopes of planes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace setwise {

// An active-set method. One of the planes in use is the anchor. The other vectors in use, for
// planes minus the anchor, are the columns of a QR factorisation that is kept up to date, so that
// nothing is squared. With C of 1e12 and more the sum of the vectors nearly cancels, which a Gram
// matrix cannot resolve. There are no absolute tolerances: a step is taken if its gain exceeds the
// rounding error of the gain. The factorisation is kept from one call to the next, for more vectors
// and another g. A step costs O(rank (count + used)).
class PlaneProgram {
  public:
    using Index = std::int64_t;

    // `vectors` (count, rank) by rows. Those of the last call come first, in their order and
    // unchanged, apart from new coordinates at the end. Write the minimiser into `x` and sum_i x_i
    // v_i into `sum`, to the precision of the differences of g. Return false if the limit on steps
    // was reached; then `x` is feasible, but not a minimiser.
    bool solve(const double* vectors, Index count, Index cone, Index rank, const double* g,
               double* x, double* sum) {
        vectors_ = vectors;
        count_ = count;
        cone_ = cone;
        g_ = g;
        sum_ = sum;
        x_.resize(count, 0.0);
        widen(rank);
        banned_.assign(count_, false);
        idle_ = 0;
        if (anchor_ < 0 || changes_ > 200 + 2 * size()) start();
        const bool found = search();
        std::copy(x_.begin(), x_.end(), x);
        return found;
    }

    // Renumber the vectors: `kept` are the old numbers of those that stay, increasing. Some may be
    // newer than the last call.
    void keep(const Index* kept, Index count) {
        std::vector<Index> number(x_.size(), -1);
        std::vector<double> x(count, 0.0);
        for (Index i = 0; i < count && kept[i] < this->count(); ++i) {
            number[kept[i]] = i;
            x[i] = x_[kept[i]];
        }
        x_.swap(x);
        for (Index& i : used_) i = number[i];
        if (anchor_ >= 0) anchor_ = number[anchor_];
        if (anchor_ < 0 || std::count(used_.begin(), used_.end(), -1) > 0) forget();
    }

    // Discard the vectors, which are new or have other coordinates. Only the weights remain as a
    // start.
    void forget() { anchor_ = -1; }

    Index count() const { return static_cast<Index>(x_.size()); }

  private:
    static constexpr double eps = std::numeric_limits<double>::epsilon();

    bool search() {
        const Index most = 50 + 10 * count_;
        Index newest = -1;
        for (Index step = 1; step <= most; ++step) {
            balance();
            if (blocked(newest)) continue;
            add_up();
            newest = steepest();
            if (newest < 0) return true;
            while (newest != anchor_ && !insert(newest))
                if (!exchange(newest)) {
                    banned_[newest] = true;
                    break;
                }
        }
        balance();
        add_up();
        return false;
    }

    // Add coordinates, which are zero in the basis.
    void widen(Index rank) {
        if (rank == rank_) return;
        std::vector<double> wider(size() * rank, 0.0);
        if (rank > rank_)
            for (Index j = 0; j < size(); ++j)
                std::copy_n(basis_.begin() + j * rank_, rank_, wider.begin() + j * rank);
        else
            forget();
        basis_.swap(wider);
        rank_ = rank;
        difference_.resize(rank);
    }

    const double* row(Index i) const { return vectors_ + i * rank_; }
    bool is_plane(Index i) const { return i >= cone_; }
    double lift(Index i) const { return is_plane(i) ? g_[i] - g_[anchor_] : g_[i]; }
    Index size() const { return static_cast<Index>(used_.size()); }

    // Steps of length zero can cycle, unless the first candidate is always taken, both for entering
    // and for leaving (Bland's rule). Return whether there were more than 8 such steps; not tuned.
    bool circling() const { return idle_ > 8; }
    Index name(Index who) const { return who < 0 ? anchor_ : used_[who]; }
    bool earlier(Index who, Index than) const { return circling() && name(who) < name(than); }

    double dot(const double* a, const double* b) const {
        // four independent sums: a single one would wait for each addition
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        Index t = 0;
        for (; t + 4 <= rank_; t += 4)
            for (int lane = 0; lane < 4; ++lane) sums[lane] += a[t + lane] * b[t + lane];
        for (; t < rank_; ++t) sums[0] += a[t] * b[t];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    // Start from the plane with the largest weight as the anchor, or without weights from the
    // highest plane.
    void start() {
        std::vector<Index> others;
        anchor_ = cone_;
        for (Index i = cone_ + 1; i < count_; ++i)
            if (x_[i] > x_[anchor_] || (x_[anchor_] <= 0 && x_[i] <= 0 && g_[i] > g_[anchor_]))
                anchor_ = i;
        if (x_[anchor_] <= 0) {
            for (Index i = 0; i < count_; ++i) x_[i] = 0.0;
            x_[anchor_] = 1.0;
        }
        for (Index i = 0; i < count_; ++i)
            if (i != anchor_ && x_[i] > 0) others.push_back(i);
        factorize(others);
    }

    void factorize(const std::vector<Index>& others) {
        changes_ = 0;
        used_.clear();
        basis_.clear();
        upper_.clear();
        for (const Index i : others) {
            while (i != anchor_ && x_[i] > 0 && !insert(i))
                if (!exchange(i)) {
                    // The weight of a plane that cannot be inserted is added to that of the anchor.
                    if (is_plane(i)) x_[anchor_] += x_[i];
                    x_[i] = 0.0;
                }
        }
    }

    // Append i to the factorisation. Return false if its vector depends linearly on those in use.
    bool insert(Index i) {
        const double* v = row(i);
        const double* a = row(anchor_);
        double noise = 0.0;
        for (Index t = 0; t < rank_; ++t) {
            difference_[t] = is_plane(i) ? v[t] - a[t] : v[t];
            const double most = std::abs(v[t]) + (is_plane(i) ? std::abs(a[t]) : 0.0);
            noise += most * most;
        }
        const Index m = size();
        column_.assign(m + 1, 0.0);
        double rest = std::sqrt(dot(difference_.data(), difference_.data())), before;
        do {  // repeat if little is left, because its direction is then a rounding error
            before = rest;
            for (Index j = 0; j < m; ++j) {
                const double* q = basis_.data() + j * rank_;
                const double along = dot(q, difference_.data());
                column_[j] += along;
                for (Index t = 0; t < rank_; ++t) difference_[t] -= along * q[t];
            }
            rest = std::sqrt(dot(difference_.data(), difference_.data()));
        } while (rest < 0.7 * before && rest > 32.0 * eps * std::sqrt(noise));
        if (m == rank_ || !(rest > 32.0 * eps * std::sqrt(noise))) return false;
        column_[m] = rest;
        ++changes_;
        used_.push_back(i);
        for (Index t = 0; t < rank_; ++t) basis_.push_back(difference_[t] / rest);
        upper_.push_back(column_);
        return true;
    }

    // Rotate rows t and t + 1 of R, from the column `first` on, and the basis with them.
    void rotate(Index t, double cosine, double sine, Index first) {
        for (Index e = first; e < size(); ++e) {
            const double above = upper_[e][t], below = upper_[e][t + 1];
            upper_[e][t] = cosine * above + sine * below;
            upper_[e][t + 1] = cosine * below - sine * above;
        }
        double* q = basis_.data() + t * rank_;
        double* p = q + rank_;
        for (Index i = 0; i < rank_; ++i) {
            const double first_part = q[i], second_part = p[i];
            q[i] = cosine * first_part + sine * second_part;
            p[i] = cosine * second_part - sine * first_part;
        }
    }

    // Columns from `first` on reach one row too far. Rotations make R triangular again, and the
    // last row of the basis is no longer needed.
    void straighten(Index first) {
        for (Index c = first; c < size(); ++c) {
            const double above = upper_[c][c], below = upper_[c][c + 1];
            const double length = std::hypot(above, below);
            if (length > 0) rotate(c, above / length, below / length, c);
            upper_[c].resize(c + 1);
        }
        basis_.resize(size() * rank_);
    }

    // Remove the j-th of the vectors in use.
    void remove(Index j) {
        ++changes_;
        used_.erase(used_.begin() + j);
        upper_.erase(upper_.begin() + j);
        straighten(j);
    }

    // Make the j-th of the vectors in use the anchor and remove the old one. All differences change
    // by the same column u: rotations first make it a multiple of the first row.
    void anchor_at(Index j) {
        ++changes_;
        anchor_ = used_[j];
        std::vector<double> u = upper_[j];
        used_.erase(used_.begin() + j);
        upper_.erase(upper_.begin() + j);
        for (Index e = 0; e < size(); ++e) upper_[e].resize(e + 2, 0.0);
        for (Index t = j - 1; t >= 0; --t) {
            const double length = std::hypot(u[t], u[t + 1]);
            if (length > 0) rotate(t, u[t] / length, u[t + 1] / length, t);
            u[t] = length;
        }
        for (Index e = 0; e < size(); ++e)
            if (is_plane(used_[e])) upper_[e][0] -= u[0];
        straighten(0);
    }

    // Solve upper z = z in place.
    void solve_upper(std::vector<double>& z) const {
        for (Index c = size() - 1; c >= 0; --c) {
            z[c] /= upper_[c][c];
            for (Index e = 0; e < c; ++e) z[e] -= upper_[c][e] * z[c];
        }
    }

    // Compute the minimiser without the sign constraints: with D = Q R for the differences to the
    // anchor a,
    //        R' along = lifts,   R x = along - Q' a.
    void balance() {
        const Index m = size();
        along_.resize(m);
        goal_.resize(m);
        for (Index c = 0; c < m; ++c) {
            double total = lift(used_[c]);
            for (Index e = 0; e < c; ++e) total -= upper_[c][e] * along_[e];
            along_[c] = total / upper_[c][c];
            goal_[c] = along_[c] - dot(basis_.data() + c * rank_, row(anchor_));
        }
        solve_upper(goal_);
        anchor_goal_ = 1.0;
        for (Index c = 0; c < m; ++c)
            if (is_plane(used_[c])) anchor_goal_ -= goal_[c];
    }

    // Move to the goal, or as far as the signs allow. In the second case a vector leaves, and the
    // return value is true.
    bool blocked(Index newest) {
        const Index m = size();
        double part = 1.0;
        Index leaves = -2;  // -1 is the anchor
        const auto consider = [&](double now, double goal, Index who) {
            if (goal > 0) return;
            const double length = now > 0 ? now / (now - goal) : 0.0;
            if (leaves == -2 || length < part || (length == part && earlier(who, leaves))) {
                part = length;
                leaves = who;
            }
        };
        for (Index c = 0; c < m; ++c) consider(x_[used_[c]], goal_[c], c);
        consider(x_[anchor_], anchor_goal_, -1);
        if (leaves == -2) part = 1.0;
        idle_ = part > 0 ? 0 : idle_ + 1;
        for (Index c = 0; c < m; ++c) x_[used_[c]] += part * (goal_[c] - x_[used_[c]]);
        x_[anchor_] += part * (anchor_goal_ - x_[anchor_]);
        if (leaves == -2) return false;
        // If a vector that has just entered leaves at once, its gain was a rounding error.
        if (leaves >= 0 && used_[leaves] == newest && part <= 0) banned_[newest] = true;
        leave(leaves, -1);
        return true;
    }

    // If the anchor leaves, another plane takes its place; `newest` is not yet in use.
    void leave(Index who, Index newest) {
        if (who >= 0) {
            x_[used_[who]] = 0.0;
            remove(who);
            return;
        }
        Index next = -1;
        for (Index c = 0; c < size(); ++c)
            if (is_plane(used_[c]) && (next < 0 || x_[used_[c]] > x_[used_[next]])) next = c;
        x_[anchor_] = 0.0;
        if (next >= 0)
            anchor_at(next);
        else if (newest >= 0 && is_plane(newest))
            anchor_ = newest;
        else
            x_[anchor_] = 1.0;  // a single plane in use has all the weight, apart from rounding
    }

    // `newest` is a linear combination of those in use: move weight to it, with the same sum, until
    // one leaves.
    bool exchange(Index newest) {
        const Index m = size();
        std::vector<double> share(column_.begin(), column_.begin() + m);
        solve_upper(share);
        double of_anchor = is_plane(newest) ? 1.0 : 0.0, part = 0.0;
        for (Index c = 0; c < m; ++c)
            if (is_plane(used_[c])) of_anchor -= share[c];
        Index leaves = -2;
        const auto consider = [&](double now, double rate, Index who) {
            if (!(rate > 0)) return;
            const double length = now / rate;
            if (leaves == -2 || length < part || (length == part && earlier(who, leaves))) {
                part = length;
                leaves = who;
            }
        };
        for (Index c = 0; c < m; ++c) consider(x_[used_[c]], share[c], c);
        consider(x_[anchor_], of_anchor, -1);
        if (leaves == -2) return false;
        idle_ = part > 0 ? 0 : idle_ + 1;
        for (Index c = 0; c < m; ++c) x_[used_[c]] = std::max(0.0, x_[used_[c]] - part * share[c]);
        x_[anchor_] = std::max(0.0, x_[anchor_] - part * of_anchor);
        x_[newest] += part;
        leave(leaves, newest);
        return true;
    }

    // sum = (a - Q Q' a) + Q along. The projection is subtracted twice, so that little of its
    // rounding error is left.
    void add_up() {
        const double* a = row(anchor_);
        for (Index t = 0; t < rank_; ++t) sum_[t] = a[t];
        const Index m = size();
        for (int pass = 0; pass < 2; ++pass)
            for (Index j = 0; j < m; ++j) {
                const double* q = basis_.data() + j * rank_;
                const double part = dot(q, sum_);
                for (Index t = 0; t < rank_; ++t) sum_[t] -= part * q[t];
            }
        for (Index j = 0; j < m; ++j) {
            const double* q = basis_.data() + j * rank_;
            for (Index t = 0; t < rank_; ++t) sum_[t] += along_[j] * q[t];
        }
    }

    // Return the vector whose weight gives the largest gain per unit; -1 if no gain exceeds
    // rounding.
    Index steepest() const {
        const double* a = row(anchor_);
        // The error of a sum that cancels, after subtracting twice.
        const double left = eps * std::sqrt(dot(a, a));
        Index best = -1;
        double most = 0.0;
        for (Index i = 0; i < count_; ++i) {
            if (x_[i] > 0 || banned_[i]) continue;
            const double* v = row(i);
            double gain = lift(i), noise = std::abs(gain);
            for (Index t = 0; t < rank_; ++t) {
                const double step = is_plane(i) ? v[t] - a[t] : v[t];
                gain -= step * sum_[t];
                noise += std::abs(step) * (std::abs(sum_[t]) + left);
            }
            if (gain > most && gain > 8.0 * eps * noise) {
                if (circling()) return i;
                most = gain;
                best = i;
            }
        }
        return best;
    }

    const double* vectors_ = nullptr;
    const double* g_ = nullptr;
    double* sum_ = nullptr;
    Index count_ = 0, cone_ = 0, rank_ = 0;
    Index anchor_ = -1;  // -1 before the first call
    Index idle_ = 0, changes_ = 0;
    double anchor_goal_ = 1.0;
    std::vector<double> x_;
    std::vector<Index> used_;
    std::vector<bool> banned_;
    std::vector<double> basis_;               // orthonormal, one row of length rank each
    std::vector<std::vector<double>> upper_;  // columns of R
    std::vector<double> difference_, column_, along_, goal_;
};

}  // namespace setwise
