// Independent tasks over a few threads. Which thread runs a task must not matter to its answer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

// Calls body(task, worker) for tasks 0..n-1, worker in 0..n_threads-1. The calling thread is worker 0
// and polls between its tasks. When anything throws (Ctrl-C, no memory), no new task starts and the
// exception passes on once all threads have ended theirs.
template <class Body>
void each_task(std::int64_t n, int n_threads, Poll poll, const Body& body) {
    std::atomic<std::int64_t> next{0};
    const auto helpers = static_cast<int>(std::min<std::int64_t>(n_threads, n)) - 1;
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(std::max(helpers, 0)) + 1);
    const auto work = [&](int worker) {
        try {
            for (std::int64_t task; (task = next.fetch_add(1)) < n;) {
                body(task, worker);
                if (worker == 0) poll();
            }
        } catch (...) {
            next.store(n);
            thrown[static_cast<std::size_t>(worker)] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(thrown.size());
    try {
        for (int worker = 1; worker <= helpers; ++worker) threads.emplace_back(work, worker);
    } catch (const std::system_error&) {
        // the system has no more threads: those that started do all the work
    }
    work(0);
    for (auto& thread : threads) thread.join();
    for (const auto& exception : thrown)
        if (exception) std::rethrow_exception(exception);
}

}  // namespace setwise
