//===- Assembler.cpp - Finding ptxas and running it -----------------------===//

#include "attn/CAPI/Assembler.h"

#include "ChildProcess.h"

#include "attn/Runtime/Cubin.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/VersionTuple.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>

using namespace attn;
using namespace llvm;
using runtime::Status;

/// How long ptxas may take, in seconds, unless $ATTN_PTXAS_SECONDS says.
static constexpr double kDefaultSeconds = 120;
static constexpr int kMaxSeconds = 1'000'000;

static runtime::Expected<TimeLimit> timeLimit() {
  const char *text = std::getenv("ATTN_PTXAS_SECONDS");
  double seconds = kDefaultSeconds;
  if (text && *text &&
      (!to_float(text, seconds) || !(seconds > 0 && seconds <= kMaxSeconds)))
    return Status::failure("$ATTN_PTXAS_SECONDS expects more than 0 and at "
                           "most " +
                           std::to_string(kMaxSeconds) + ", but got '" + text +
                           "'");
  return TimeLimit{
      std::chrono::milliseconds(int64_t(std::ceil(seconds * 1000))),
      "$ATTN_PTXAS_SECONDS"};
}

/// Runs ptxas.
static runtime::Expected<ProgramOutput>
run(const std::string &path, ArrayRef<std::string> args, StringRef input = "") {
  runtime::Expected<TimeLimit> limit = timeLimit();
  if (!limit)
    return limit.status();
  return runProgram(path, args, input, *limit);
}

runtime::Expected<std::string> Assembler::assemble(StringRef ptx,
                                                   StringRef chip) const {
  runtime::Expected<ProgramOutput> done = run(
      path, {"-arch=" + chip.str(), "-O3", kInput.str(), "-o", kOutput.str()},
      ptx);
  if (!done)
    return done.status();
  // One that died may have left a part of a file.
  runtime::Expected<std::vector<runtime::CubinKernel>> kernels =
      runtime::readCubin(done->bytes);
  if (!kernels)
    return kernels.status().during(path + " made no cubin");
  return std::move(done->bytes);
}

/// The assembler at a path, if it is one that is new enough.
static runtime::Expected<Assembler> inspect(const std::string &path) {
  runtime::Expected<ProgramOutput> said = run(path, {"--version"});
  if (!said)
    return said.status();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  StringRef text(said->text);
  StringRef number = text.split(", V").second;
  number = number.take_while([](char c) { return isDigit(c) || c == '.'; });
  VersionTuple version, least;
  least.tryParse(ATTN_PTXAS_MIN_VERSION);
  if (version.tryParse(number))
    return Status::failure("expects ptxas, but " + path + " says '" +
                           text.trim().take_front(80).str() + "'");
  if (version < least)
    return Status::failure("expects ptxas " + least.getAsString() +
                           " or newer, but " + path + " is " + number.str());
  return Assembler{path, "ptxas " + number.str()};
}

namespace {
/// What is known of assemblers in this process.
struct Known {
  std::mutex mutex;
  std::optional<std::string> wanted;
  /// By path; asking each for its version takes milliseconds.
  std::map<std::string, runtime::Expected<Assembler>> inspected;
};
} // namespace

static Known &known() {
  static Known *state = new Known(); // never destroyed: threads may outlive it
  return *state;
}

/// The assembler at a path.  It is run without the lock: a child of a fork
/// needs that, and two threads may well ask the same.
static runtime::Expected<Assembler> inspected(const std::string &path) {
  Known &state = known();
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    auto found = state.inspected.find(path);
    if (found != state.inspected.end())
      return found->second;
  }
  runtime::Expected<Assembler> made = inspect(path);
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.inspected.emplace(path, std::move(made)).first->second;
}

/// The assembler that somebody named, by a path or, as a shell would have it,
/// by a name that is in PATH.
static runtime::Expected<Assembler> named(const std::string &name) {
  if (StringRef(name).contains('/'))
    return inspected(name);
  if (ErrorOr<std::string> path = sys::findProgramByName(name))
    return inspected(*path);
  return Status::failure("expects ptxas, but there is no program '" + name +
                         "' in PATH");
}

static std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (ErrorOr<std::string> path = sys::findProgramByName("ptxas"))
    paths.push_back(*path);
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable))
      paths.push_back(std::string(root) + "/bin/ptxas");
  paths.push_back("/usr/local/cuda/bin/ptxas");
  return paths;
}

runtime::Expected<std::optional<Assembler>> attn::findAssembler() {
  using Found = runtime::Expected<std::optional<Assembler>>;
  // Of candidates a failure is no reason to stop, of this it is.
  if (runtime::Expected<TimeLimit> limit = timeLimit(); !limit)
    return Found(limit.status());
  std::optional<std::string> wanted;
  {
    std::lock_guard<std::mutex> lock(known().mutex);
    wanted = known().wanted;
  }
  if (const char *name = std::getenv("ATTN_PTXAS"); !wanted && name)
    wanted = name;
  if (wanted && wanted->empty())
    return Found(std::optional<Assembler>());
  if (wanted) {
    runtime::Expected<Assembler> found = named(*wanted);
    return found ? Found(std::optional(*found)) : Found(found.status());
  }
  for (const std::string &path : candidates())
    if (sys::fs::can_execute(path))
      if (runtime::Expected<Assembler> found = inspected(path))
        return Found(std::optional(*found));
  return Found(std::optional<Assembler>());
}

Status attn::setAssembler(std::optional<std::string> name) {
  if (name && !name->empty())
    if (runtime::Expected<Assembler> found = named(*name); !found)
      return found.status();
  std::lock_guard<std::mutex> lock(known().mutex);
  known().wanted = std::move(name);
  return Status::success();
}
