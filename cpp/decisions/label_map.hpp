// Label maps: pixels with one class each, and the sum over the classes of the ratio that a mask scores.
//
// Let m_c be the expected size of class c, k_c the number of pixels that have its label and a_c the
// expected number of these that are right. The score of a map is the sum of
//
//        Jaccard:  w_c a_c / (m_c + k_c - a_c),      F-beta:  w_c (1 + b) a_c / (k_c + b m_c),
//
// and `none_c` for a class without pixels. The change when pixel i gets class c is slope_c p_ic - cut_c
// to first order. So each step gives every pixel the class of the largest change. Since steps of all
// pixels need not be improvements, moves are put into buckets by their gains, and the best prefix of
// the buckets is taken. Moves of single pixels, whose exact change is known, follow.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "decisions/ratio_moments.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// The scores of the classes: of ratios of the probabilities times `scale`, weighted.
struct ClassScores {
    bool jaccard;
    double b;
    std::vector<double> scale, weight, none;

    double below(double m, double a, double k) const { return jaccard ? m + k - a : k + b * m; }
    double ratio(double m, double a, double k) const {
        return (jaccard ? a : (1 + b) * a) / below(m, a, k);
    }
    double of(std::size_t c, double m, double a, double k) const {
        return k > 0 ? weight[c] * ratio(m, a, k) : none[c];
    }
};

// The change of each class's score to first order when a pixel of probability p joins it.
struct LinearGains {
    std::vector<double> slope, cut;
};

namespace label_map {

// The number of pixels whose probabilities stay in the cache; not tuned.
constexpr std::int64_t tile = 512;
constexpr std::int64_t tiles_at_once = 16;  // the number of tiles per task; not tuned
constexpr std::uint16_t none = 65535;
// There are two buckets per power of two of a gain. Gains below 2^-32 of the largest share the last
// bucket. Not tuned.
constexpr int buckets = 64;
constexpr std::uint8_t stays = 255;

// best[i] = max_c (slope[c] p[c stride + i] - cut[c]) with its first class; own[i] is the value of
// label[i].
template <class T, class I>
SETWISE_INLINED void best_of(const T* __restrict p, std::int64_t stride, std::int64_t n_classes,
                             const T* __restrict slope, const T* __restrict cut,
                             const I* __restrict label, std::int64_t n, T* __restrict best,
                             I* __restrict arg, T* __restrict own) {
    for (std::int64_t i = 0; i < n; ++i) {
        best[i] = -std::numeric_limits<T>::infinity();
        own[i] = best[i];
        arg[i] = 0;
    }
    for (std::int64_t c = 0; c < n_classes; ++c) {
        const T* const of = p + c * stride;
        const T a = slope[c], b = cut[c];
        const I name = static_cast<I>(c);
        for (std::int64_t i = 0; i < n; ++i) {
            const T value = a * of[i] - b;
            arg[i] = value > best[i] ? name : arg[i];
            best[i] = value > best[i] ? value : best[i];
            own[i] = label[i] == name ? value : own[i];
        }
    }
}

SETWISE_VECTORIZED inline void best_class(const float* p, std::int64_t stride,
                                          std::int64_t n_classes, const float* slope,
                                          const float* cut, const std::int32_t* label,
                                          std::int64_t n, float* best, std::int32_t* arg,
                                          float* own) {
    best_of(p, stride, n_classes, slope, cut, label, n, best, arg, own);
}

SETWISE_VECTORIZED inline void best_class(const double* p, std::int64_t stride,
                                          std::int64_t n_classes, const double* slope,
                                          const double* cut, const std::int64_t* label,
                                          std::int64_t n, double* best, std::int64_t* arg,
                                          double* own) {
    best_of(p, stride, n_classes, slope, cut, label, n, best, arg, own);
}

template <class T>
struct Whole;
template <>
struct Whole<float> {
    using type = std::int32_t;
};
template <>
struct Whole<double> {
    using type = std::int64_t;
};

}  // namespace label_map

