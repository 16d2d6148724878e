//===- GpuDevice.cpp - Launches and copies on a GPU -----------------------===//

#include "attn/CAPI/GpuDevice.h"

using namespace attn;
using namespace mlir;

runtime::Expected<LoadedKernels> LoadedKernels::load(const runtime::Gpu &gpu,
                                                     const Program &program) {
  std::vector<runtime::Module> modules;
  for (const Binary &binary : program.binaries) {
    runtime::Expected<runtime::Module> module =
        gpu.load(binary.cubin, binary.chip);
    if (!module)
      return module.status();
    modules.push_back(*module);
  }
  LoadedKernels loaded;
  for (const KernelInfo &info : program.kernels) {
    std::string symbol = StringRef(info.name).rsplit("::").second.str();
    runtime::Expected<runtime::Kernel> kernel =
        modules[info.binary].kernel(symbol);
    if (!kernel)
      return kernel.status();
    runtime::Status status = kernel->allowDynamicSmem(info.smemBytes);
    if (!status.ok())
      return status;
    loaded.entries[info.name] = {*kernel, info.threads, info.smemBytes};
  }
  return loaded;
}

const LoadedKernels::Entry *LoadedKernels::find(StringRef name) const {
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

/// A failure of the runtime as a diagnostic.
static LogicalResult report(const runtime::Status &status, Location location) {
  if (status.ok())
    return success();
  return emitError(location) << status.message();
}

FailureOr<uint64_t> GpuDevice::allocate(int64_t bytes, Location location) {
  runtime::Expected<runtime::Memory> piece = gpu.allocate(bytes);
  if (!piece)
    return report(piece.status(), location);
  uint64_t address = piece->address;
  memory[address] = std::move(*piece);
  return address;
}

LogicalResult GpuDevice::free(uint64_t address, Location location) {
  if (memory.erase(address))
    return success();
  return emitError(location) << "expects the address of an allocation";
}

LogicalResult GpuDevice::launch(tile::KernelOp kernel,
                                std::array<int64_t, 3> grid,
                                ArrayRef<KernelArgument> arguments,
                                Location location) {
  std::string name = qualifiedName(kernel);
  const LoadedKernels::Entry *entry = kernels.find(name);
  if (!entry)
    return emitError(location)
           << "expects kernel '" << name << "' to be loaded on the GPU";
  // The driver reads as many bytes as the parameter has, from the address of
  // each value.
  SmallVector<void *> addresses;
  for (const KernelArgument &argument : arguments)
    addresses.push_back(std::visit(
        [](const auto &value) {
          return const_cast<void *>(static_cast<const void *>(&value));
        },
        argument));
  return report(gpu.launch(entry->kernel, grid, entry->threads,
                           entry->smemBytes, addresses.data(), stream),
                location);
}

LogicalResult GpuDevice::copy(const HostArray &source, const HostArray &target,
                              Location location) {
  // The inner dimensions that are dense in both arrays are one piece.
  int64_t rank = source.sizes.size();
  int64_t piece = 1;
  int64_t outer = rank;
  while (outer > 0 &&
         (source.sizes[outer - 1] == 1 || (source.strides[outer - 1] == piece &&
                                           target.strides[outer - 1] == piece)))
    piece *= source.sizes[--outer];
  int64_t pieces = 1;
  for (int64_t size : ArrayRef(source.sizes).take_front(outer))
    pieces *= size;

  int64_t bytes = piece * source.elementBytes();
  for (int64_t number = 0; number < pieces; ++number) {
    int64_t from = 0, to = 0, rest = number;
    for (int64_t dim = outer - 1; dim >= 0; --dim) {
      int64_t index = rest % source.sizes[dim];
      rest /= source.sizes[dim];
      from += index * source.strides[dim];
      to += index * target.strides[dim];
    }
    runtime::Status status = gpu.copyOnDevice(
        target.address() + to * target.elementBytes(),
        source.address() + from * source.elementBytes(), bytes, stream);
    if (!status.ok())
      return report(status, location);
  }
  return success();
}
