//===- SharedMemory.h - A block's bytes and who may touch them --*- C++ -*-===//
//
// Every 16 bytes are a *piece*.  A piece remembers its last writer and, for
// each warp, its last read; a warp's clock says which accesses of the others
// it is ordered behind.
//
// **Clocks.**  Warp w's clock is a vector; its own entry counts w's releases.
// An access by u at u's time t is ordered before what w does now if
// clock(w)[u] >= t.  A barrier sets all clocks to their maximum and starts a
// new time for everyone.  Example, two warps: warp 0 stores at time 1; warp 1's
// clock is (0, 1), so its read is a race; behind the barrier it is (1, 2).
//
// **Copies.**  A collective copy has one share per warp.  Which warp moves
// which byte is the lowering's choice, so a piece counts as written by all of
// them: it is readable by w when every warp u has issued its share, has waited
// for it at u's time t, and clock(w)[u] >= t.  Until every warp has waited the
// bytes read as NaN.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SHAREDMEMORY_H
#define ATTN_LIB_INTERPRETER_SHAREDMEMORY_H

#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace attn::interpreter {

/// One entry per warp.
using Clock = std::vector<uint32_t>;

/// When an access happened, in its warp's time, and which instruction it was.
/// Time 0 is never.
struct Access {
  uint32_t time = 0;
  unsigned instruction = 0;
};

/// A rectangle of bytes: `rows` rows of `width` bytes, `pitch` apart.
struct Rectangle {
  int64_t begin, rows, width, pitch;
};

/// Why an access is not allowed.
enum class Conflict {
  neverWritten,   ///< a read of bytes nobody wrote
  overtaken,      ///< `other` has begun a copy that this warp has yet to reach
  notIssued,      ///< `other` has not issued its share of the copy
  inFlight,       ///< `other` has not waited for its share of the copy
  unorderedWrite, ///< no barrier since `other` wrote or waited
  unorderedRead,  ///< no barrier since `other` read
};

struct Breach {
  Conflict conflict;
  unsigned other = 0;
  /// The access of `other`, where there is one.
  unsigned instruction = 0;
  /// Rows of the rectangle, first and last.
  int64_t firstRow = 0, lastRow = 0;
};

/// A collective asynchronous copy.
struct Copy {
  unsigned instruction;
  Rectangle target;
  /// What lands there, row by row.
  std::vector<uint8_t> data;
  /// Per warp; time 0 while it has not.
  std::vector<Access> issued, waited;
  unsigned missingIssues, missingWaits;
  /// Where the first row comes from, on which all warps must agree.
  uint64_t source;
};

class SharedMemory {
public:
  SharedMemory(int64_t bytes, unsigned warps);

  Clock &clock(unsigned warp) { return clocks[warp]; }
  /// All warps meet: everything before is ordered before everything after.
  void meet();

  /// Checks and records a read, then gathers the bytes.
  std::optional<Breach> read(const Rectangle &where, unsigned warp,
                             unsigned instruction, uint8_t *target);
  /// Checks and records a write of rows that lie one behind the other.
  std::optional<Breach> write(const Rectangle &where, unsigned warp,
                              unsigned instruction, const uint8_t *source);

  /// Registers a copy whose first share is about to be issued.
  unsigned begin(Copy copy);
  Copy &copy(unsigned index) { return copies[index]; }
  unsigned copyCount() const { return unsigned(copies.size()); }
  /// Issues a warp's share.
  std::optional<Breach> issue(unsigned copy, unsigned warp);
  /// The warp has waited for its share.
  void wait(unsigned copy, unsigned warp, unsigned instruction);

private:
  static constexpr int64_t kPieceBytes = 16;
  static constexpr int kNoCopy = -1;

  struct Writer {
    Access access;
    unsigned warp = 0;
    int copy = kNoCopy;
  };
  struct Found {
    Conflict conflict;
    unsigned other;
    unsigned instruction;
  };
  template <typename Check>
  std::optional<Breach> visit(const Rectangle &where, Check check) const;
  bool ordered(unsigned warp, unsigned other, uint32_t time) const {
    return warp == other || clocks[warp][other] >= time;
  }
  std::optional<Found> behindWriter(const Writer &writer, unsigned warp) const;
  std::optional<Found> behindReaders(int64_t piece, unsigned warp) const;
  void land(Copy &copy);

  unsigned warps;
  std::vector<uint8_t> bytes;
  std::vector<Clock> clocks;
  /// Per piece.
  std::vector<Writer> writers;
  /// Per piece and warp.
  std::vector<Access> readers;
  std::deque<Copy> copies;
  /// Per copy that some warp has not issued: the writers it replaced.
  std::vector<std::vector<Writer>> replaced;
};

} // namespace attn::interpreter

#endif