template <class T>
class LabelMap {
  public:
    struct Sizes {
        std::vector<double> a, k;  // the expected overlap, and the size, of each class's mask
    };

    // p (images, classes, pixels). valid (images, pixels): 0 where a pixel is void; or nullptr.
    LabelMap(const T* p, const std::uint8_t* valid, std::int64_t images, std::int64_t classes,
             std::int64_t pixels, ClassScores scores, int n_threads, Poll poll)
        : p_(p),
          valid_(valid),
          images_(images),
          classes_(classes),
          pixels_(pixels),
          scores_(std::move(scores)),
          n_threads_(n_threads),
          poll_(poll) {
        const auto n = static_cast<std::size_t>(images * pixels);
        label_.assign(n, label_map::none);
        target_.resize(n);
        bucket_.resize(n);
        gather();
    }

    const ClassScores& scores() const { return scores_; }
    const std::vector<double>& expected_sizes() const { return m_; }
    const std::vector<RatioMoments>& moments() const { return all_; }
    const std::vector<std::uint16_t>& labels() const { return label_; }
    std::int64_t valid_pixels() const { return n_valid_; }
    std::int64_t images() const { return images_; }
    std::int64_t classes() const { return classes_; }
    std::int64_t pixels() const { return pixels_; }
    const T* probabilities() const { return p_; }
    const std::uint8_t* valid() const { return valid_; }

    // Find a map from each start, and keep the one of the largest expected score. `terms` receives
    // the expected score of each class.
    void search(std::vector<double>& terms) {
        std::vector<std::uint16_t> best;
        double most = -std::numeric_limits<double>::infinity();
        for (const LinearGains& start : starts()) {
            assign(start);
            climb();
            drop_classes();
            if (images_ * pixels_ * classes_ <= polished) polish();
            std::vector<double> found = expected_terms();
            if (images_ * pixels_ * classes_ <= refined) refine(found);
            double total = 0;
            for (const double x : found) total += x;
            if (total > most) {
                most = total;
                best = label_;
                best_sizes_ = now_;
                terms = found;
            }
        }
        if (!best.empty()) {
            label_.swap(best);
            now_ = best_sizes_;
        }
    }

    // Return the gains at the present map.
    LinearGains gains() const {
        LinearGains g{std::vector<double>(m_.size()), std::vector<double>(m_.size())};
        for (std::size_t c = 0; c < m_.size(); ++c) {
            if (!(now_.k[c] > 0)) {
                g.cut[c] = std::numeric_limits<double>::infinity();
                continue;
            }
            const double v = scores_.ratio(m_[c], now_.a[c], now_.k[c]);
            const double w = scores_.weight[c] / scores_.below(m_[c], now_.a[c], now_.k[c]);
            g.slope[c] = w * (scores_.jaccard ? 1 + v : 1 + scores_.b);
            g.cut[c] = w * v;
        }
        return g;
    }

    // Return the sizes of the masks of the pixels' best classes for these gains.
    Sizes best_sizes(const LinearGains& g) {
        propose(g);
        Sizes sizes = zeros();
        for (const Sizes& part : parts_) add(part, sizes);
        return sizes;
    }

  private:
    // Single moves are not tried in problems with more pixels times classes: their exact change
    // differs from the linear one by only the square of 1 / (size of a mask). Not tuned.
    static constexpr std::int64_t polished = 1 << 22;
    // Up to this number of pixels times classes, single moves are also tried with the expected
    // scores themselves, which differ from the ratios by about 1 / (size of a mask). Each trial
    // takes some microseconds. Not tuned.
    static constexpr std::int64_t refined = 128;
    // An ascent ends when a step adds less than this share of the classes' weights, or after
    // most_steps steps. Not tuned.
    static constexpr double least_gain = 1e-7;
    static constexpr int most_steps = 100;

