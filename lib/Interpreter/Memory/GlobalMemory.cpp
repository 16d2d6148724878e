//===- GlobalMemory.cpp - Device memory that notices mistakes -------------===//

#include "attn/Interpreter/GlobalMemory.h"

#include <algorithm>
#include <cstring>

using namespace attn;

/// Far enough apart that one array's wrong index is no other array's right one.
static constexpr int kSpacingLog2 = 36;

uint64_t GlobalMemory::allocate(int64_t bytes) {
  uint64_t address = next << kSpacingLog2;
  // Half of the space behind an array belongs to the next one's wrong indices.
  next += 1 + (uint64_t(bytes) >> (kSpacingLog2 - 1));
  Allocation &allocation = allocations[address];
  allocation.bytes.resize(bytes);
  allocation.written.resize(bytes);
  return address;
}

bool GlobalMemory::free(uint64_t address) {
  return allocations.erase(address) == 1;
}

int64_t GlobalMemory::allocatedBytes() const {
  int64_t total = 0;
  for (const auto &[address, allocation] : allocations)
    total += int64_t(allocation.bytes.size());
  return total;
}

std::optional<std::string> GlobalMemory::find(uint64_t address, int64_t bytes,
                                              Place &place) const {
  auto outside = [&](const Allocation &allocation, const std::string &offset) {
    return "expects bytes of an allocation of " +
           std::to_string(allocation.bytes.size()) + " bytes, but got " +
           std::to_string(bytes) + " bytes at offset " + offset;
  };
  auto after = allocations.upper_bound(address);
  // An index before an array falls behind the one before it.
  if (after != allocations.end() &&
      after->first - address < uint64_t(1) << (kSpacingLog2 - 1))
    return outside(after->second, "-" + std::to_string(after->first - address));
  if (after == allocations.begin())
    return "expects an address inside an allocation, but got " +
           std::to_string(address);
  auto &[base, allocation] = *std::prev(after);
  int64_t size = int64_t(allocation.bytes.size());
  int64_t offset = int64_t(address - base);
  if (offset > size || bytes > size - offset)
    return outside(allocation, std::to_string(offset));
  // The map is ours; only its constness is in the way.
  place = {const_cast<Allocation *>(&allocation), offset};
  return std::nullopt;
}

std::optional<std::string> GlobalMemory::touch(uint64_t address,
                                               int64_t bytes) const {
  Place place;
  return find(address, bytes, place);
}

std::optional<std::string>
GlobalMemory::write(uint64_t address, const void *source, int64_t bytes) {
  if (bytes == 0)
    return std::nullopt;
  Place place;
  if (std::optional<std::string> error = find(address, bytes, place))
    return error;
  std::memcpy(&place.allocation->bytes[place.offset], source, bytes);
  std::memset(&place.allocation->written[place.offset], 1, bytes);
  return std::nullopt;
}

std::optional<std::string> GlobalMemory::read(uint64_t address, void *target,
                                              int64_t bytes) const {
  if (bytes == 0)
    return std::nullopt;
  Place place;
  if (std::optional<std::string> error = find(address, bytes, place))
    return error;
  const uint8_t *written = &place.allocation->written[place.offset];
  if (const void *hole = std::memchr(written, 0, bytes))
    return "expects bytes that were written, but got an uninitialised byte at "
           "offset " +
           std::to_string(place.offset +
                          (static_cast<const uint8_t *>(hole) - written));
  std::memcpy(target, &place.allocation->bytes[place.offset], bytes);
  return std::nullopt;
}
