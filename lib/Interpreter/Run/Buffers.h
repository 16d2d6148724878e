//===- Buffers.h - Parts of buffers and the breaches there ------*- C++ -*-===//

#ifndef ATTN_LIB_INTERPRETER_RUN_BUFFERS_H
#define ATTN_LIB_INTERPRETER_RUN_BUFFERS_H

#include "Run/Warp.h"

namespace attn::interpreter {

/// A part of one stage of a buffer, in rows and columns.
struct Part {
  const Buffer &buffer;
  int64_t stage, row, rows, column, columns;

  Rectangle rectangle() const {
    if (buffer.type.isSwizzled())
      return {buffer.begin + stage * buffer.type.stageBytes(),
              rows,
              columns * buffer.type.elementBytes(),
              tile::SmemType::kPanelBytes,
              buffer.type.panelBytes(),
              row,
              column * buffer.type.elementBytes()};
    return {buffer.begin + stage * buffer.type.stageBytes() +
                row * buffer.type.pitchBytes() +
                column * buffer.type.elementBytes(),
            rows, columns * buffer.type.elementBytes(),
            buffer.type.pitchBytes()};
  }
  int64_t bytes() const { return rows * columns * buffer.type.elementBytes(); }
};

/// Bytes of one stage of a buffer as they lie, whatever its layout.
struct RawPart {
  const Buffer &buffer;
  int64_t stage, first, bytes;

  Rectangle rectangle() const {
    return {buffer.begin + stage * buffer.type.stageBytes() + first, /*rows=*/1,
            bytes, bytes};
  }
};

/// Between the bytes of a part as its columns come and as they lie: they differ
/// in the layout sw128_paired only.
std::vector<uint8_t> asColumns(const Part &part, std::vector<uint8_t> bytes);
std::vector<uint8_t> asTheyLie(const Part &part, std::vector<uint8_t> bytes);

/// False, and reported, when the part does not lie in its buffer.
bool checkInside(Warp &warp, const Instruction &in, const Part &part);
bool checkInside(Warp &warp, const Instruction &in, const RawPart &part);

/// Says what is wrong with the access `verb` ("read" or "overwritten") to the
/// shared memory of a block, which is the warp's own if it is null.
void reportBreach(Warp &warp, const Instruction &in, const Part &part,
                  const Breach &breach, llvm::StringRef verb,
                  const ThreadBlock *owner = nullptr);
void reportBreach(Warp &warp, const Instruction &in, const RawPart &part,
                  const Breach &breach, llvm::StringRef verb);

/// The bytes of a part, which the warp reads; or which it writes.
std::vector<uint8_t> readPart(Warp &warp, const Instruction &in,
                              const Part &part);
std::vector<uint8_t> readPart(Warp &warp, const Instruction &in,
                              const RawPart &part);
void writePart(Warp &warp, const Instruction &in, const Part &part,
               llvm::ArrayRef<uint8_t> bytes);
void writePart(Warp &warp, const Instruction &in, const RawPart &part,
               llvm::ArrayRef<uint8_t> bytes);

} // namespace attn::interpreter

#endif