    Sizes zeros() const { return {std::vector<double>(m_.size()), std::vector<double>(m_.size())}; }
    static void add(const Sizes& from, Sizes& to) {
        for (std::size_t c = 0; c < to.a.size(); ++c) to.a[c] += from.a[c], to.k[c] += from.k[c];
    }
    double value(const Sizes& s) const {
        double total = 0;
        for (std::size_t c = 0; c < m_.size(); ++c) total += scores_.of(c, m_[c], s.a[c], s.k[c]);
        return total;
    }
    bool counts(std::int64_t i) const { return !valid_ || valid_[i]; }
    double chance(std::int64_t image, std::int64_t c, std::int64_t i) const {
        const double r = scores_.scale[static_cast<std::size_t>(c)] *
                         static_cast<double>(p_[(image * classes_ + c) * pixels_ + i]);
        return r < 1 ? r : 1.0;
    }

    // Call body(task, first pixel, last pixel, image) for each task, the first pixel within its image.
    template <class Body>
    void each_part(const Body& body) {
        const std::int64_t size = label_map::tile * label_map::tiles_at_once;
        const std::int64_t per_image = (pixels_ + size - 1) / size;
        n_parts_ = images_ * per_image;
        each_task(n_parts_, n_threads_, poll_, [&](std::int64_t task, int) {
            const std::int64_t image = task / per_image, first = task % per_image * size;
            body(task, image, first, std::min(first + size, pixels_));
        });
    }

    // Read the moments of every class.
    void gather() {
        const auto n = static_cast<std::size_t>(classes_);
        std::vector<RatioMoments> parts(static_cast<std::size_t>(images_ * classes_));
        each_task(images_ * classes_, n_threads_, poll_, [&](std::int64_t task, int) {
            const std::int64_t image = task / classes_, c = task % classes_;
            RatioMoments& of = parts[static_cast<std::size_t>(task)];
            for (std::int64_t i = 0; i < pixels_; ++i)
                if (counts(image * pixels_ + i)) of.add(chance(image, c, i));
        });
        all_.assign(n, RatioMoments());
        m_.assign(n, 0.0);
        for (std::size_t c = 0; c < n; ++c) {
            for (std::int64_t image = 0; image < images_; ++image)
                all_[c].add(parts[static_cast<std::size_t>(image) * n + c], 1);
            m_[c] = all_[c].total();
            if (std::isnan(scores_.none[c]))
                scores_.none[c] = scores_.weight[c] * std::exp(all_[c].log_product(0.0));
        }
        n_valid_ = images_ * pixels_;
        if (valid_) n_valid_ = std::count_if(valid_, valid_ + n_valid_, [](auto v) { return v; });
    }

    // The starts: the most probable class, the class whose probability is largest relative to its
    // size, and the linear gains at the best masks of the classes alone.
    std::vector<LinearGains> starts() const {
        const std::size_t n = m_.size();
        const std::vector<double> zero(n);
        std::vector<LinearGains> all(3, LinearGains{zero, zero});
        for (std::size_t c = 0; c < n; ++c) {
            const double scale = scores_.scale[c];
            all[0].slope[c] = 1 / scale;
            all[1].slope[c] = m_[c] > 0 ? 1 / m_[c] : 0.0;
            double a = all_[c].certain(), k = a, v = 0, d = 1;
            for (int j = 0; j < RatioMoments::bins; ++j) {
                a += all_[c].sum(j);
                k += all_[c].count(j);
                if (k > 0 && scores_.ratio(m_[c], a, k) > v) {
                    v = scores_.ratio(m_[c], a, k);
                    d = scores_.below(m_[c], a, k);
                }
            }
            const double w = scores_.weight[c] / d;
            all[2].slope[c] = w * (scores_.jaccard ? 1 + v : 1 + scores_.b);
            all[2].cut[c] = w * v;
        }
        return all;
    }

