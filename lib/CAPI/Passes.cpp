//===- Passes.cpp - Passes over a text, through the C interface -----------===//

#include "Boundary.h"

#include "attn/InitAll.h"
#include "attn/Pipelines/Nesting.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"

using namespace attn;
using namespace mlir;

static StringRef nameOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("closed enum");
}

namespace {
/// What passes said about a text: for people, and for programs.
class Heard {
public:
  Heard(llvm::SourceMgr &sources, MLIRContext &context)
      : printer(sources, &context, stream),
        handler(&context, [this](Diagnostic &one) {
          note(one);
          for (Diagnostic &behind : one.getNotes())
            note(behind);
          return failure(); // and is printed
        }) {}

  const std::string &text() const { return shown; }
  std::string json() const {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Array(all));
    return text;
  }

private:
  void note(const Diagnostic &one) {
    llvm::json::Object entry{{"severity", nameOf(one.getSeverity())},
                             {"message", one.str()}};
    if (auto at = one.getLocation()->findInstanceOf<FileLineColLoc>()) {
      entry["line"] = int64_t(at.getLine());
      entry["column"] = int64_t(at.getColumn());
    }
    all.push_back(std::move(entry));
  }

  std::string shown;
  llvm::raw_string_ostream stream{shown};
  llvm::json::Array all;
  SourceMgrDiagnosticHandler printer;
  ScopedDiagnosticHandler handler;
};
} // namespace

/// Runs passes over a text; on failure the fault has the diagnostics.
static Outcome runPasses(StringRef text, StringRef passes,
                         bool allowsUnregistered, std::string &result,
                         std::string &diagnostics) {
  registerAllPasses();
  std::string error;
  llvm::raw_string_ostream stream(error);
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBufferCopy(text, "<input>");
  if (failed(checkNesting(*buffer, stream)))
    return Fault{ATTN_COMPILE_ERROR, error};
  if (failed(checkNesting({passes, "<passes>"}, stream)))
    return invalid(error);
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(allowsUnregistered);
  context.printOpOnDiagnostic(false);
  PassManager manager(&context);
  passes = passes.trim();
  std::string whole = passes.starts_with("builtin.module(")
                          ? passes.str()
                          : ("builtin.module(" + passes + ")").str();
  FailureOr<OpPassManager> parsed = parsePassPipeline(whole, stream);
  if (failed(parsed))
    return invalid("expects passes as 'attn-to-tile{machine=h100_sxm}, "
                   "canonicalize', but got '" +
                   passes.str() + "': " + error);
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  Heard heard(sources, context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(manager.run(*module)))
    return Fault{ATTN_COMPILE_ERROR, heard.text()};
  llvm::raw_string_ostream(result) << *module;
  diagnostics = heard.json();
  return std::nullopt;
}

int32_t attn_run_passes(const char *text, size_t size, const char *passes,
                        int32_t allow_unregistered, char **result,
                        char **diagnostics, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!text || !passes || !result)
      return invalid("expects a text, passes, and a place for the result");
    *result = nullptr;
    if (diagnostics)
      *diagnostics = nullptr;
    std::string module, said;
    if (Outcome fault = runPasses(llvm::StringRef(text, size), passes,
                                  allow_unregistered != 0, module, said))
      return fault;
    if (Outcome fault = give(module, result))
      return fault;
    return diagnostics ? give(said, diagnostics) : std::nullopt;
  });
}
