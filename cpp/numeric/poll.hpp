// How long work lets its caller end it.
#pragma once

namespace setwise {

// Called between stretches of work; may throw to abandon the computation (Ctrl-C).
using Poll = void (*)();

}  // namespace setwise
