//===- Binding.cpp - Packed launches --------------------------------------===//

#include "attn/CAPI/Binding.h"

#include "attn/Kernels/Kernels.h"
#include "attn/Schedule/Registry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace attn;
using namespace mlir;
using runtime::Status;

// A launch has its flags, and the number of the next tile.
static_assert(kMostFlags < runtime::Gpu::kMostCounters);

//===----------------------------------------------------------------------===//
// LoadedKernels
//===----------------------------------------------------------------------===//

runtime::Expected<std::shared_ptr<const LoadedKernels>>
LoadedKernels::load(const runtime::Gpu &gpu, int device,
                    const Program &program) {
  std::vector<runtime::Module> modules;
  for (const Binary &binary : program.binaries) {
    runtime::Expected<runtime::Module> module =
        gpu.load(binary.image(), binary.chip);
    if (!module)
      return module.status();
    modules.push_back(*module);
  }
  std::shared_ptr<LoadedKernels> loaded(new LoadedKernels(gpu, device));
  for (const KernelInfo &info : program.kernels) {
    std::string symbol = StringRef(info.name).rsplit("::").second.str();
    runtime::Expected<runtime::Kernel> kernel =
        modules[info.binary].kernel(symbol);
    if (!kernel)
      return kernel.status();
    Status status = kernel->allowDynamicSmem(info.smemBytes);
    if (!status.ok())
      return status;
    Entry entry{*kernel, info.threads, info.smemBytes, info.isCooperative};
    if (entry.isCooperative) {
      runtime::Expected<int64_t> blocks =
          kernel->mostBlocks(info.threads, info.smemBytes, info.cluster);
      if (!blocks)
        return blocks.status();
      entry.mostBlocks = *blocks;
    }
    loaded->entries[info.name] = entry;
  }
  return std::shared_ptr<const LoadedKernels>(std::move(loaded));
}

