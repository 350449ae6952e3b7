// The function by which long computations can be interrupted.
#pragma once

namespace setwise {

// Called now and then during a computation; may throw to abandon it (Ctrl-C).
using Poll = void (*)();

}  // namespace setwise
