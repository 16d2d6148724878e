//===- Library.cpp - attn-c/Attn.h: what is of the whole process ----------===//

#include "Boundary.h"

#include "attn/CAPI/Assembler.h"
#include "attn/CAPI/Compile.h"
#include "attn/CAPI/KernelCache.h"

#include "llvm/Support/JSON.h"

#include <cstdlib>

using namespace attn;

void attn_status_clear(attn_status *status) {
  if (!status)
    return;
  std::free(status->message);
  *status = {ATTN_OK, nullptr};
}

void attn_free(char *text) { std::free(text); }

const char *attn_version(void) { return ATTN_VERSION; }

int32_t attn_cache_open(const char *folder, int64_t maxBytes,
                        attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!folder) {
      KernelCache::get().close();
      return std::nullopt;
    }
    bool isForeign = false;
    runtime::Status opened =
        KernelCache::get().open(folder, maxBytes, &isForeign);
    if (!opened.ok())
      return Fault{isForeign ? ATTN_FOREIGN_FILE : ATTN_FILE_ERROR,
                   opened.message()};
    return std::nullopt;
  });
}

int32_t attn_cache_json(char **json, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!json)
      return invalid("expects a place for the result");
    KernelCache::Statistics counts = KernelCache::get().statistics();
    auto orNull = [](const std::string &value) {
      return value.empty() ? llvm::json::Value(nullptr)
                           : llvm::json::Value(value);
    };
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::json::OStream out(stream);
    out.object([&] {
      out.attribute("folder", orNull(counts.folder));
      out.attribute("max_bytes", counts.maxBytes);
      out.attribute("hits", counts.hits);
      out.attribute("misses", counts.misses);
      out.attribute("damaged", counts.damaged);
      out.attribute("compiled", compiledCount());
      out.attribute("last_failure", orNull(counts.lastFailure));
    });
    return give(text, json);
  });
}

int32_t attn_assembler_set(const char *ptxas, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    runtime::Status set =
        setAssembler(ptxas ? std::optional<std::string>(ptxas) : std::nullopt);
    if (!set.ok())
      return Fault{ATTN_FILE_ERROR, set.message()};
    return std::nullopt;
  });
}
