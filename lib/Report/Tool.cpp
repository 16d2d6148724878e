//===- Tool.cpp - Versions, and options that look like help ---------------===//

#include "attn/Report/Tool.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"

using namespace attn;
using llvm::StringRef;

void attn::printVersion(llvm::raw_ostream &out) {
  out << "attn " ATTN_VERSION "\nLLVM " LLVM_VERSION_STRING "\n";
}

/// The known option that is spelled most alike, or nothing.
static StringRef nearest(StringRef name) {
  StringRef best;
  unsigned least = 3; // further off is another word
  for (const auto &option : llvm::cl::getRegisteredOptions()) {
    unsigned distance =
        name.edit_distance(option.first, /*AllowReplacements=*/true, least);
    if (distance < least) {
      least = distance;
      best = option.first;
    }
  }
  return best;
}

std::optional<std::string> attn::prepareTool(int argc, char **argv) {
  llvm::cl::SetVersionPrinter(printVersion);
  const StringRef help[] = {"h", "help", "help-hidden", "help-list",
                            "help-list-hidden"};
  for (int i = 1; i < argc && StringRef(argv[i]) != "--"; ++i) {
    StringRef given = argv[i];
    StringRef name = given.ltrim('-').split('=').first;
    if (!given.starts_with("-") || !name.starts_with("h") ||
        llvm::is_contained(help, name) ||
        llvm::cl::getRegisteredOptions().count(name))
      continue;
    std::string sentence =
        "expects a known option, but got '" + given.str() + "'";
    if (StringRef other = nearest(name); !other.empty())
      sentence += "; the nearest is '--" + other.str() + "'";
    return sentence;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// What went wrong, for LLVM's streams end the program with an error that
/// nobody has asked for.
static std::error_code finish(llvm::raw_fd_ostream &out) {
  out.flush();
  std::error_code error = out.error();
  out.clear_error();
  return error;
}

static std::error_code
writeThrough(StringRef file,
             llvm::function_ref<void(llvm::raw_ostream &)> print) {
  std::error_code error;
  llvm::raw_fd_ostream out(file, error, llvm::sys::fs::CD_OpenExisting);
  if (error)
    return error;
  print(out);
  return finish(out);
}

static std::error_code
writeBeside(StringRef file,
            llvm::function_ref<void(llvm::raw_ostream &)> print) {
  auto temporary = llvm::sys::fs::TempFile::create(
      file + ".temp-%%%%%%",
      llvm::sys::fs::all_read | llvm::sys::fs::all_write);
  if (!temporary)
    return llvm::errorToErrorCode(temporary.takeError());
  llvm::raw_fd_ostream out(temporary->FD, /*shouldClose=*/false);
  print(out);
  if (std::error_code error = finish(out)) {
    llvm::consumeError(temporary->discard());
    return error;
  }
  return llvm::errorToErrorCode(temporary->keep(file));
}

std::optional<std::string>
attn::writeFile(const std::string &file,
                llvm::function_ref<void(llvm::raw_ostream &)> print) {
  namespace fs = llvm::sys::fs;
  fs::file_status status;
  bool exists = !fs::status(file, status); // of what a link names
  bool isRegular = status.type() == fs::file_type::regular_file;
  llvm::SmallString<128> place(file);
  if (exists && isRegular)
    if (std::error_code error = fs::real_path(file, place))
      return error.message();
  std::error_code error = exists && !isRegular ? writeThrough(file, print)
                                               : writeBeside(place, print);
  if (!error)
    return std::nullopt;
  return "expects a file that can be written, but got '" + file +
         "': " + error.message();
}
