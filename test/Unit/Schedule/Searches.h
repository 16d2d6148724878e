//===- Searches.h - What tools/bench/choice.py measured ---------*- C++ -*-===//
//
// Files of searches, whose times are committed, and the problems in them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_SCHEDULE_SEARCHES_H
#define ATTN_TEST_UNIT_SCHEDULE_SEARCHES_H

#include "attn/Schedule/Plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>
#include <string>

namespace attn {

/// The document of a file of results, or the error of reading it.
inline llvm::Expected<llvm::json::Value> readSearch(const std::string &name) {
  std::string path = std::string(ATTN_RESULTS) + "/" + name;
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(file.getError(), path);
  return llvm::json::parse((*file)->getBuffer());
}

inline Problem searchedProblem(const llvm::json::Object &entry) {
  const llvm::json::Object &found = *entry.getObject("problem");
  const llvm::json::Object &kind = *found.getObject("kind");
  Problem p;
  p.dtype = *parseDataType(*kind.getString("dtype"));
  p.headDim = *kind.getInteger("head_dim");
  p.headDimV = *kind.getInteger("head_dim_v");
  p.mask = *parseMask(*kind.getString("mask"));
  p.batch = *found.getInteger("batch");
  p.kvHeads = *found.getInteger("kv_heads");
  p.heads = p.kvHeads * *kind.getInteger("group");
  p.queries = p.keys = *found.getInteger("rows");
  return p;
}

/// Predicted seconds of all plans, by schedule and tiles.
inline std::map<std::string, double> predictedTimes(const Problem &problem,
                                                    const Machine &machine) {
  std::map<std::string, double> predicted;
  for (const Plan &plan : plans(problem, machine).plans)
    predicted[plan.schedule + ", " + plan.tiles.str()] = plan.seconds;
  return predicted;
}

} // namespace attn

#endif
