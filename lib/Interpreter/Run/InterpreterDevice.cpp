//===- InterpreterDevice.cpp - The interpreter as a device ----------------===//

#include "attn/Interpreter/InterpreterDevice.h"

#include "attn/Host/Elements.h"

using namespace mlir;
using namespace attn;

FailureOr<uint64_t> InterpreterDevice::allocate(int64_t bytes,
                                                Location location) {
  constexpr int64_t limit = int64_t(1) << 32;
  int64_t used = global.allocatedBytes();
  if (bytes < 0 || bytes > limit - used)
    return emitError(location)
           << "expects at most " << limit
           << " bytes of memory for the interpreter, but got " << bytes
           << " more than the " << used << " in use";
  return global.allocate(bytes);
}

LogicalResult InterpreterDevice::free(uint64_t address, Location location) {
  if (!global.free(address))
    return emitError(location)
           << "expects the address of an allocation to free, but got "
           << address;
  return success();
}

FailureOr<uint64_t> InterpreterDevice::counters(int64_t count,
                                                Location location) {
  std::vector<int32_t> zeros(count, 0);
  int64_t bytes = count * sizeof(int32_t);
  FailureOr<uint64_t> address = allocate(bytes, location);
  if (failed(address))
    return failure();
  if (std::optional<std::string> error =
          global.write(*address, zeros.data(), bytes))
    return emitError(location) << *error;
  counterCounts[*address] = count;
  return address;
}

LogicalResult InterpreterDevice::launch(tile::KernelOp kernel,
                                        std::array<int64_t, 3> grid,
                                        ArrayRef<KernelArgument> arguments,
                                        Location location) {
  FailureOr<tile::Traffic> traffic =
      interpret(kernel, grid, arguments, global, options);
  if (failed(traffic))
    return failure();
  total += *traffic;
  for (const KernelArgument &argument : arguments) {
    const auto *address = std::get_if<uint64_t>(&argument);
    auto known = address ? counterCounts.find(*address) : counterCounts.end();
    if (known == counterCounts.end())
      continue;
    std::vector<int32_t> values(known->second);
    if (std::optional<std::string> error = global.read(
            *address, values.data(), values.size() * sizeof(int32_t)))
      return emitError(location) << *error;
    for (int32_t value : values)
      if (value != 0)
        return emitError(location)
               << "expects '" << kernel.getName()
               << "' to leave its counter at 0, but got " << value;
  }
  return success();
}

LogicalResult InterpreterDevice::copy(const HostArray &source,
                                      const HostArray &target,
                                      Location location) {
  int64_t bytes = source.elementBytes(), count = source.count();
  std::vector<uint8_t> element(bytes);
  SmallVector<int64_t> index(source.sizes.size(), 0);
  for (int64_t done = 0; done < count; ++done) {
    int64_t from = 0, to = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      from += index[i] * source.strides[i];
      to += index[i] * target.strides[i];
    }
    std::optional<std::string> error =
        global.read(source.address() + from * bytes, element.data(), bytes);
    if (!error)
      error =
          global.write(target.address() + to * bytes, element.data(), bytes);
    if (error)
      return emitError(location) << *error;
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < source.sizes[i])
        break;
      index[i] = 0;
    }
  }
  return success();
}

FailureOr<HostScalar> InterpreterDevice::load(Type type, uint64_t address,
                                              Location location) {
  uint64_t bits = 0;
  if (!isElement(type))
    return emitError(location) << "expects elements that the host computes "
                                  "with, but got "
                               << type;
  if (std::optional<std::string> error =
          global.read(address, &bits, bytesOfElement(type)))
    return emitError(location) << *error;
  return fromBits(type, bits);
}

LogicalResult InterpreterDevice::store(const HostScalar &value, Type type,
                                       uint64_t address, Location location) {
  if (!isElement(type))
    return emitError(location) << "expects elements that the host computes "
                                  "with, but got "
                               << type;
  uint64_t bits = toBits(type, value);
  if (std::optional<std::string> error =
          global.write(address, &bits, bytesOfElement(type)))
    return emitError(location) << *error;
  return success();
}
