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
        const Heeding heeding(this);
        return function(*arguments);
    }

    static bool asked_of_this_thread() { return heeded_ != nullptr && heeded_->asked(); }

  private:
    struct Heeding {
        explicit Heeding(const Stop* stop) : before(heeded_) { heeded_ = stop; }
        ~Heeding() { heeded_ = before; }
        Heeding(const Heeding&) = delete;
        const Stop* before;
    };

    static thread_local const Stop* heeded_;
    std::atomic<bool> asked_{false};
};

thread_local const Stop* Stop::heeded_ = nullptr;

// Throw an exception that searches do not treat as Ctrl-C, because the partial result of the thread
// is not needed.
void end_if_asked() {
    if (!Stop::asked_of_this_thread()) return;
    const nb::object kind = nb::module_::import_("concurrent.futures").attr("CancelledError");
    PyErr_SetString(kind.ptr(), "the call that this thread works for was interrupted");
    throw nb::python_error();
}

// The checks that the polls of a thread call beside looking for signals, the latest first; null
// hides all earlier ones.
struct Heeded {
    const nb::object check;
    const Heeded* const before;
};

thread_local const Heeded* latest_heeded = nullptr;

void call_heeded() {
    for (const Heeded* heeded = latest_heeded; heeded != nullptr; heeded = heeded->before)
        if (heeded->check.is_none())
            return;
        else
            heeded->check();
}

bool heeds() { return latest_heeded != nullptr && !latest_heeded->check.is_none(); }

// Return what the function returns; while it runs, every poll of this thread calls the check.
nb::object heed(nb::object check, nb::callable function, nb::args arguments) {
    struct Scope {
        explicit Scope(const Heeded* heeded) { latest_heeded = heeded; }
        ~Scope() { latest_heeded = before; }
        Scope(const Scope&) = delete;
        const Heeded* before = latest_heeded;
    };
    const Heeded heeded{std::move(check), latest_heeded};
    const Scope scope(&heeded);
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
    if (now - last < std::chrono::milliseconds(heeds() ? 20 : 200) && !watched()) return;
    last = now;
    nb::gil_scoped_acquire lock;
    tell_watcher();
    end_if_asked();
    call_heeded();
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
        end_if_asked();
        call_heeded();
    });
    m.def("heed", &heed, "check"_a.none(), "function"_a, "arguments"_a);
    m.def("heeds", &heeds);
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
