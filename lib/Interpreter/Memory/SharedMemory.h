//===- SharedMemory.h - A block's bytes and who may touch them --*- C++ -*-===//
//
// Every 16 bytes are a *piece*.  A piece remembers its last writer and, for
// each warp, its last read; clocks (Clocks.h) say which accesses are ordered.
//
// **Collective copies** have one share per warp.  Which warp moves which byte
// is the lowering's choice, so a piece counts as written by all of them: it is
// readable by w when every warp u has issued its share, has waited for it at
// u's time t, and clock(w)[u] >= t.
//
// **Loads** by TMA belong to a phase of an mbarrier: their bytes are there for
// who knows that the phase has ended.
//
// **Asynchronous reads** (wgmma, stores by TMA) begin when they are issued and
// end when their warp has waited for them; whoever overwrites the bytes must be
// ordered behind that wait.  They see ordinary stores only behind a fence: of
// the warp that stored, or of one that was ordered behind the store.
//
// **Ordinary loads** by ldmatrix are under way until somebody uses the result.
// Ordinary stores come behind them wherever a barrier does, but a load by TMA
// must be ordered behind the use: on an H100 rows of a slot that was given back
// right behind the load were those of the next one, rarely.
//
// Bytes that a warp may not read come to it as NaN.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_SHAREDMEMORY_H
#define ATTN_LIB_INTERPRETER_MEMORY_SHAREDMEMORY_H

#include "Memory/Clocks.h"

#include "mlir/Support/LLVM.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace attn::interpreter {

/// When an access happened, in its party's time, and which instruction it was.
/// Time 0 is never.
struct Access {
  uint32_t time = 0;
  unsigned instruction = 0;
};

/// A rectangle of bytes: `rows` rows of `width` bytes, `pitch` apart.  In
/// panels
/// (`panelBytes` is not 0), row 0 is the buffer's row `firstRow`, the bytes
/// start at byte `firstByte` of a row, and pieces lie where the swizzle puts
/// them; then `begin` is that of the stage.
struct Rectangle {
  int64_t begin, rows, width, pitch;
  int64_t panelBytes = 0, firstRow = 0, firstByte = 0;
};

/// Why an access is not allowed.
enum class Conflict {
  neverWritten,   ///< a read of bytes nobody wrote
  overtaken,      ///< `other` has begun a copy that this warp has yet to reach
  notIssued,      ///< `other` has not issued its share of the copy
  inFlight,       ///< `other` has not waited for its share of the copy
  unorderedLoad,  ///< not known that the phase of mbarrier `other` has ended
  unorderedWrite, ///< no barrier since `other` wrote or waited
  unfenced,       ///< no fence since `other` wrote
  unorderedRead,  ///< no barrier since `other` read or waited
  readInFlight,   ///< `other` has not waited for its asynchronous read
};

struct Breach {
  Conflict conflict;
  /// A warp; for a load the party of its mbarrier.
  unsigned other = 0;
  /// The access of `other`, where there is one, and its time.
  unsigned instruction = 0;
  uint32_t time = 0;
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
  /// Per warp: the fence behind its wait.
  std::vector<uint32_t> fences;
  unsigned missingIssues, missingWaits;
  /// Where the first row comes from, on which all warps must agree.
  uint64_t source;
};

class SharedMemory {
public:
  SharedMemory(int64_t bytes, const Clocks &clocks);

  /// Checks and records a read, then gathers the bytes.
  std::optional<Breach> read(const Rectangle &where, unsigned warp,
                             unsigned instruction, uint8_t *target);
  /// Checks and records a write of rows that lie one behind the other.
  std::optional<Breach> write(const Rectangle &where, unsigned warp,
                              unsigned instruction, const uint8_t *source);

  /// Checks and records a load by TMA that a warp with this clock issues, maybe
  /// of another block, and whose bytes are there at `time` of the party.
  std::optional<Breach> load(const Rectangle &where, const Clock &issuer,
                             unsigned instruction, unsigned party,
                             uint32_t time, const uint8_t *source);
  /// A new asynchronous read of the warp.
  unsigned beginRead(unsigned warp);
  /// Checks and records a part of it, and gathers the bytes.
  std::optional<Breach> readLater(const Rectangle &where, unsigned warp,
                                  unsigned instruction, unsigned token,
                                  uint8_t *target);
  /// The same of an ordinary load, which is under way from now on.
  unsigned beginLoad(unsigned warp);
  std::optional<Breach> readUntilUsed(const Rectangle &where, unsigned warp,
                                      unsigned instruction, unsigned token,
                                      uint8_t *target);
  /// The warp has waited for the asynchronous read, or uses what it loaded.
  void endRead(unsigned warp, unsigned token);

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
  /// A reader whose time is that of its wait: the rest is the token.
  static constexpr uint32_t kToken = uint32_t(1) << 31;

  struct Writer {
    Access access;
    unsigned party = 0;
    int copy = kNoCopy;
    /// The number of its warp's next fence.
    uint32_t fence = 0;
  };
  struct Found {
    Conflict conflict;
    unsigned other;
    Access access;
  };
  template <typename Check>
  std::optional<Breach> visit(const Rectangle &where, Check check) const;
  /// Who accesses: what it knows of the block, and its number in there.
  struct Viewer {
    const Times &known;
    /// None of another block.
    std::optional<unsigned> warp;
  };
  Viewer viewer(unsigned warp) const {
    return {clocks.times(clocks.of(warp)), warp};
  }
  std::optional<Found> behindWriter(const Writer &writer, Viewer viewer,
                                    bool asynchronous) const;
  std::optional<Found> behindCopy(const Copy &copy, Viewer viewer,
                                  bool asynchronous) const;
  std::optional<Found> behindReaders(int64_t piece, Viewer viewer,
                                     bool asynchronous) const;
  bool unfinished(unsigned warp, const Access &read) const {
    return (read.time & kToken) && reads[warp][read.time & ~kToken].end == 0;
  }
  std::optional<Breach> gather(const Rectangle &where, unsigned warp,
                               Access now, bool asynchronous, uint8_t *target);
  /// Checks and records a write by `now` on behalf of a warp, then lands it.
  std::optional<Breach> overwrite(const Rectangle &where, Viewer viewer,
                                  const Writer &now, bool asynchronous,
                                  const uint8_t *source);
  void scatter(const Rectangle &where, const uint8_t *source);
  void land(Copy &copy);

  const Clocks &clocks;
  unsigned warps;
  std::vector<uint8_t> bytes;
  /// Per piece.
  std::vector<Writer> writers;
  /// Per piece and warp.
  std::vector<Access> readers;
  /// When an ordinary load was issued, and when a read had ended; or 0.
  struct Read {
    uint32_t issue = 0, end = 0;
  };
  /// Per warp and token.
  std::vector<std::vector<Read>> reads;
  std::deque<Copy> copies;
  /// Per copy that some warp has not issued: the writers it replaced.
  std::vector<std::vector<Writer>> replaced;
};

} // namespace attn::interpreter

#endif
