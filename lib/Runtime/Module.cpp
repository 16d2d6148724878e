//===- Module.cpp - Loading cubins and launching their kernels ------------===//

#include "State.h"

#include <limits>

using namespace attn::runtime;

ModuleState::~ModuleState() {
  if (!handle)
    return;
  Current current(*gpu);
  gpu->driver->moduleUnload(handle);
}

/// Whether a cubin for the chip runs on the GPU: it must be of the same major
/// version and no newer, and with the suffix `a` of exactly that version.
/// PTX and names that are not of this form are left to the driver.
static bool runsOn(std::string_view chip, int computeCapability) {
  if (chip.substr(0, 3) != "sm_")
    return true;
  int version = 0;
  size_t at = 3;
  for (; at < chip.size() && chip[at] >= '0' && chip[at] <= '9'; ++at)
    version = 10 * version + (chip[at] - '0');
  if (chip.substr(at) == "a")
    return version == computeCapability;
  return version / 10 == computeCapability / 10 && version <= computeCapability;
}

Expected<Module> Gpu::load(std::string_view image,
                           std::string_view chip) const {
  const GpuFacts &facts = state->facts;
  const std::string wrongChip =
      "the kernel was built for " + std::string(chip) + ", but the GPU is a " +
      facts.name + " (sm_" + std::to_string(facts.computeCapability) + ")";
  if (!runsOn(chip, facts.computeCapability))
    return Status::failure(wrongChip);

  Module module;
  module.state = std::make_shared<ModuleState>();
  module.state->gpu = state;
  // PTX is text and the driver wants it to end with a zero byte.
  std::string terminated(image);
  char log[4096] = {};
  LoadOption options[] = {LoadOption::errorLog, LoadOption::errorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  Current current(*state);
  RelaxedCapture relaxed(*state->driver);
  Result result = state->driver->moduleLoad(
      &module.state->handle, terminated.c_str(), 2, options, values);
  if (result == kNoBinaryForGpu)
    return Status::failure(wrongChip + ": " + state->driver->text(result));
  Status status = current.check(result, "loading a kernel");
  if (!status.ok() && log[0])
    return Status::failure(status.message() + ": " + log);
  // Asking the driver for what is not there is an error to those who watch.
  if (status.ok() && image.find(kSidesSymbol) != std::string_view::npos)
    status = tellSides(*state, module.state->handle);
  if (!status.ok())
    return status;
  return module;
}

Expected<Kernel> Module::kernel(const std::string &name) const {
  Kernel kernel;
  kernel.module = state;
  kernel.kernelName = name;
  Current current(*state->gpu);
  Status status =
      current.check(state->gpu->driver->moduleFunction(
                        &kernel.handle, state->handle, name.c_str()),
                    "finding the kernel");
  if (!status.ok())
    return status.during("'" + name + "'");
  return kernel;
}

Status Kernel::allowDynamicSmem(int64_t bytes) const {
  const GpuState &gpu = *module->gpu;
  if (bytes > gpu.facts.smemBytesPerBlock)
    return Status::failure(
        "kernel '" + kernelName + "' needs " + std::to_string(bytes) +
        " bytes of shared memory per block, but " + gpu.facts.name + " has " +
        std::to_string(gpu.facts.smemBytesPerBlock));
  Current current(gpu);
  return current.check(gpu.driver->setFunctionAttribute(
                           handle, FunctionAttribute::maxDynamicSmemBytes,
                           static_cast<int>(bytes)),
                       "reserving shared memory");
}

Expected<KernelFacts> Kernel::facts() const {
  const GpuState &gpu = *module->gpu;
  Current current(gpu);
  KernelFacts facts;
  const std::pair<FunctionAttribute, int64_t *> attributes[] = {
      {FunctionAttribute::registers, &facts.registersPerThread},
      {FunctionAttribute::localBytes, &facts.localBytesPerThread},
      {FunctionAttribute::staticSmemBytes, &facts.staticSmemBytes},
      {FunctionAttribute::maxThreadsPerBlock, &facts.maxThreadsPerBlock}};
  for (auto [attribute, place] : attributes) {
    int value = 0;
    Status status =
        current.check(gpu.driver->functionAttribute(&value, attribute, handle),
                      "asking about a kernel");
    if (!status.ok())
      return status;
    *place = value;
  }
  return facts;
}

Expected<int64_t> Kernel::blocksPerSm(int64_t threads,
                                      int64_t smemBytes) const {
  const GpuState &gpu = *module->gpu;
  Current current(gpu);
  int blocks = 0;
  Status status = current.check(
      gpu.driver->blocksPerSm(&blocks, handle, static_cast<int>(threads),
                              static_cast<size_t>(smemBytes)),
      "asking how many blocks fit");
  if (!status.ok())
    return status;
  return blocks;
}

Expected<int64_t> Kernel::mostBlocks(int64_t threads, int64_t smemBytes,
                                     int64_t cluster) const {
  const GpuState &gpu = *module->gpu;
  if (cluster == 1) {
    Expected<int64_t> blocks = blocksPerSm(threads, smemBytes);
    if (!blocks)
      return blocks;
    return *blocks * gpu.facts.multiprocessors;
  }
  if (!gpu.driver->mostClusters)
    return Status::failure("the CUDA driver is too old: it has no clusters");
  LaunchAttribute attribute = {LaunchAttributeId::clusterDimension, {}};
  attribute.value.cluster = {static_cast<unsigned>(cluster), 1, 1};
  LaunchConfig config = {static_cast<unsigned>(cluster),
                         1,
                         1,
                         static_cast<unsigned>(threads),
                         1,
                         1,
                         static_cast<unsigned>(smemBytes),
                         /*stream=*/nullptr,
                         &attribute,
                         1};
  int clusters = 0;
  Current current(gpu);
  Status status =
      current.check(gpu.driver->mostClusters(&clusters, handle, &config),
                    "asking how many clusters fit");
  if (!status.ok())
    return status;
  return clusters * cluster;
}

/// A launch with an attribute that says how its blocks come to run.
static Result launchWith(const Driver &driver, LaunchMode mode, void *function,
                         std::array<int64_t, 3> grid, int64_t threads,
                         int64_t smemBytes, void **arguments, Stream stream) {
  bool isTogether = mode == LaunchMode::together;
  LaunchAttribute attribute = {
      isTogether ? LaunchAttributeId::cooperative
                 : LaunchAttributeId::programmaticSerialization,
      {}};
  if (isTogether)
    attribute.value.cooperative = 1;
  else
    attribute.value.programmaticSerialization = 1;
  LaunchConfig config = {static_cast<unsigned>(grid[0]),
                         static_cast<unsigned>(grid[1]),
                         static_cast<unsigned>(grid[2]),
                         static_cast<unsigned>(threads),
                         1,
                         1,
                         static_cast<unsigned>(smemBytes),
                         stream,
                         &attribute,
                         1};
  return driver.launchKernelEx(&config, function, arguments, nullptr);
}

/// Whether launches can begin ahead of time, in graphs too: from cc 9.0 and
/// CUDA 12.3 on.
static bool canLaunchAhead(const GpuState &gpu) {
  return gpu.facts.computeCapability >= 90 &&
         gpu.facts.driverVersion >= 12030 && gpu.driver->launchKernelEx;
}

Status Gpu::launch(const Kernel &kernel, std::array<int64_t, 3> grid,
                   int64_t threads, int64_t smemBytes, void **arguments,
                   Stream stream, LaunchMode mode) const {
  // The driver's own limits, in its own order; it would only say "invalid
  // value".
  const int64_t limits[] = {std::numeric_limits<int32_t>::max(), 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0)
      return Status::success();
    if (grid[i] < 0 || grid[i] > limits[i])
      return Status::failure("launching '" + kernel.name() +
                             "': expects at most " + std::to_string(limits[i]) +
                             " blocks in grid dimension " + std::to_string(i) +
                             ", but got " + std::to_string(grid[i]));
  }
  if (mode == LaunchMode::together && !state->driver->launchKernelEx)
    return Status::failure("launching '" + kernel.name() +
                           "': the CUDA driver is too old");
  if (mode == LaunchMode::ahead && !canLaunchAhead(*state))
    mode = LaunchMode::plain;
  Current current(*state);
  Status status = current.check(
      mode != LaunchMode::plain
          ? launchWith(*state->driver, mode, kernel.handle, grid, threads,
                       smemBytes, arguments, stream)
          : state->driver->launchKernel(
                kernel.handle, static_cast<unsigned>(grid[0]),
                static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2]),
                static_cast<unsigned>(threads), 1, 1,
                static_cast<unsigned>(smemBytes), stream, arguments, nullptr),
      "launching");
  // The words are made only where they are needed: this is the hot path.
  return status.ok() ? status : status.during("kernel '" + kernel.name() + "'");
}