const LoadedKernels::Entry &LoadedKernels::at(StringRef name) const {
  auto found = entries.find(name);
  assert(found != entries.end() && "launches name kernels of their program");
  return found->second;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Calls `piece(from, to, bytes)`, offsets in bytes from the arrays' bases, for
/// every piece that is dense in both arrays.
static void
forEachPiece(const HostArray &source, const HostArray &target,
             llvm::function_ref<void(uint64_t, uint64_t, int64_t)> piece) {
  int64_t outer = source.sizes.size();
  int64_t dense = 1;
  while (outer > 0 &&
         (source.sizes[outer - 1] == 1 || (source.strides[outer - 1] == dense &&
                                           target.strides[outer - 1] == dense)))
    dense *= source.sizes[--outer];
  int64_t count = 1;
  for (int64_t size : ArrayRef(source.sizes).take_front(outer))
    count *= size;
  int64_t elementBytes = source.elementBytes();
  for (int64_t number = 0; number < count; ++number) {
    int64_t from = source.offset, to = target.offset, rest = number;
    for (int64_t dim = outer - 1; dim >= 0; --dim) {
      int64_t index = rest % source.sizes[dim];
      rest /= source.sizes[dim];
      from += index * source.strides[dim];
      to += index * target.strides[dim];
    }
    piece(from * elementBytes, to * elementBytes, dense * elementBytes);
  }
}

/// The bits of a scalar argument; the driver reads as many as it needs.
template <typename Scalar> static uint64_t bitsOf(Scalar value) {
  static_assert(sizeof(Scalar) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

static runtime::MapElement mapElement(Type type) {
  if (type.isBF16())
    return runtime::MapElement::bf16;
  if (type.isF32())
    return runtime::MapElement::f32;
  return type.isF16() ? runtime::MapElement::f16 : runtime::MapElement::u8;
}

static StringRef nameOf(runtime::MapElement element) {
  switch (element) {
  case runtime::MapElement::bf16:
    return "bf16";
  case runtime::MapElement::f16:
    return "f16";
  case runtime::MapElement::u8:
    return "u8";
  case runtime::MapElement::f32:
    return "f32";
  }
  return "";
}

Binding::Place Binding::placeOf(uint64_t symbolic, uint64_t offset) const {
  SymbolicAddress address(symbolic);
  size_t slot = address.isCounter() ? slotCount + address.counter()
                                    : static_cast<size_t>(address.slot());
  return {slot, uint64_t(address.offset()) + offset};
}

/// As printed; a kernel of a user need not say what its arguments are.
static std::string textOf(const std::optional<ArgumentRole> &role) {
  return role ? str(*role) : "";
}

/// What the kernel says that an argument is, if it does.
static Status readRole(tile::KernelOp kernel, unsigned position,
                       std::optional<ArgumentRole> &role) {
  auto text = kernel.getArgAttrOfType<StringAttr>(position, kRoleAttr);
  if (!text)
    return Status::success();
  role = parseRole(std::string_view(text.getValue()));
  if (role)
    return Status::success();
  return Status::failure("expects argument " + std::to_string(position) +
                         " to have a role, but got \"" + text.str() +
                         "\"; roles: " + roleNames());
}

Status Binding::addMap(Launch &launch, size_t position,
                       tile::TensorMapType type,
                       const TensorMapArgument &argument) {
  if (launch.maps.size() == kMaxMaps)
    return Status::failure("expects at most " + std::to_string(kMaxMaps) +
                           " tensor maps among its arguments");
  runtime::TensorMapShape shape;
  shape.element = mapElement(type.getElementType());
  shape.boxRows = type.getBoxRows();
  // TMA counts dimensions from the innermost; single entries have no stride.
  for (int i = 0; i < 4; ++i)
    shape.extents[i] = argument.sizes[3 - i];
  for (int i = 0; i < 3; ++i)
    if (argument.sizes[2 - i] > 1)
      shape.strides[i] = argument.strides[2 - i] * shape.elementBytes();
  runtime::Expected<runtime::TensorMap> map = kernels->gpu.tensorMap(shape);
  if (!map)
    return map.status().during("'" + textOf(launch.arguments[position].role) +
                               "'");
  Place place = placeOf(argument.address);
  launch.maps.push_back({position, place, shape.element, shape.boxRows, *map});
  for (Buffer &buffer : buffers)
    if (buffer.slot == place.slot && !shape.isEmpty()) {
      buffer.alignment =
          std::max(buffer.alignment, runtime::TensorMap::kArrayAlignment);
      buffer.isMapped = true;
    }
  return Status::success();
}

/// Ahead of time is a launch that waits for the launch right before it, of the
/// same call; so the first is behind all that is in the stream.
runtime::LaunchMode Binding::modeOf(const RecordedLaunch &recorded) const {
  tile::KernelOp kernel = recorded.kernel;
  if (kernel.getCooperative())
    return runtime::LaunchMode::together;
  bool isBehindLaunch =
      !steps.empty() && std::holds_alternative<Launch>(steps.back());
  return isBehindLaunch && kernel.awaitsLaunch() ? runtime::LaunchMode::ahead
                                                 : runtime::LaunchMode::plain;
}

Status Binding::add(const RecordedLaunch &recorded) {
  Launch launch;
  tile::KernelOp kernel = recorded.kernel;
  launch.name = qualifiedName(kernel);
  launch.kernel = &kernels->at(launch.name);
  launch.grid = recorded.grid;
  launch.mode = modeOf(recorded);
  if (launch.kernel->isCooperative)
    launch.grid[0] = std::min(launch.grid[0], launch.kernel->mostBlocks);
  for (auto [position, value] : llvm::enumerate(recorded.arguments)) {
    std::optional<ArgumentRole> role;
    if (Status status = readRole(kernel, position, role); !status.ok())
      return status.during("kernel '" + launch.name + "'");
    launch.arguments.push_back({role, value});
    uint64_t bits = 0;
    if (const auto *pointer = std::get_if<uint64_t>(&value)) {
      launch.pointers.push_back({position, placeOf(*pointer)});
    } else if (const auto *map = std::get_if<TensorMapArgument>(&value)) {
      auto type =
          cast<tile::TensorMapType>(kernel.getArgumentTypes()[position]);
      if (Status status = addMap(launch, position, type, *map); !status.ok())
        return status.during("kernel '" + launch.name + "'");
    } else if (const auto *i32 = std::get_if<int32_t>(&value)) {
      bits = bitsOf(*i32);
    } else if (const auto *i64 = std::get_if<int64_t>(&value)) {
      bits = bitsOf(*i64);
    } else {
      bits = bitsOf(std::get<float>(value));
    }
    launch.packed.push_back(bits);
  }
  steps.push_back(std::move(launch));
  return Status::success();
}

void Binding::add(const RecordedCopy &copy) {
  forEachPiece(copy.source, copy.target,
               [&](uint64_t from, uint64_t to, int64_t bytes) {
                 steps.push_back(Copy{placeOf(copy.source.base, from),
                                      placeOf(copy.target.base, to), bytes});
               });
}

Binding::Binding(std::shared_ptr<const LoadedKernels> loaded,
                 const Recording &recording, std::vector<Buffer> callers)
    : kernels(std::move(loaded)), slotCount(recording.slotCount()),
      buffers(std::move(callers)), scratch(scratchOf(recording, buffers)) {
  for (int64_t words : recording.counterWords) {
    counterOffsets.push_back(counterWords);
    counterWords += words;
  }
}

runtime::Expected<std::shared_ptr<const Binding>>
Binding::make(std::shared_ptr<const LoadedKernels> loaded,
              const Recording &recording, std::vector<Buffer> callers,
              std::vector<Apart> apart) {
  std::shared_ptr<Binding> binding(
      new Binding(std::move(loaded), recording, std::move(callers)));
  binding->apart = std::move(apart);
  for (const Buffer &buffer : binding->buffers)
    binding->spans.push_back(uint64_t(buffer.layout.spanBytes()));
  if (binding->counterWords > runtime::Gpu::kMostCounters)
    return Status::failure(
        "expects at most " + std::to_string(runtime::Gpu::kMostCounters) +
        " counters, but got " + std::to_string(binding->counterWords));
  for (const RecordedStep &step : recording.steps) {
    if (const auto *copy = std::get_if<RecordedCopy>(&step)) {
      binding->add(*copy);
      continue;
    }
    if (std::holds_alternative<ElementLoops>(step))
      return Status::failure(kNoElementLoops);
    if (Status status = binding->add(std::get<RecordedLaunch>(step));
        !status.ok())
      return status;
  }
  return std::shared_ptr<const Binding>(std::move(binding));
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

std::optional<std::string> Binding::check(ArrayRef<uint64_t> addresses) const {
  if (addresses.size() != buffers.size())
    return "expects " + std::to_string(buffers.size()) +
           " addresses, but got " + std::to_string(addresses.size());
  for (auto [position, address] : llvm::enumerate(addresses)) {
    const Buffer &buffer = buffers[position];
    if (address == 0 && !buffer.isEmpty)
      return "buffer " + std::to_string(position) +
             ": expects an address, but got null";
    uint64_t rest = (address - buffer.offsetBytes) % buffer.alignment;
    if (rest != 0 && address != 0)
      return "buffer " + std::to_string(position) +
             ": expects memory aligned to " + std::to_string(buffer.alignment) +
             " bytes, " +
             (buffer.isMapped ? "since TMA moves it" : "as when it was bound") +
             ", but got an address that is " + std::to_string(rest) +
             " bytes off";
  }
  for (const Apart &pair : apart) {
    uint64_t written = addresses[pair.written], other = addresses[pair.other];
    if (other - written >= spans[pair.written] &&
        written - other >= spans[pair.other])
      continue; // nearly always, so elements are not looked at
    if (overlap(buffers[pair.written].layout, written,
                buffers[pair.other].layout, other))
      return "expects " + pair.writtenName +
             " in memory of its own, but it overlaps " + pair.otherName +
             " (buffers " + std::to_string(pair.written) + " and " +
             std::to_string(pair.other) + ")";
  }
  return std::nullopt;
}

Status Binding::run(const Launch &step, ArrayRef<uint64_t> slots,
                    runtime::Stream stream) const {
  SmallVector<uint64_t, 32> values(step.packed.begin(), step.packed.end());
  for (const auto &[position, place] : step.pointers)
    values[position] = slots[place.slot] + place.offset;
  SmallVector<void *, 32> addresses;
  for (uint64_t &value : values)
    addresses.push_back(&value);
  alignas(runtime::TensorMap::kAlignment) char maps[kMaxMaps]
                                                   [runtime::TensorMap::kBytes];
  for (auto [number, map] : llvm::enumerate(step.maps)) {
    addresses[map.position] = maps[number];
    Status status =
        map.map.write(slots[map.place.slot] + map.place.offset, maps[number]);
    if (!status.ok())
      return status.during("kernel '" + step.name + "'");
  }
  return kernels->gpu.launch(step.kernel->kernel, step.grid,
                             step.kernel->threads, step.kernel->smemBytes,
                             addresses.data(), stream, step.mode);
}

int64_t Binding::Scratch::bytes() const {
  int64_t total = 0;
  for (auto [slot, bytes] : pieces)
    total += llvm::alignTo(bytes, kScratchAlignment);
  return total;
}

Binding::Scratch Binding::scratchOf(const Recording &recording,
                                    ArrayRef<Buffer> buffers) {
  Scratch scratch;
  for (auto [number, bytes] : llvm::enumerate(recording.allocationBytes)) {
    size_t slot = recording.argumentCount + number;
    auto isIt = [&](const Buffer &buffer) { return buffer.slot == slot; };
    if (llvm::none_of(buffers, isIt))
      scratch.pieces.push_back({slot, bytes});
  }
  return scratch;
}

std::optional<std::string>
Binding::checkScratch(const ScratchMemory &given) const {
  if (scratchBytes() == 0)
    return std::nullopt;
  if (given.address == 0)
    return "expects the address of scratch memory, but got null";
  if (given.address % kScratchAlignment != 0)
    return "expects scratch memory aligned to " +
           std::to_string(kScratchAlignment) +
           " bytes, but got an address that is " +
           std::to_string(given.address % kScratchAlignment) + " bytes off";
  if (given.bytes < scratchBytes())
    return "expects " + std::to_string(scratchBytes()) +
           " bytes of scratch memory or more, but got " +
           std::to_string(given.bytes);
  return std::nullopt;
}

Status Binding::launch(ArrayRef<uint64_t> addresses, runtime::Stream stream,
                       const ScratchMemory &given) const {
  SmallVector<uint64_t, 16> slots(slotCount + counterOffsets.size(), 0);
  for (auto [position, address] : llvm::enumerate(addresses))
    slots[buffers[position].slot] = address - buffers[position].offsetBytes;
  const runtime::Gpu &gpu = kernels->gpu;
  runtime::StreamMemory pool;
  uint64_t place = given.address;
  if (place == 0 && !scratch.pieces.empty()) {
    runtime::Expected<runtime::StreamMemory> memory =
        gpu.allocateInOrder(scratchBytes(), stream);
    if (!memory)
      return memory.status();
    pool = std::move(*memory);
    place = pool.address;
  }
  for (auto [slot, bytes] : scratch.pieces) {
    slots[slot] = place;
    place += llvm::alignTo(bytes, kScratchAlignment);
  }
  if (counterWords != 0) {
    runtime::Expected<runtime::DeviceAddress> first =
        gpu.counters(stream, counterWords);
    if (!first)
      return first.status();
    for (auto [number, offset] : llvm::enumerate(counterOffsets))
      slots[slotCount + number] = *first + offset * sizeof(uint32_t);
  }
  for (const Step &step : steps) {
    Status status = Status::success();
    if (const auto *launch = std::get_if<Launch>(&step)) {
      status = run(*launch, slots, stream);
    } else {
      const auto &copy = std::get<Copy>(step);
      status = gpu.copyOnDevice(slots[copy.to.slot] + copy.to.offset,
                                slots[copy.from.slot] + copy.from.offset,
                                copy.bytes, stream);
    }
    if (!status.ok())
      return status;
  }
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Describing
//===----------------------------------------------------------------------===//

std::string Binding::json() const {
  // Buffers of the caller come first, then the pieces of scratch.
  std::vector<int64_t> bufferOf(slotCount, -1);
  int64_t next = 0;
  for (const Buffer &buffer : buffers)
    bufferOf[buffer.slot] = next++;
  for (auto [slot, bytes] : scratch.pieces)
    bufferOf[slot] = next++;

  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  auto pointer = [&](const Place &place) {
    if (place.slot >= slotCount)
      return json.attribute("counter",
                            static_cast<int64_t>(place.slot - slotCount));
    int64_t number = bufferOf[place.slot];
    int64_t before = number < static_cast<int64_t>(buffers.size())
                         ? buffers[number].offsetBytes
                         : 0;
    json.attribute("buffer", number);
    json.attribute("offset_bytes", static_cast<int64_t>(place.offset) - before);
  };
  auto numbers = [&](StringRef key, ArrayRef<int64_t> list) {
    json.attributeArray(key, [&] {
      for (int64_t number : list)
        json.value(number);
    });
  };
  auto writeMap = [&](const Map &map, const TensorMapArgument &argument) {
    json.attribute("type", "tensor_map");
    pointer(map.place);
    json.attribute("element", nameOf(map.element));
    numbers("sizes", argument.sizes);
    numbers("strides", argument.strides);
    json.attribute("box_rows", map.boxRows);
  };
  auto writeArgument = [&](const Launch &launch, size_t position) {
    const Argument &argument = launch.arguments[position];
    json.attribute("role", textOf(argument.role));
    for (const auto &[where, place] : launch.pointers)
      if (where == position)
        return pointer(place);
    for (const Map &map : launch.maps)
      if (map.position == position)
        return writeMap(map, std::get<TensorMapArgument>(argument.value));
    if (const auto *i32 = std::get_if<int32_t>(&argument.value)) {
      json.attribute("type", "i32");
      json.attribute("value", *i32);
    } else if (const auto *i64 = std::get_if<int64_t>(&argument.value)) {
      json.attribute("type", "i64");
      json.attribute("value", *i64);
    } else {
      json.attribute("type", "f32");
      json.attribute("value", std::get<float>(argument.value));
    }
  };
  auto writeLaunch = [&](const Launch &launch) {
    json.attribute("kernel", launch.name);
    numbers("grid", launch.grid);
    json.attribute("threads", launch.kernel->threads);
    json.attribute("smem_bytes", launch.kernel->smemBytes);
    json.attribute("cooperative", launch.kernel->isCooperative);
    json.attribute("ahead", launch.mode == runtime::LaunchMode::ahead);
    json.attributeArray("arguments", [&] {
      for (size_t i = 0; i < launch.arguments.size(); ++i)
        json.object([&] { writeArgument(launch, i); });
    });
  };
  auto writeCopy = [&](const Copy &copy) {
    json.attributeObject("copy_from", [&] { pointer(copy.from); });
    json.attributeObject("copy_to", [&] { pointer(copy.to); });
    json.attribute("bytes", copy.bytes);
  };
  json.object([&] {
    json.attribute("device", kernels->device);
    json.attributeArray("alignment", [&] {
      for (const Buffer &buffer : buffers)
        json.value(buffer.alignment);
    });
    json.attributeArray("scratch_bytes", [&] {
      for (auto [slot, bytes] : scratch.pieces)
        json.value(bytes);
    });
    json.attributeArray("steps", [&] {
      for (const Step &step : steps)
        json.object([&] {
          if (const auto *launch = std::get_if<Launch>(&step))
            writeLaunch(*launch);
          else
            writeCopy(std::get<Copy>(step));
        });
    });
  });
  return text;
}
