//===- ChildProcess.cpp - posix_spawn, pipes and a clock ------------------===//

#include "ChildProcess.h"

#include "ForkGate.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

using namespace attn;
using namespace llvm;
using runtime::Status;
using Clock = std::chrono::steady_clock;

/// Of what a program prints, so much is kept.
static constexpr size_t kMaxText = 1 << 20;
/// Our descriptors lie behind those that the program gets.
static constexpr int kFirstDescriptor = 10;
/// How often a program that has closed its output is asked whether it has
/// ended.
static constexpr std::chrono::milliseconds kPause(1);

namespace {

/// A file descriptor that is closed at the end.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) : number(other.number) { other.number = -1; }
  Descriptor &operator=(Descriptor &&other) {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() {
    if (number >= 0)
      ::close(number);
    number = -1;
  }
  /// The same file, behind the numbers that the program gets.
  Descriptor moved() const {
    if (number < 0)
      return Descriptor();
    return Descriptor(fcntl(number, F_DUPFD_CLOEXEC, kFirstDescriptor));
  }
  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }

private:
  int number = -1;
};

/// A program that runs, or has ended and was not waited for.
class Child {
public:
  explicit Child(pid_t pid) : pid(pid) {}
  ~Child() {
    if (pid <= 0)
      return;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
      ;
  }

  /// Its status as waitpid gives it, or nothing by then.
  std::optional<int> wait(Clock::time_point until) {
    while (true) {
      int status = 0;
      pid_t ended = waitpid(pid, &status, WNOHANG);
      if (ended < 0 && errno == EINTR)
        continue;
      if (ended != 0) {
        pid = 0;
        // Somebody ignores or collects all children of this process: what the
        // program has made tells whether it succeeded.
        return ended < 0 ? 0 : status;
      }
      if (Clock::now() >= until)
        return std::nullopt;
      std::this_thread::sleep_for(kPause);
    }
  }

private:
  pid_t pid;
};

} // namespace

static Status cannot(const std::string &what) {
  return Status::failure("cannot " + what + ": " + std::strerror(errno));
}

static std::string seconds(std::chrono::milliseconds time) {
  std::string text;
  raw_string_ostream(text) << format("%g", time.count() / 1000.0);
  return text;
}

/// Memory with a descriptor and these bytes.
static runtime::Expected<Descriptor> memoryFile(StringRef bytes) {
  Descriptor file = Descriptor(memfd_create("attn", MFD_CLOEXEC)).moved();
  if (!file)
    return cannot("make a file in memory");
  while (!bytes.empty()) {
    ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return cannot("write to a file in memory");
    bytes = bytes.drop_front(written);
  }
  return file;
}

static runtime::Expected<std::string> contentOf(const Descriptor &file) {
  off_t size = lseek(file.get(), 0, SEEK_END);
  if (size < 0)
    return cannot("read a file in memory");
  std::string content(size, '\0');
  for (size_t at = 0; at < content.size();) {
    ssize_t read =
        pread(file.get(), &content[at], content.size() - at, off_t(at));
    if (read < 0 && errno == EINTR)
      continue;
    if (read <= 0)
      return cannot("read a file in memory");
    at += read;
  }
  return content;
}

/// Reads what is printed until the pipe is closed; false if that takes longer.
static bool readUntil(const Descriptor &pipe, Clock::time_point until,
                      std::string &text) {
  while (true) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd entry = {pipe.get(), POLLIN, 0};
    int ready = poll(&entry, 1, int(std::min<int64_t>(left.count(), 1 << 30)));
    if (ready <= 0)
      continue; // interrupted, or too late
    char buffer[4096];
    ssize_t count = read(pipe.get(), buffer, sizeof(buffer));
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (count <= 0)
      return true;
    text.append(buffer, std::min<size_t>(count, kMaxText - text.size()));
  }
}

/// Starts the program in a process group of its own.
static int spawn(const std::string &path, ArrayRef<std::string> args,
                 const Descriptor &input, const Descriptor &output,
                 const Descriptor &text, pid_t &pid) {
  SmallVector<char *> argv = {const_cast<char *>(path.c_str())};
  for (const std::string &arg : args)
    argv.push_back(const_cast<char *>(arg.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  const std::pair<const Descriptor &, int> places[] = {
      {text, 1}, {text, 2}, {input, 3}, {output, 4}};
  for (const auto &[from, to] : places)
    posix_spawn_file_actions_adddup2(&files, from.get(), to);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  int code = posix_spawn(&pid, path.c_str(), &files, &attributes, argv.data(),
                         environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return code;
}

runtime::Expected<ProgramOutput> attn::runProgram(const std::string &path,
                                                  ArrayRef<std::string> args,
                                                  StringRef input,
                                                  const TimeLimit &limit) {
  // A fork need not wait for another program.
  forkgate::Outside outside;
  runtime::Expected<Descriptor> given = memoryFile(input);
  if (!given)
    return given.status();
  runtime::Expected<Descriptor> made = memoryFile("");
  if (!made)
    return made.status();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return cannot("make a pipe");
  Descriptor reader = Descriptor(ends[0]);
  Descriptor writer = Descriptor(ends[1]).moved();
  if (!writer)
    return cannot("make a pipe");

  pid_t pid = 0;
  if (int code = spawn(path, args, *given, *made, writer, pid))
    return Status::failure(path + " cannot be run: " + std::strerror(code));
  writer.close();
  Child child(pid);
  ProgramOutput result;
  Clock::time_point until = Clock::now() + limit.time;
  std::optional<int> status;
  if (readUntil(reader, until, result.text))
    status = child.wait(until);
  if (!status)
    return Status::failure("'" + path + (args.empty() ? "" : " ") +
                           join(args, " ") + "' did not end within " +
                           seconds(limit.time) + " s (" + limit.setBy +
                           ") and was killed");
  std::string said = StringRef(result.text).trim().str();
  said.insert(0, said.empty() ? "" : ": ");
  if (WIFSIGNALED(*status))
    return Status::failure(path + " was ended by signal " +
                           std::to_string(WTERMSIG(*status)) + " (" +
                           strsignal(WTERMSIG(*status)) + ")" + said);
  if (WEXITSTATUS(*status) != 0)
    return Status::failure(path + " failed with status " +
                           std::to_string(WEXITSTATUS(*status)) + said);
  runtime::Expected<std::string> bytes = contentOf(*made);
  if (!bytes)
    return bytes.status();
  result.bytes = std::move(*bytes);
  return result;
}
