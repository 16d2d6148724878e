//===- GlobalMemory.h - Device memory that notices mistakes -----*- C++ -*-===//
//
// Memory as a kernel sees it, with two questions answered for every access:
// does it lie inside one allocation, and have these bytes been written?
//
// Addresses are handles.  Allocations lie 2^36 bytes apart, so an index that
// leaves one array by less than 64 GiB can never land in another: it is an
// error, not a lucky hit.  Example: the first allocation of 100 bytes has the
// address 0x1000000000; bytes ..00 to ..63 (hex) may be touched, 64 may not.
//
// Failure is a sentence, to which the caller adds the place.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_GLOBALMEMORY_H
#define ATTN_INTERPRETER_GLOBALMEMORY_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn {

class GlobalMemory {
public:
  /// Reserves bytes whose contents are undefined.
  uint64_t allocate(int64_t bytes);
  /// False when no allocation begins there.
  bool free(uint64_t address);

  /// The sentence that says what is wrong with the access, or nothing.
  std::optional<std::string> write(uint64_t address, const void *source,
                                   int64_t bytes);
  /// Reading bytes that were never written is an error.
  std::optional<std::string> read(uint64_t address, void *target,
                                  int64_t bytes) const;

  /// What is wrong with an access to bytes that need not have been written.
  std::optional<std::string> touch(uint64_t address, int64_t bytes) const;

  /// Bytes of the allocations that live.
  int64_t allocatedBytes() const;

private:
  struct Allocation {
    std::vector<uint8_t> bytes;
    /// 1 for each byte that has been written.
    std::vector<uint8_t> written;
  };
  struct Place {
    Allocation *allocation;
    int64_t offset;
  };
  std::optional<std::string> find(uint64_t address, int64_t bytes,
                                  Place &place) const;

  std::map<uint64_t, Allocation> allocations;
  uint64_t next = 1;
};

} // namespace attn

#endif
