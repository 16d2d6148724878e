//===- Assembler.cpp - Finding ptxas and running it -----------------------===//

#include "attn/CAPI/Assembler.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/VersionTuple.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <map>
#include <mutex>

using namespace attn;
using namespace llvm;
using runtime::Status;

/// A file that goes away with the object.
static runtime::Expected<SmallString<128>>
temporaryFile(StringRef suffix, StringRef content = "") {
  SmallString<128> path;
  int descriptor = -1;
  std::error_code code =
      sys::fs::createTemporaryFile("attn", suffix, descriptor, path);
  if (code)
    return Status::failure("cannot make a temporary file: " + code.message());
  FileRemover remover(path);
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  if (stream.has_error()) {
    std::string why = stream.error().message();
    stream.clear_error();
    return Status::failure("cannot write " + path.str().str() + ": " + why);
  }
  remover.releaseFile();
  return path;
}

static std::string contentOf(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Runs a program; gives what it printed if it succeeded.
static runtime::Expected<std::string> run(StringRef program,
                                          ArrayRef<StringRef> arguments) {
  runtime::Expected<SmallString<128>> output = temporaryFile("txt");
  if (!output)
    return output.status();
  FileRemover remover(*output);
  SmallVector<StringRef> command = {program};
  append_range(command, arguments);
  std::optional<StringRef> redirects[] = {StringRef(), output->str(),
                                          output->str()};
  std::string why;
  int code = sys::ExecuteAndWait(program, command, /*Env=*/std::nullopt,
                                 redirects, /*SecondsToWait=*/0,
                                 /*MemoryLimit=*/0, &why);
  std::string text = contentOf(*output);
  if (code == 0)
    return text;
  if (why.empty())
    why = StringRef(text).trim().str();
  return Status::failure(program.str() + " failed with status " +
                         std::to_string(code) + (why.empty() ? "" : ": ") +
                         why);
}

runtime::Expected<std::string> Assembler::assemble(StringRef ptx,
                                                   StringRef chip) const {
  runtime::Expected<SmallString<128>> input = temporaryFile("ptx", ptx);
  if (!input)
    return input.status();
  FileRemover removeInput(*input);
  runtime::Expected<SmallString<128>> output = temporaryFile("cubin");
  if (!output)
    return output.status();
  FileRemover removeOutput(*output);
  std::string arch = "-arch=" + chip.str();
  runtime::Expected<std::string> done =
      run(path, {arch, "-O3", input->str(), "-o", output->str()});
  if (!done)
    return done.status();
  std::string cubin = contentOf(*output);
  if (cubin.empty())
    return Status::failure(path + " made no cubin");
  return cubin;
}

/// The assembler at a path, if it is one that is new enough.
static runtime::Expected<Assembler> inspect(const std::string &path) {
  runtime::Expected<std::string> text = run(path, {"--version"});
  if (!text)
    return text.status();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  StringRef number = StringRef(*text).split(", V").second;
  number = number.take_while([](char c) { return isDigit(c) || c == '.'; });
  VersionTuple version, least;
  least.tryParse(ATTN_PTXAS_MIN_VERSION);
  if (version.tryParse(number))
    return Status::failure("expects ptxas, but " + path + " says '" +
                           StringRef(*text).trim().take_front(80).str() + "'");
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

  const runtime::Expected<Assembler> &at(const std::string &path) {
    auto found = inspected.find(path);
    if (found == inspected.end())
      found = inspected.emplace(path, inspect(path)).first;
    return found->second;
  }
};
} // namespace

static Known &known() {
  static Known *state = new Known(); // never destroyed: threads may outlive it
  return *state;
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
  Known &state = known();
  std::lock_guard<std::mutex> lock(state.mutex);
  std::optional<std::string> named = state.wanted;
  if (const char *path = std::getenv("ATTN_PTXAS"); !named && path)
    named = path;
  if (named && named->empty())
    return Found(std::optional<Assembler>());
  if (named) {
    const runtime::Expected<Assembler> &found = state.at(*named);
    return found ? Found(std::optional(*found)) : Found(found.status());
  }
  for (const std::string &path : candidates())
    if (sys::fs::can_execute(path))
      if (const runtime::Expected<Assembler> &found = state.at(path))
        return Found(std::optional(*found));
  return Found(std::optional<Assembler>());
}

Status attn::setAssembler(std::optional<std::string> path) {
  Known &state = known();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (path && !path->empty())
    if (const runtime::Expected<Assembler> &found = state.at(*path); !found)
      return found.status();
  state.wanted = std::move(path);
  return Status::success();
}
