// The module of the kernels, and how Ctrl-C and time limits reach them.
//
// Python reports a signal to its main thread alone; a pool forwards it to its worker threads
// through a `Stop`. A time limit is a Python function that every poll of its thread calls, and that
// raises an exception when the time is over.
#include <atomic>
#include <chrono>
#include <utility>

#include "bind/bind.hpp"

namespace {

using namespace setwise::bind;

class Stop {
  public:
    void ask() { asked_.store(true); }
    bool asked() const { return asked_.load(); }

    // Return what the function returns; while it runs, every poll of this thread checks the stop.
    nb::object run(nb::callable function, nb::args arguments) const {
        const StopScope scope(this);
        return function(*arguments);
    }

    static bool asked_of_this_thread() { return current_ != nullptr && current_->asked(); }

  private:
    struct StopScope {
        explicit StopScope(const Stop* stop) : before(current_) { current_ = stop; }
        ~StopScope() { current_ = before; }
        StopScope(const StopScope&) = delete;
        const Stop* before;
    };

    static thread_local const Stop* current_;
    std::atomic<bool> asked_{false};
};

thread_local const Stop* Stop::current_ = nullptr;

// Throw an exception that searches do not treat like Ctrl-C, because nobody needs the partial
// result of this thread.
void end_if_stopped() {
    if (!Stop::asked_of_this_thread()) return;
    const nb::object kind = nb::module_::import_("concurrent.futures").attr("CancelledError");
    PyErr_SetString(kind.ptr(), "the call that this thread works for was interrupted");
    throw nb::python_error();
}

// The checks that polls of a thread call in addition to checking for signals, the latest first. A
// null entry hides all earlier ones.
struct ThreadCheck {
    const nb::object check;
    const ThreadCheck* const before;
};

thread_local const ThreadCheck* latest_check = nullptr;

void call_checks() {
    for (const ThreadCheck* current = latest_check; current != nullptr; current = current->before)
        if (current->check.is_none())
            return;
        else
            current->check();
}

bool has_check() { return latest_check != nullptr && !latest_check->check.is_none(); }

// Return what the function returns; while it runs, every poll of this thread calls the check.
nb::object run_with_check(nb::object check, nb::callable function, nb::args arguments) {
    struct Scope {
        explicit Scope(const ThreadCheck* current) { latest_check = current; }
        ~Scope() { latest_check = before; }
        Scope(const Scope&) = delete;
        const ThreadCheck* before = latest_check;
    };
    const ThreadCheck current{std::move(check), latest_check};
    const Scope scope(&current);
    return function(*arguments);
}

// A Python function that every poll calls, for tests. It is kept alive here. Without the
// interpreter's lock, the mutex keeps it from being released before it is borrowed.
std::atomic<PyObject*> watcher{nullptr};
nb::ft_mutex watcher_mutex;

bool watched() { return watcher.load(std::memory_order_relaxed) != nullptr; }

nb::object borrow_watcher() {
    const nb::ft_lock_guard guard(watcher_mutex);
    return nb::borrow(watcher.load());
}

void tell_watcher() {
    if (const nb::object function = borrow_watcher(); function.is_valid()) function();
}

void watch_polls(nb::object function) {
    PyObject* now = function.is_none() ? nullptr : function.release().ptr();
    const nb::object previous = [now] {
        const nb::ft_lock_guard guard(watcher_mutex);
        return nb::steal(watcher.exchange(now));
    }();
}

}  // namespace

namespace setwise::bind {

void poll_signals() {
    using Clock = std::chrono::steady_clock;
    static thread_local Clock::time_point last = Clock::now();
    const auto now = Clock::now();
    if (now - last < std::chrono::milliseconds(has_check() ? 20 : 200) && !watched()) return;
    last = now;
    nb::gil_scoped_acquire lock;
    tell_watcher();
    end_if_stopped();
    call_checks();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace setwise::bind

static void bind_poll(nb::module_& m) {
    nb::class_<Stop>(m, "Stop")
        .def(nb::init<>())
        .def("ask", &Stop::ask)
        .def_prop_ro("asked", &Stop::asked)
        .def("run", &Stop::run, "function"_a, "arguments"_a);
    m.def("poll", [] {
        tell_watcher();
        end_if_stopped();
        call_checks();
    });
    m.def("run_with_check", &run_with_check, "check"_a.none(), "function"_a, "arguments"_a);
    m.def("has_check", &has_check);
    m.def("watch_polls", &watch_polls, "function"_a.none());
}

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of setwise; arguments are checked for size, not for meaning.";
    bind_boosting(m);
    bind_branching(m);
    bind_buckets(m);
    bind_decisions(m);
    bind_fields(m);
    bind_flows(m);
    bind_learners(m);
    bind_marginals(m);
    bind_mean_field(m);
    bind_messages(m);
    bind_moves(m);
    bind_poll(m);
    bind_relaxation(m);
    bind_sampling(m);
    bind_surrogates(m);
    bind_tracking(m);
    bind_tree_bound(m);
}