    // Compute the best class of every pixel for these gains. Pixels without a label have a move in
    // bucket 0. parts_ receives the sizes of the masks of the best classes, and steps_ the changes
    // of the sizes bucket by bucket.
    void propose(const LinearGains& g) {
        using I = typename label_map::Whole<T>::type;
        const auto n = static_cast<std::size_t>(classes_);
        std::vector<T> slope(n), cut(n);
        double largest = 0;
        for (std::size_t c = 0; c < n; ++c) {
            slope[c] = static_cast<T>(g.slope[c] * scores_.scale[c]);
            cut[c] = static_cast<T>(g.cut[c]);
            largest = std::max(largest, std::abs(g.slope[c]));
        }
        const int top = half_octave(2 * largest);
        const std::int64_t size = label_map::tile * label_map::tiles_at_once;
        const auto n_parts = static_cast<std::size_t>(images_ * ((pixels_ + size - 1) / size));
        parts_.assign(n_parts, zeros());
        steps_.resize(n_parts);
        each_part([&](std::int64_t task, std::int64_t image, std::int64_t begin, std::int64_t end) {
            Sizes& sizes = parts_[static_cast<std::size_t>(task)];
            auto& steps = steps_[static_cast<std::size_t>(task)];
            steps.assign(2 * label_map::buckets * n, 0.0);
            T best[label_map::tile], own[label_map::tile];
            I arg[label_map::tile], label[label_map::tile];
            for (std::int64_t first = begin; first < end; first += label_map::tile) {
                const std::int64_t length = std::min(label_map::tile, end - first);
                const std::int64_t at = image * pixels_ + first;
                for (std::int64_t i = 0; i < length; ++i)
                    label[i] = static_cast<I>(label_[static_cast<std::size_t>(at + i)]);
                const T* const p = p_ + image * classes_ * pixels_ + first;
                label_map::best_class(p, pixels_, classes_, slope.data(), cut.data(), label, length,
                                      best, arg, own);
                for (std::int64_t i = 0; i < length; ++i) {
                    const auto pixel = static_cast<std::size_t>(at + i);
                    bucket_[pixel] = label_map::stays;
                    if (!counts(at + i)) continue;
                    const auto to = static_cast<std::size_t>(arg[i]);
                    const double p_to = chance(image, arg[i], first + i);
                    sizes.a[to] += p_to;
                    sizes.k[to] += 1;
                    if (!(best[i] > own[i])) continue;
                    int bucket = 0;
                    if (label_[pixel] != label_map::none) {
                        const double gain =
                            static_cast<double>(best[i]) - static_cast<double>(own[i]);
                        bucket = top - half_octave(gain);
                        bucket = std::min(std::max(bucket, 0), label_map::buckets - 1);
                    }
                    target_[pixel] = static_cast<std::uint16_t>(to);
                    bucket_[pixel] = static_cast<std::uint8_t>(bucket);
                    double* const step = steps.data() + 2 * static_cast<std::size_t>(bucket) * n;
                    step[2 * to] += p_to;
                    step[2 * to + 1] += 1;
                    if (label_[pixel] != label_map::none) {
                        const auto from = static_cast<std::size_t>(label_[pixel]);
                        step[2 * from] -= chance(image, label_[pixel], first + i);
                        step[2 * from + 1] -= 1;
                    }
                }
            }
        });
    }

    // Return a number that increases by 2 when x doubles.
    static int half_octave(double x) {
        const auto single = static_cast<float>(x);
        std::uint32_t bits;
        std::memcpy(&bits, &single, sizeof(bits));
        return static_cast<int>(bits >> 22 & 511);
    }

