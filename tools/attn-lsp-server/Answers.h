//===- Answers.h - What ops are, in the server's answers --------*- C++ -*-===//
//
// MLIR's server shows the generic form of an op and offers names of ops, but
// what an op is for stands only in TableGen.  So its answers pass through here:
// to those about an op of ours a sentence is added, of which the build makes a
// table (OpSummaries.cmake).
//
//   {"contents": {"value": "\"attn.forward\"\n\nGeneric Form: ..."}}
//     -> "\"attn.forward\"\n\nAttention, forward: ...\n\nGeneric Form: ..."
//   {"items": [{"label": "forward"}, ...]}
//     -> [{"label": "forward", "documentation": "Attention, forward: ..."}, ..]
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_LSP_SERVER_ANSWERS_H
#define ATTN_TOOLS_LSP_SERVER_ANSWERS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <thread>

namespace attn {

/// A message of the server with what is known of ops; others as they are.
std::string explain(llvm::StringRef message);

/// While it lives, what is written to the standard output passes through
/// `explain`, message by message; what is no message stays as it is.
class ExplainedOutput {
public:
  ExplainedOutput();
  ~ExplainedOutput();

private:
  int output = -1; ///< the standard output as it was
  std::thread reader;
};

} // namespace attn

#endif
