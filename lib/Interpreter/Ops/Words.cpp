//===- Words.cpp - Runs of words, loaded, stored and added up -------------===//

#include "Run/Buffers.h"
#include "Run/Handlers.h"
#include "Run/Residents.h"
#include "Run/Rings.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// The address of run number `index` of an array of runs of so many bytes; or
/// nothing, and reported, when the copy engine cannot take it.
static std::optional<uint64_t> addressOf(Warp &warp, const Instruction &in,
                                         unsigned base, int64_t bytes) {
  constexpr uint64_t unit = 16;
  uint64_t address = uint64_t(warp.integer(in, base)) +
                     uint64_t(warp.integer(in, base + 1) * bytes);
  if (address % unit == 0)
    return address;
  warp.report(in, "alignment",
              "expects words at a multiple of " + Twine(unit) +
                  " bytes, but got " + Twine(address));
  return std::nullopt;
}

Step attn::interpreter::runLoadWords(Warp &warp, const Instruction &in) {
  ThreadBlock &block = warp.block;
  const Buffer &buffer = warp.buffer(in, 2);
  Part part{buffer, warp.integer(in, 3), 0, 1, 0, buffer.type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  int64_t bytes = part.bytes();
  std::optional<uint64_t> address = addressOf(warp, in, 0, bytes);
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 4), warp.integer(in, 5));
  if (!address || !barrier)
    return Step::stop;
  std::vector<uint8_t> data(bytes);
  if (std::optional<std::string> error =
          loadGlobal(warp, in, *address, data.data(), bytes))
    return warp.stop(in, "global read", *error);
  if (std::optional<Breach> breach =
          block.shared.load(part.rectangle(), warp.clock(), in.index,
                            block.clocks.mbarrier(*barrier),
                            block.mbarriers.phase(*barrier) + 1, data.data()))
    reportBreach(warp, in, part, *breach, "overwritten");
  block.traffic += {bytes, bytes};
  return block.mbarriers.arrive(warp, in, *barrier, bytes) &&
                 block.mbarriers.bring(warp, in, *barrier, bytes)
             ? Step::next
             : Step::stop;
}

/// Takes so many words out of a stage and gives them to `leave` with their
/// address in global memory.
static Step takeWords(
    Warp &warp, const Instruction &in, int64_t count,
    function_ref<std::optional<std::string>(uint64_t, ArrayRef<float>)> leave) {
  int64_t bytes = count * int64_t(sizeof(float));
  RawPart part{warp.buffer(in, 0), warp.integer(in, 1), 0, bytes};
  std::optional<uint64_t> address = addressOf(warp, in, 2, bytes);
  if (!checkInside(warp, in, part) || !address)
    return Step::stop;
  std::vector<float> words(count);
  SharedMemory &shared = warp.block.shared;
  unsigned token = shared.beginRead(warp.id);
  warp.startStore(token, in.op);
  if (std::optional<Breach> breach =
          shared.readLater(part.rectangle(), warp.id, in.index, token,
                           reinterpret_cast<uint8_t *>(words.data())))
    reportBreach(warp, in, part, *breach, "read");
  if (std::optional<std::string> error = leave(*address, words))
    return warp.stop(in, "global write", *error);
  warp.block.traffic += {bytes, bytes};
  return Step::next;
}

Step attn::interpreter::runAddWords(Warp &warp, const Instruction &in) {
  int64_t count = int32_t(cast<tile::AddWordsOp>(in.op).getCount());
  return takeWords(warp, in, count,
                   [&](uint64_t address, ArrayRef<float> words) {
                     return addGlobal(warp, in, address, words);
                   });
}

Step attn::interpreter::runStoreWords(Warp &warp, const Instruction &in) {
  int64_t count = int32_t(cast<tile::StoreWordsOp>(in.op).getCount());
  return takeWords(warp, in, count,
                   [&](uint64_t address, ArrayRef<float> words) {
                     return beginGlobal(warp, in, address, words);
                   });
}
