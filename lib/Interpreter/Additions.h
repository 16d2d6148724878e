//===- Additions.h - Words that a launch adds to ----------------*- C++ -*-===//
//
// The copy engine adds words to global memory whenever it likes, and nothing in
// a kernel waits until it has.  So there is no order between an addition and an
// ordinary access of the same words, neither of the same block nor of another:
// a launch does the one or the other.  Additions among themselves commute.
//
// Example: a launch that adds to bytes 0 to 255 of an array may read byte 256,
// but not byte 255, whichever comes first.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_ADDITIONS_H
#define ATTN_LIB_INTERPRETER_ADDITIONS_H

#include <cstdint>
#include <map>
#include <optional>

namespace attn::interpreter {

class Additions {
public:
  enum class Kind { addition, other };

  /// Records an access; an instruction with an access of the other kind to some
  /// of its bytes, if there was one.
  std::optional<unsigned> access(Kind kind, uint64_t address, int64_t bytes,
                                 unsigned instruction);

private:
  /// Bytes by the first one of each run, with the one behind its last.
  using Runs = std::map<uint64_t, uint64_t>;
  using RunsOfInstructions = std::map<unsigned, Runs>;

  RunsOfInstructions additions, others;
};

} // namespace attn::interpreter

#endif
