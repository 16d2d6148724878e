//===- Binding.h - A call of which only addresses are open ------*- C++ -*-===//
//
// A recording says what a function launches for certain shapes.  A binding is
// that on a GPU: kernels are found, arguments packed, tensor maps made, and to
// launch is to write the caller's addresses into a copy of them.  It knows no
// MLIR and nothing in it changes, so any number of threads may launch it at
// once.
//
//   Expected<std::shared_ptr<const LoadedKernels>> kernels =
//       LoadedKernels::load(gpu, program);
//   Expected<std::shared_ptr<const Binding>> binding =
//       Binding::make(*kernels, recording, {{0}, {1}, {2}, {3}});
//   (*binding)->launch({q, k, v, o}, stream);
//
// Slots of the recording that are no buffer of the caller are pieces of
// scratch. It is the caller's, or else taken from the driver's pool and given
// back in the order of the stream, so nothing waits.  Counters are the
// stream's, or in a captured graph the launch's own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_BINDING_H
#define ATTN_CAPI_BINDING_H

#include "attn/CAPI/Compile.h"
#include "attn/Host/Recording.h"
#include "attn/Runtime/TensorMap.h"
#include "attn/Schedule/Layout.h"
#include "attn/Schedule/Roles.h"

#include "llvm/ADT/StringMap.h"

#include <memory>

namespace attn {

/// The kernels of a program on a GPU.
class LoadedKernels {
public:
  static runtime::Expected<std::shared_ptr<const LoadedKernels>>
  load(const runtime::Gpu &gpu, int device, const Program &program);

  struct Entry {
    runtime::Kernel kernel;
    int64_t threads = 0;
    int64_t smemBytes = 0;
    /// Whether its blocks wait for one another, and then how many run at once.
    bool isCooperative = false;
    int64_t mostBlocks = 0;
  };
  /// The entry of that qualified name; every kernel of the program has one.
  const Entry &at(llvm::StringRef name) const;

  const runtime::Gpu gpu;
  const int device;

private:
  LoadedKernels(const runtime::Gpu &gpu, int device)
      : gpu(gpu), device(device) {}
  llvm::StringMap<Entry> entries;
};

/// Memory for what a launch keeps for itself; without an address, the pool's.
struct ScratchMemory {
  uint64_t address = 0;
  int64_t bytes = 0;
};

class Binding {
public:
  static constexpr int64_t kScratchAlignment = 256;

  /// What a recording allocates and no buffer of the caller takes the place of.
  struct Scratch {
    std::vector<std::pair<size_t, int64_t>> pieces; ///< slots and bytes
    /// Of all pieces, each aligned.
    int64_t bytes() const;
  };

  /// A buffer of the caller.
  struct Buffer {
    /// Which slot of the recording it takes.
    size_t slot = 0;
    /// What divides the address of the slot, in bytes.
    int64_t alignment = 1;
    /// Whether there is nothing in it, so that it needs no address.
    bool isEmpty = false;
    /// Bytes from the slot's base to the address that the caller gives.
    int64_t offsetBytes = 0;
    /// Whether a tensor map is made of it; set by the binding.
    bool isMapped = false;
    /// Where its elements lie, from that address on.
    Layout layout = {};
  };
  /// Two buffers by their positions, and what they are in words.  The first is
  /// written while the other is in use.
  struct Apart {
    size_t written, other;
    std::string writtenName, otherName;
  };

  static runtime::Expected<std::shared_ptr<const Binding>>
  make(std::shared_ptr<const LoadedKernels> kernels, const Recording &recording,
       std::vector<Buffer> buffers, std::vector<Apart> apart = {});

  /// Why these addresses cannot be launched on, if they cannot.
  std::optional<std::string> check(llvm::ArrayRef<uint64_t> addresses) const;

  /// What a launch of these buffers would take, on any GPU.
  static Scratch scratchOf(const Recording &recording,
                           llvm::ArrayRef<Buffer> buffers);
  /// How much scratch a launch takes.
  int64_t scratchBytes() const { return scratch.bytes(); }
  /// Why a launch cannot use this memory, if it cannot.
  std::optional<std::string> checkScratch(const ScratchMemory &given) const;
  /// Whether the stream captures a graph.
  runtime::Expected<bool> isCapturing(runtime::Stream stream) const {
    return kernels->gpu.isCapturing(stream);
  }

  /// Queues everything on the stream; one address for each buffer.
  runtime::Status launch(llvm::ArrayRef<uint64_t> addresses,
                         runtime::Stream stream,
                         const ScratchMemory &given = {}) const;

  /// attn_binding_info's JSON object.
  std::string json() const;

private:
  /// A place in memory: a slot's address and an offset in bytes.  Counters are
  /// slots behind those of the recording.
  struct Place {
    size_t slot = 0;
    uint64_t offset = 0;
  };
  struct Argument {
    std::optional<ArgumentRole> role; ///< kernels of users say none
    KernelArgument value;
  };
  /// A tensor map among the arguments of a launch.
  struct Map {
    size_t position = 0;
    Place place;
    runtime::MapElement element;
    int64_t boxRows = 0;
    runtime::TensorMap map;
  };
  /// So many are written at a launch, as merged gradients have of weights that
  /// were kept.
  static constexpr size_t kMaxMaps = 11;
  struct Launch {
    const LoadedKernels::Entry *kernel;
    std::string name;
    std::array<int64_t, 3> grid;
    runtime::LaunchMode mode = runtime::LaunchMode::plain;
    std::vector<Argument> arguments;
    /// The arguments' bits, eight bytes each, pointers and maps left open; and
    /// which those are.
    std::vector<uint64_t> packed;
    std::vector<std::pair<size_t, Place>> pointers;
    std::vector<Map> maps;
  };
  struct Copy {
    Place from, to;
    int64_t bytes;
  };
  using Step = std::variant<Launch, Copy>;

  Binding(std::shared_ptr<const LoadedKernels> kernels,
          const Recording &recording, std::vector<Buffer> buffers);

  Place placeOf(uint64_t symbolic, uint64_t offset = 0) const;
  runtime::LaunchMode modeOf(const RecordedLaunch &recorded) const;
  runtime::Status add(const RecordedLaunch &recorded);
  runtime::Status addMap(Launch &launch, size_t position, tile::TensorMapType,
                         const TensorMapArgument &argument);
  void add(const RecordedCopy &recorded);
  runtime::Status run(const Launch &step, llvm::ArrayRef<uint64_t> slots,
                      runtime::Stream stream) const;

  std::shared_ptr<const LoadedKernels> kernels;
  std::vector<Step> steps;
  size_t slotCount = 0;
  /// Where each set of counters begins, in words, and how many words there are.
  std::vector<int64_t> counterOffsets;
  int64_t counterWords = 0;
  std::vector<Buffer> buffers;
  std::vector<Apart> apart;
  /// Bytes from the first element to behind the last, of each buffer.
  std::vector<uint64_t> spans;
  Scratch scratch;
};

} // namespace attn

#endif
