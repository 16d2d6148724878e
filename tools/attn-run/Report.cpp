//===- Report.cpp - The same facts for people and for programs ------------===//

#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace attn;
using namespace attn::run;

bool Report::ok() const {
  return changedInputs.empty() &&
         llvm::all_of(comparisons, [](const auto &c) { return c.ok(); });
}

static void printComparison(llvm::raw_ostream &out, const Comparison &c) {
  out << llvm::format("%-9s %-28s ", c.name.c_str(), c.type.c_str());
  if (c.isLse())
    out << llvm::format("max error %.2e", c.lseError);
  else
    out << llvm::format("max error %.2e, relative error %.2e", c.maxError,
                        c.relativeError);
  out << llvm::format(" (limit %.0e)", c.tolerance);
  if (c.checkedRows != c.rows)
    out << ", " << c.checkedRows << " of " << c.rows << " rows checked";
  out << (c.ok()          ? ""
          : !c.comparable ? "  not comparable at this scale"
                          : "  WRONG")
      << "\n";
  const std::pair<int64_t, const char *> faults[] = {
      {c.unwritten, "elements were not written"},
      {c.damaged, "bytes around the elements were overwritten"},
      {c.wrongNan, "elements are NaN or infinite where the reference is not, "
                   "or the other way"},
      {c.wrongMasked, "elements of rows that see no key are not exactly "},
  };
  for (auto [count, sentence] : faults)
    if (count != 0)
      out << "          " << count << " " << sentence
          << (&sentence[0] != faults[3].second ? ""
              : c.ofNothing() == 0             ? "0"
                                               : "-inf")
          << "\n";
}

void Report::print(llvm::raw_ostream &out) const {
  auto line = [&](const char *name) -> llvm::raw_ostream & {
    return out << llvm::format("%-9s ", name);
  };
  line("function") << function << " of " << file << "\n";
  for (const std::string &problem : problems)
    line("problem") << problem << "\n";
  line("device") << device;
  if (!machine.empty())
    out << ", compiled for " << machine;
  out << "\n";
  for (const KernelInfo &kernel : program->kernels) {
    line("kernel") << kernel.name << ": " << kernel.schedule
                   << (kernel.schedule.empty() ? "" : "; ") << kernel.threads
                   << " threads, " << kernel.smemBytes
                   << " bytes of shared memory";
    if (kernel.registersPerThread)
      out << ", " << kernel.registersPerThread << " registers, "
          << kernel.stackBytesPerThread << " bytes of stack";
    out << "\n";
  }
  for (const Comparison &comparison : comparisons)
    printComparison(out, comparison);
  for (const std::string &input : changedInputs)
    line("input") << input << " was changed  WRONG\n";
  if (!onGpu)
    line("moved") << traffic.global << " bytes of global memory, "
                  << traffic.smem << " of shared memory\n";
  if (seconds > 0)
    line("time") << llvm::format("%.4f ms (median of ", seconds * 1e3) << repeat
                 << ")"
                 << llvm::format(", %.1f TFLOP/s", flops / seconds * 1e-12)
                 << "\n";
  if (guardBytes > 0 && changedInputs.empty())
    line("guard") << "inputs are as before; " << guardBytes
                  << " bytes in front of and behind every array are watched\n";
}

void Report::printJson(llvm::raw_ostream &out) const {
  llvm::json::OStream json(out);
  // JSON has no NaN and no infinity.
  auto number = [&](const char *name, double value) {
    if (std::isfinite(value))
      json.attribute(name, value);
    else
      json.attribute(name, std::isnan(value) ? "nan" : "inf");
  };
  json.object([&] {
    json.attribute("file", file);
    json.attribute("function", function);
    json.attribute("on", onGpu ? "gpu" : "interpreter");
    json.attribute("device", device);
    json.attribute("machine", machine);
    json.attributeArray("problems", [&] {
      for (const std::string &problem : problems)
        json.value(problem);
    });
    json.attributeArray("kernels", [&] {
      for (const KernelInfo &kernel : program->kernels)
        writeJson(json, kernel);
    });
    json.attributeArray("outputs", [&] {
      for (const Comparison &c : comparisons)
        json.object([&] {
          json.attribute("name", c.name);
          json.attribute("type", c.type);
          json.attribute("ok", c.ok());
          json.attribute("rows", c.rows);
          json.attribute("checked_rows", c.checkedRows);
          number("max_error", c.maxError);
          if (c.isLse())
            number("lse_error", c.lseError);
          else
            number("relative_error", c.relativeError);
          number("tolerance", c.tolerance);
          json.attribute("comparable", c.comparable);
          json.attribute("unwritten_elements", c.unwritten);
          json.attribute("damaged_bytes", c.damaged);
          json.attribute("wrong_nan", c.wrongNan);
          json.attribute("wrong_masked", c.wrongMasked);
        });
    });
    json.attributeArray("changed_inputs", [&] {
      for (const std::string &input : changedInputs)
        json.value(input);
    });
    if (!onGpu) {
      json.attribute("global_bytes", traffic.global);
      json.attribute("smem_bytes", traffic.smem);
    }
    if (seconds > 0) {
      number("seconds", seconds);
      json.attribute("repeat", repeat);
      number("tflops", flops / seconds * 1e-12);
    }
    json.attribute("flops", flops);
    json.attribute("ok", ok());
  });
  out << "\n";
}
