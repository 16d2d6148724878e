// What the cost model says about a problem, without MLIR.
#include "attn/Schedule/Plan.h"

#include <iostream>

int main() {
  attn::Problem problem;
  problem.heads = problem.kvHeads = 16;
  problem.queries = problem.keys = 4096;
  problem.headDim = problem.headDimV = 128;
  attn::PlanReport report =
      attn::plans(problem, *attn::findMachine("h100_sxm"));
  const attn::Plan &best = *report.best();
  std::cout << attn::decision(best.schedule, best.tiles) << ": "
            << best.time.seconds << " s, " << best.bytes.hbm << " bytes, "
            << best.footprint.smemBytes << " of shared memory\n";
}
