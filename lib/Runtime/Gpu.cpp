//===- Gpu.cpp - Opening a GPU, its memory and its events -----------------===//

#include "State.h"

using namespace attn::runtime;

GpuState::~GpuState() {
  if (!context)
    return;
  {
    Current current(*this);
    few.release(*driver);
    many.release(*driver);
  }
  driver->contextRelease(device);
}

/// Asks the driver for everything that GpuFacts holds.
static Status readFacts(const Driver &driver, int device, GpuFacts &facts) {
  char name[256] = {};
  size_t memory = 0;
  int major = 0, minor = 0, sms = 0, smemBlock = 0, smemSm = 0, registers = 0,
      l2 = 0, kilohertz = 0;
  const std::pair<DeviceAttribute, int *> attributes[] = {
      {DeviceAttribute::computeCapabilityMajor, &major},
      {DeviceAttribute::computeCapabilityMinor, &minor},
      {DeviceAttribute::multiprocessors, &sms},
      {DeviceAttribute::smemBytesPerBlock, &smemBlock},
      {DeviceAttribute::smemBytesPerSm, &smemSm},
      {DeviceAttribute::registersPerSm, &registers},
      {DeviceAttribute::l2Bytes, &l2},
      {DeviceAttribute::clockKilohertz, &kilohertz}};
  Result result = driver.deviceName(name, sizeof(name) - 1, device);
  if (result == 0)
    result = driver.deviceMemory(&memory, device);
  if (result == 0)
    result = driver.driverVersion(&facts.driverVersion);
  for (auto [attribute, value] : attributes)
    if (result == 0)
      result = driver.deviceAttribute(value, attribute, device);
  facts.name = name;
  facts.computeCapability = 10 * major + minor;
  facts.multiprocessors = sms;
  facts.smemBytesPerBlock = smemBlock;
  facts.smemBytesPerSm = smemSm;
  facts.registersPerSm = registers;
  facts.l2Bytes = l2;
  facts.memoryBytes = static_cast<int64_t>(memory);
  facts.clockHz = 1e3 * kilohertz;
  return driver.check(result, "asking the GPU what it is");
}

Expected<int> Gpu::count() {
  Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.status();
  int devices = 0;
  if (Status status = (*driver)->check((*driver)->deviceCount(&devices),
                                       "counting the GPUs");
      !status.ok())
    return status;
  return devices;
}

Expected<int> Gpu::ordinalOf(DeviceAddress address) {
  Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.status();
  int ordinal = 0;
  Status status =
      (*driver)->check((*driver)->pointerAttribute(
                           &ordinal, PointerAttribute::deviceOrdinal, address),
                       "asking which GPU an address belongs to");
  if (!status.ok())
    return status;
  return ordinal;
}

Expected<int> Gpu::currentOrdinal() {
  Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.status();
  int device = 0;
  Status status = (*driver)->check((*driver)->currentDevice(&device),
                                   "asking for the GPU of this thread");
  if (!status.ok())
    return status;
  return device;
}

Expected<Gpu> Gpu::open(int ordinal) {
  Expected<int> devices = count();
  if (!devices)
    return devices.status();
  if (*devices == 0)
    return Status::failure("there is no GPU: the CUDA driver found none");
  if (ordinal < 0 || ordinal >= *devices)
    return Status::failure("expects a GPU number below " +
                           std::to_string(*devices) + ", but got " +
                           std::to_string(ordinal));

  const Driver &driver = **Driver::get();
  auto state = std::make_shared<GpuState>();
  state->driver = &driver;
  Status status = driver.check(driver.deviceGet(&state->device, ordinal),
                               "opening the GPU");
  if (status.ok())
    status = readFacts(driver, state->device, state->facts);
  if (status.ok())
    status = driver.check(driver.contextRetain(&state->context, state->device),
                          "making a context on the GPU");
  if (!status.ok())
    return status;
  Gpu gpu;
  gpu.state = std::move(state);
  return gpu;
}

