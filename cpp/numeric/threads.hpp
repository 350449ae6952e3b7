// Independent tasks over a few threads. Which thread runs a task must not matter to its answer.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

// Call body(task, worker) for tasks 0..n-1, worker in 0..n_threads-1. The calling thread is worker
// 0 and polls between its tasks. When anything throws (Ctrl-C, no memory), no new task starts, and
// the exception is rethrown once all threads have ended their tasks.
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

// An exception that ends the work of a helping thread whose result is no longer needed.
struct Stopped {};

inline thread_local const std::atomic<bool>* asked_to_stop = nullptr;

inline void poll_stop() {
    if (asked_to_stop->load(std::memory_order_relaxed)) throw Stopped{};
}

// Like each_task, for tasks so long that they poll while they run: call body(task, poll). The
// calling thread also polls while it waits for the others, and what it throws (Ctrl-C) ends their
// tasks.
template <class Body>
void each_long_task(std::int64_t n, int n_threads, Poll poll, const Body& body) {
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex guard;
    std::condition_variable ended;
    std::exception_ptr thrown;
    int working = 0;
    const auto attempt = [&](const auto& call) {
        try {
            call();
        } catch (const Stopped&) {
        } catch (...) {
            const std::lock_guard<std::mutex> lock(guard);
            if (!thrown) thrown = std::current_exception();
            stop = true;
        }
    };
    const auto work = [&](Poll how) {
        attempt([&] {
            for (std::int64_t task; !stop && (task = next.fetch_add(1)) < n;) body(task, how);
        });
    };
    const auto help = [&] {
        asked_to_stop = &stop;
        work(poll_stop);
        const std::lock_guard<std::mutex> lock(guard);
        --working;
        ended.notify_one();
    };
    const auto helpers = static_cast<int>(std::min<std::int64_t>(n_threads, n)) - 1;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(std::max(helpers, 0)));
    for (int k = 0; k < helpers; ++k) {
        const std::lock_guard<std::mutex> lock(guard);
        try {
            threads.emplace_back(help);
            ++working;
        } catch (const std::system_error&) {
            break;  // the system has no more threads: those that started do all the work
        }
    }
    work(poll);
    std::unique_lock<std::mutex> lock(guard);
    while (!ended.wait_for(lock, std::chrono::milliseconds(20), [&] { return working == 0; })) {
        if (stop) continue;
        lock.unlock();
        attempt(poll);
        lock.lock();
    }
    lock.unlock();
    for (auto& thread : threads) thread.join();
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace setwise