    // Make the moves of the buckets up to `last`.
    void take(int last) {
        each_part([&](std::int64_t, std::int64_t image, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = image * pixels_ + begin; i < image * pixels_ + end; ++i) {
                const auto at = static_cast<std::size_t>(i);
                if (bucket_[at] <= last) label_[at] = target_[at];
            }
        });
    }

    void assign(const LinearGains& g) {
        std::fill(label_.begin(), label_.end(), label_map::none);
        now_ = best_sizes(g);
        take(0);
    }

    // Take the best prefix of the moves until none helps.
    void climb() {
        double weights = 0;
        for (const double w : scores_.weight) weights += w;
        double present = value(now_);
        for (int step = 0; step < most_steps; ++step) {
            propose(gains());
            Sizes at = now_, best = now_;
            double most = present;
            int last = -1;
            for (int bucket = 0; bucket < label_map::buckets; ++bucket) {
                const std::size_t n = m_.size(), row = 2 * static_cast<std::size_t>(bucket) * n;
                for (const auto& part : steps_)
                    for (std::size_t c = 0; c < n; ++c) {
                        at.a[c] += part[row + 2 * c];
                        at.k[c] += part[row + 2 * c + 1];
                    }
                const double then = value(at);
                if (then > most) {
                    most = then;
                    last = bucket;
                    best = at;
                }
            }
            if (last < 0) return;
            take(last);
            now_ = best;
            const double gained = most - present;
            present = most;
            if (gained < least_gain * weights) return;
        }
    }

    // Remove classes for which an empty mask has a higher score than the present one.
    void drop_classes() {
        std::vector<std::size_t> order;
        const auto excess = [&](std::size_t c) {
            return scores_.none[c] - scores_.of(c, m_[c], now_.a[c], now_.k[c]);
        };
        for (std::size_t c = 0; c < m_.size(); ++c)
            if (excess(c) > 0) order.push_back(c);
        std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
            return excess(x) > excess(y) || (excess(x) == excess(y) && x < y);
        });
        for (const std::size_t c : order) {
            const auto used =
                std::count_if(now_.k.begin(), now_.k.end(), [](double k) { return k > 0; });
            if (used < 2 || !(now_.k[c] > 0) || !(excess(c) > 0)) continue;
            const std::vector<std::uint16_t> before = label_;
            const Sizes sizes = now_;
            const double present = value(now_);
            LinearGains g = gains();
            g.slope[c] = 0;
            g.cut[c] = std::numeric_limits<double>::infinity();
            assign(g);
            climb();
            if (value(now_) > present) continue;
            label_ = before;
            now_ = sizes;
        }
    }

    struct Move {
        double gain;
        std::int64_t pixel;
        std::uint16_t to;
    };

    // Return the exact change of the score when pixel i of `image` moves to class `to`.
    double exact_gain(std::int64_t image, std::int64_t i, std::size_t from, std::size_t to) const {
        const double p = chance(image, static_cast<std::int64_t>(from), i);
        const double q = chance(image, static_cast<std::int64_t>(to), i);
        const double left = now_.k[from] - 1;
        return scores_.of(to, m_[to], now_.a[to] + q, now_.k[to] + 1) -
               scores_.of(to, m_[to], now_.a[to], now_.k[to]) +
               scores_.of(from, m_[from], left > 0 ? std::max(now_.a[from] - p, 0.0) : 0.0, left) -
               scores_.of(from, m_[from], now_.a[from], now_.k[from]);
    }

    // Move single pixels, those of the largest gains first, until no move improves the map.
    void polish() {
        double weights = 0;
        for (const double w : scores_.weight) weights += w;
        for (int round = 0; round < most_steps; ++round) {
            const std::int64_t size = label_map::tile * label_map::tiles_at_once;
            std::vector<std::vector<Move>> found(
                static_cast<std::size_t>(images_ * ((pixels_ + size - 1) / size)));
            each_part(
                [&](std::int64_t task, std::int64_t image, std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t pixel = image * pixels_ + i;
                        if (!counts(pixel)) continue;
                        const std::size_t from = label_[static_cast<std::size_t>(pixel)];
                        Move move{1e-12 * weights, pixel, label_map::none};
                        for (std::size_t to = 0; to < m_.size(); ++to) {
                            if (to == from) continue;
                            const double gain = exact_gain(image, i, from, to);
                            if (gain > move.gain) {
                                move.gain = gain;
                                move.to = static_cast<std::uint16_t>(to);
                            }
                        }
                        if (move.to != label_map::none)
                            found[static_cast<std::size_t>(task)].push_back(move);
                    }
                });
            std::vector<Move> moves;
            for (const auto& part : found) moves.insert(moves.end(), part.begin(), part.end());
            std::sort(moves.begin(), moves.end(), [](const Move& x, const Move& y) {
                return x.gain > y.gain || (x.gain == y.gain && x.pixel < y.pixel);
            });
            double gained = 0;
            for (const Move& move : moves) {
                const std::int64_t image = move.pixel / pixels_, i = move.pixel % pixels_;
                auto& label = label_[static_cast<std::size_t>(move.pixel)];
                const double gain = exact_gain(image, i, label, move.to);
                if (!(gain > 1e-12 * weights)) continue;
                now_.a[label] = std::max(now_.a[label] - chance(image, label, i), 0.0);
                now_.k[label] -= 1;
                now_.a[move.to] += chance(image, move.to, i);
                now_.k[move.to] += 1;
                label = move.to;
                gained += gain;
            }
            poll_();
            if (gained < least_gain * weights) return;
        }
    }

    // Return the expected score of each class: w_c times that of its mask.
    std::vector<double> expected_terms() {
        std::vector<double> terms(m_.size());
        // There is a task per class, which reads the labels of all images.
        each_task(classes_, n_threads_, poll_, [&](std::int64_t c, int) {
            terms[static_cast<std::size_t>(c)] = expected_term(c);
        });
        return terms;
    }

    double expected_term(std::int64_t c) const {
        const auto at = static_cast<std::size_t>(c);
        RatioMoments in;
        double k = 0;
        for (std::int64_t image = 0; image < images_; ++image)
            for (std::int64_t i = 0; i < pixels_; ++i)
                if (label_[static_cast<std::size_t>(image * pixels_ + i)] == at) {
                    in.add(chance(image, c, i));
                    ++k;
                }
        if (!(k > 0)) return scores_.none[at];
        return scores_.weight[at] * RatioMoments::expected(scores_.jaccard, scores_.b, k,
                                                           static_cast<double>(n_valid_), all_[at],
                                                           in);
    }

    // Move single pixels while this raises the expected score. `terms` holds the scores of the
    // classes.
    void refine(std::vector<double>& terms) {
        bool moved = true;
        for (int round = 0; moved && round < most_steps; ++round) {
            moved = false;
            for (std::int64_t pixel = 0; pixel < images_ * pixels_; ++pixel) {
                if (!counts(pixel)) continue;
                std::uint16_t& label = label_[static_cast<std::size_t>(pixel)];
                const std::uint16_t from = label;
                label = label_map::none;
                const double without = expected_term(from);
                double most = 1e-12, left = terms[from], joined = 0;
                std::uint16_t best = from;
                for (std::int64_t c = 0; c < classes_; ++c) {
                    if (c == from) continue;
                    label = static_cast<std::uint16_t>(c);
                    const double with = expected_term(c);
                    const double gain = without - terms[from] + with - terms[label];
                    if (gain > most) most = gain, best = label, left = without, joined = with;
                }
                label = best;
                if (best == from) continue;
                terms[from] = left;
                terms[best] = joined;
                const std::int64_t image = pixel / pixels_, i = pixel % pixels_;
                now_.k[from] -= 1;
                now_.a[from] =
                    now_.k[from] > 0 ? std::max(now_.a[from] - chance(image, from, i), 0.0) : 0.0;
                now_.k[best] += 1;
                now_.a[best] += chance(image, best, i);
                moved = true;
            }
            poll_();
        }
    }

    const T* p_;
    const std::uint8_t* valid_;
    std::int64_t images_, classes_, pixels_, n_parts_ = 0, n_valid_ = 0;
    ClassScores scores_;
    int n_threads_;
    Poll poll_;
    std::vector<RatioMoments> all_;
    std::vector<double> m_;
    std::vector<std::uint16_t> label_, target_;
    std::vector<std::uint8_t> bucket_;
    std::vector<Sizes> parts_;
    std::vector<std::vector<double>> steps_;
    Sizes now_, best_sizes_;
};

}  // namespace setwise