const GpuFacts &Gpu::facts() const { return state->facts; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Memory &Memory::operator=(Memory &&other) noexcept {
  std::swap(address, other.address);
  std::swap(bytes, other.bytes);
  std::swap(gpu, other.gpu);
  return *this;
}

Memory::~Memory() {
  if (!gpu || address == 0)
    return;
  Current current(*gpu);
  gpu->driver->free(address);
}

Expected<Memory> Gpu::allocate(int64_t bytes) const {
  Memory memory;
  memory.gpu = state;
  memory.bytes = bytes;
  Current current(*state);
  // The driver refuses zero bytes; an empty tensor still has an address.
  size_t size = bytes > 0 ? static_cast<size_t>(bytes) : 1;
  Status status = current.check(state->driver->allocate(&memory.address, size),
                                "on the GPU");
  if (!status.ok()) {
    memory.address = 0;
    return status.during("allocating " + std::to_string(bytes) + " bytes");
  }
  return memory;
}

StreamMemory &StreamMemory::operator=(StreamMemory &&other) noexcept {
  std::swap(address, other.address);
  std::swap(gpu, other.gpu);
  std::swap(stream, other.stream);
  return *this;
}

StreamMemory::~StreamMemory() {
  if (!gpu || address == 0)
    return;
  Current current(*gpu);
  gpu->driver->freeInOrder(address, stream);
}

Expected<StreamMemory> Gpu::allocateInOrder(int64_t bytes,
                                            Stream stream) const {
  StreamMemory memory;
  memory.gpu = state;
  memory.stream = stream;
  Current current(*state);
  size_t size = bytes > 0 ? static_cast<size_t>(bytes) : 1;
  Status status = current.check(
      state->driver->allocateInOrder(&memory.address, size, stream),
      "on the GPU");
  if (!status.ok()) {
    memory.address = 0;
    return status.during("allocating " + std::to_string(bytes) +
                         " bytes of scratch");
  }
  return memory;
}

Status Gpu::copyToDevice(DeviceAddress to, const void *from, int64_t bytes,
                         Stream stream) const {
  if (bytes == 0)
    return Status::success();
  Current current(*state);
  return current.check(state->driver->copyToDevice(to, from, bytes, stream),
                       "copying to the GPU");
}

Status Gpu::copyToHost(void *to, DeviceAddress from, int64_t bytes,
                       Stream stream) const {
  if (bytes == 0)
    return Status::success();
  Current current(*state);
  return current.check(state->driver->copyToHost(to, from, bytes, stream),
                       "copying from the GPU");
}

Status Gpu::copyOnDevice(DeviceAddress to, DeviceAddress from, int64_t bytes,
                         Stream stream) const {
  if (bytes == 0)
    return Status::success();
  Current current(*state);
  return current.check(state->driver->copyOnDevice(to, from, bytes, stream),
                       "copying on the GPU");
}

Status Gpu::fill(DeviceAddress to, uint8_t value, int64_t bytes,
                 Stream stream) const {
  if (bytes == 0)
    return Status::success();
  Current current(*state);
  return current.check(state->driver->fill(to, value, bytes, stream),
                       "filling memory of the GPU");
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

Event &Event::operator=(Event &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(gpu, other.gpu);
  return *this;
}

Event::~Event() {
  if (!handle)
    return;
  Current current(*gpu);
  gpu->driver->eventDestroy(handle);
}

Expected<Event> Gpu::event() const {
  Event event;
  event.gpu = state;
  Current current(*state);
  Status status = current.check(state->driver->eventCreate(&event.handle, 0),
                                "making an event");
  if (!status.ok())
    return status;
  return event;
}

Status Gpu::record(const Event &event, Stream stream) const {
  Current current(*state);
  return current.check(state->driver->eventRecord(event.handle, stream),
                       "recording an event");
}

Expected<double> Gpu::secondsBetween(const Event &first,
                                     const Event &last) const {
  Current current(*state);
  float milliseconds = 0;
  Status status = current.check(state->driver->eventSynchronize(last.handle),
                                "waiting for the GPU");
  if (status.ok())
    status = current.check(
        state->driver->eventElapsed(&milliseconds, first.handle, last.handle),
        "reading the time between two events");
  if (!status.ok())
    return status;
  return 1e-3 * milliseconds;
}

Expected<bool> Gpu::isCapturing(Stream stream) const {
  Current current(*state);
  CaptureStatus capture = CaptureStatus::none;
  Status status =
      current.check(state->driver->streamIsCapturing(stream, &capture),
                    "asking whether a stream captures a graph");
  if (!status.ok())
    return status;
  return capture != CaptureStatus::none;
}

Status Gpu::synchronize(Stream stream) const {
  Current current(*state);
  return current.check(state->driver->streamSynchronize(stream),
                       "waiting for the GPU");
}
