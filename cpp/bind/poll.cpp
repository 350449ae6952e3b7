// How Ctrl-C and time limits reach the kernels. Python shows a signal to its main thread alone; a
// pool tells the threads that work for that one by a `Stop`. A time limit is a function of Python's
// that every poll of its thread calls, and that raises when the time is over.
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

    // What the function says; while it runs, every poll of this thread heeds the stop.
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

// An exception that no search takes for Ctrl-C: nobody waits for what the thread has so far.
void end_if_asked() {
    if (!Stop::asked_of_this_thread()) return;
    const nb::object kind = nb::module_::import_("concurrent.futures").attr("CancelledError");
    PyErr_SetString(kind.ptr(), "the call that this thread works for was interrupted");
    throw nb::python_error();
}

// What the polls of a thread call beside looking for signals, the latest first; null shields from
// all that came before.
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

// What the function says; while it runs, every poll of this thread calls the check.
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

// Called at every poll, for tests: a function of Python's, held while it is here.
std::atomic<PyObject*> watcher{nullptr};

bool watched() { return watcher.load(std::memory_order_relaxed) != nullptr; }

void tell_watcher() {
    if (PyObject* function = watcher.load()) nb::borrow<nb::callable>(function)();
}

void watch_polls(nb::object function) {
    PyObject* now = function.is_none() ? nullptr : function.release().ptr();
    nb::steal(watcher.exchange(now));  // lets go of the one before
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

void bind_poll(nb::module_& m) {
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
