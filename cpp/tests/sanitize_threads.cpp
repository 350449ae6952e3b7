// Runs the kernels that start threads under ThreadSanitizer, on inputs like those of the other
// program, but so large that each kernel has more than one task.
#include <cstdio>
#include <random>

#include "tests/block_flows.hpp"
#include "tests/boosting.hpp"
#include "tests/cases.hpp"
#include "tests/field_batches.hpp"
#include "tests/flows.hpp"
#include "tests/marginals.hpp"
#include "tests/relaxation.hpp"

int main() {
    using namespace setwise;
    std::mt19937 random(0);
    const Case c = draw_case(random, 30000);
    check_relaxation<float>(c);
    check_relaxation<double>(c);
    check_frank_wolfe(random, 5000);
    check_mean_field(random, 10, 5000);
    check_samples(random, 5000);
    check_trees(random, 5000, 3);
    check_grid<float>(random, 60, 3, 3);
    check_stumps(random, 40000, 16);
    check_steps(random, 3000, 400);
    for (int k = 0; k < 10; ++k) check_flow_copies(random, 4);
    for (int k = 0; k < 20; ++k) check_field_batch(random, 4);
    for (int k = 0; k < 100; ++k) check_field_cut(random);
    check_block_flow<double>(random, 60, 300, true);
    check_block_flow<double>(random, 40, 200, false);
    check_block_flow<std::int64_t>(random, 50, 300, true);
    std::printf("sanitize: no race between the threads\n");
}
