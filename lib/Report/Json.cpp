//===- Json.cpp - Everything, for programs --------------------------------===//

#include "llvm/Support/JSON.h"
#include "attn/Report/Survey.h"
#include "attn/Report/Sweep.h"
#include "attn/Schedule/Time.h"

using namespace attn;
using llvm::json::OStream;

/// Its size and how much of it is visible, not the lists.
static void write(OStream &json, const Pattern &pattern) {
  json.attributeObject("pattern", [&] {
    json.attribute("block_queries", pattern.size().queries);
    json.attribute("block_keys", pattern.size().keys);
    json.attribute("density", pattern.density());
    json.attribute("lists", pattern.lists());
    json.attribute("per_head", !pattern.isShared());
  });
}

static void write(OStream &json, const Problem &p) {
  json.attributeObject("problem", [&] {
    json.attribute("dtype", llvm::StringRef(name(p.dtype)));
    if (p.dtype == DataType::f32 || p.precision == Precision::f8_qk)
      json.attribute("precision", llvm::StringRef(name(p.precision)));
    if (p.kvDtype)
      json.attribute("kv_dtype", llvm::StringRef(name(*p.kvDtype)));
    json.attribute("batch", p.batch);
    json.attribute("heads", p.heads);
    json.attribute("kv_heads", p.kvHeads);
    json.attribute("queries", p.queries);
    json.attribute("keys", p.keys);
    json.attribute("head_dim", p.headDim);
    json.attribute("head_dim_v", p.headDimV);
    json.attribute("mask", str(p.mask));
    if (p.pattern)
      write(json, *p.pattern);
    if (p.ragged)
      json.attributeObject("ragged", [&] {
        json.attribute("sequences", p.batch);
        json.attribute("longest_queries", p.ragged->longest.queries);
        json.attribute("longest_keys", p.ragged->longest.keys);
      });
    if (p.place.usesSome())
      json.attribute("used_keys_bits", p.place.usedKeysBits);
    if (p.place.isPaged())
      json.attribute("page", p.place.pageRows);
    json.attribute("direction", llvm::StringRef(name(p.direction)));
    if (p.direction == Direction::forward) {
      json.attribute("lse", p.lse);
    } else {
      json.attribute("deterministic", p.deterministic);
      json.attribute("dlse", p.dlse);
    }
    if (p.lseLow)
      json.attribute("lse_low", true);
    if (p.keepsWeights)
      json.attribute("keeps_weights", true);
    if (p.valuesOfKeys)
      json.attribute("values_of_keys", true);
    if (p.alignment != kMaxAlignment)
      json.attribute("alignment", p.alignment);
  });
}

/// How query heads that share their keys are planned, and why.
static void write(OStream &json, const Packing &packing) {
  json.attributeObject("packing", [&] {
    json.attribute("query_heads", packing.heads);
    json.attribute("heads", packing.problem.heads);
    json.attribute("rows", packing.problem.queries);
    json.attribute("keys", packing.problem.keys);
    json.attribute("text", packing.str());
  });
}

/// A machine; which GPU it is and every fact, with its unit in the name.
static void write(OStream &json, const Machine &m) {
  json.object([&] {
    json.attribute("name", m.name);
    json.attribute("chip", m.chip);
    json.attribute("compute_capability", m.computeCapability);
    json.attribute("tensor_cores", llvm::StringRef(name(m.family)));
    for (const MachineField &field : machineFields()) {
      double value = *fieldValue(m, field.name);
      llvm::StringRef key = field.name;
      if (field.isInteger)
        json.attribute(key, static_cast<int64_t>(value));
      else
        json.attribute(key, value);
    }
    json.attribute("source", m.source);
    if (!m.measuredSource.empty()) {
      json.attribute("measured_hbm_bytes_per_second",
                     m.measuredHbmBytesPerSecond);
      json.attribute("measured_l2_bytes_per_second",
                     m.measuredL2BytesPerSecond);
      json.attribute("measured_clock_hz", m.measuredClockHz);
      json.attribute("measured_source", m.measuredSource);
    }
  });
}

static void write(OStream &json, const Tiles &tiles) {
  json.attributeObject("tiles", [&] {
    for (const auto &[name, value] : tiles)
      json.attribute(name, value);
  });
}

/// What binds is one of these names.
static void write(OStream &json, const Time &t, TensorCoreFamily family) {
  json.attributeObject("time", [&] {
    for (const TimeTerm &term : timeTerms(family))
      json.attribute(term.name, t.*term.seconds);
  });
}

/// A number for each level: bytes, or joules.
template <typename Levels>
static void write(OStream &json, llvm::StringRef name, const Levels &levels) {
  json.attributeObject(name, [&] {
    json.attribute("hbm", levels.hbm);
    json.attribute("l2", levels.l2);
    json.attribute("smem", levels.smem);
  });
}

/// Whose constants of time the prices have.
static void writeTimes(OStream &json, const std::string &timesOf,
                       const Machine &machine) {
  json.attributeObject("times", [&] {
    json.attribute("machine", timesOf);
    json.attribute("borrowed", timesOf != machine.name);
  });
}

static void write(OStream &json, const Plan &plan) {
  json.object([&] {
    json.attribute("schedule", plan.schedule);
    write(json, plan.tiles);
    json.attribute("family", llvm::StringRef(name(plan.family)));
    json.attribute("kernel", plan.kernel);
    write(json, "bytes", plan.bytes);
    json.attribute("flops", plan.flops);
    json.attributeObject("footprint", [&] {
      json.attribute("smem_bytes", plan.footprint.smemBytes);
      json.attribute("registers_per_thread", plan.footprint.registersPerThread);
      json.attribute("threads", plan.footprint.threads);
      json.attribute("blocks_per_sm", plan.footprint.blocksPerSm);
      json.attribute("scratch_bytes", plan.footprint.scratchBytes);
      json.attribute("row_scratch_bytes", plan.footprint.rowScratchBytes);
    });
    json.attribute("seconds", plan.seconds);
    json.attribute("bound_by", plan.boundBy);
    write(json, plan.time, plan.family);
  });
}

void attn::renderJson(llvm::raw_ostream &out, const Packing &packing,
                      const PlanReport &report) {
  OStream json(out, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("schema_version", kJsonVersion);
    write(json, packing.asked);
    write(json, packing);
    json.attributeBegin("machine");
    write(json, report.machine);
    json.attributeEnd();
    json.attribute("regime", llvm::StringRef(name(report.regime)));
    json.attribute("lower_bound_bytes", report.lowerBoundBytes);
    write(json, "lower_bounds", report.lowerBounds);
    writeTimes(json, report.timesOf, report.machine);
    json.attributeArray("plans", [&] {
      for (const Plan &plan : report.plans)
        write(json, plan);
    });
    json.attributeArray("refused", [&] {
      for (const Refused &refused : report.refused)
        json.object([&] {
          json.attribute("schedule", refused.schedule);
          write(json, refused.tiles);
          json.attribute("family", llvm::StringRef(name(refused.family)));
          json.attribute("reason", refused.reason);
        });
    });
  });
  out << '\n';
}

void attn::renderMachinesJson(llvm::raw_ostream &out) {
  OStream json(out, /*IndentSize=*/2);
  json.array([&] {
    for (const Machine &machine : machines())
      write(json, machine);
  });
  out << '\n';
}

//===----------------------------------------------------------------------===//
// Surveys
//===----------------------------------------------------------------------===//

/// What twice as much of a resource buys, by its name.
static void write(OStream &json, const std::vector<Gain> &gains) {
  json.attributeObject("gains", [&] {
    for (const Gain &gain : gains)
      json.attribute(gain.resource->name, gain.speedup);
  });
  const Gain *limit = limitOf(gains);
  json.attribute("limited_by",
                 limit ? llvm::json::Value(limit->resource->name) : nullptr);
}

static void write(OStream &json, const SurveyCell &cell) {
  json.object([&] {
    json.attribute("machine", cell.machine.name);
    write(json, cell.problem);
    if (!cell.hasPlan()) {
      json.attribute("reason", cell.whyNot);
      return;
    }
    json.attribute("regime", llvm::StringRef(name(cell.regime)));
    write(json, "lower_bounds", cell.lowerBounds);
    writeTimes(json, cell.timesOf, cell.machine);
    json.attributeBegin("plan");
    write(json, cell.plan);
    json.attributeEnd();
    write(json, cell.gains);
    if (cell.exponent)
      json.attributeObject("exponent", [&] {
        json.attribute("schedule", cell.exponent->schedule);
        json.attribute("beta", cell.exponent->beta);
        json.attribute("saves_by_halving", cell.exponent->savesByHalving());
      });
    write(json, "energy", cell.energy());
  });
}

void attn::renderSurveyJson(llvm::raw_ostream &out,
                            const std::vector<SurveyCell> &cells) {
  OStream json(out, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("schema_version", kJsonVersion);
    json.attribute("energy_source", kEnergySource);
    json.attributeArray("cells", [&] {
      for (const SurveyCell &cell : cells)
        write(json, cell);
    });
  });
  out << '\n';
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

static void write(OStream &json, const SweepPoint &point) {
  json.object([&] {
    json.attribute("value", point.value);
    if (!point.hasPlan()) {
      json.attribute("reason", point.whyNot);
      return;
    }
    json.attribute("regime", llvm::StringRef(name(point.regime)));
    write(json, "lower_bounds", point.lowerBounds);
    json.attributeArray("plans", [&] {
      for (const Plan &plan : point.plans)
        write(json, plan);
    });
  });
}

static void write(OStream &json, const Sweep &sweep) {
  json.object([&] {
    json.attribute("field", sweep.field);
    write(json, sweep.problem());
    json.attributeBegin("machine");
    write(json, sweep.machine());
    json.attributeEnd();
    auto takeover = sweep.takeover();
    json.attribute("takeover",
                   takeover ? llvm::json::Value(*takeover) : nullptr);
    json.attributeArray("points", [&] {
      for (const SweepPoint &point : sweep.points)
        write(json, point);
    });
  });
}

void attn::renderSweepsJson(llvm::raw_ostream &out,
                            const std::vector<Sweep> &sweeps) {
  OStream json(out, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("schema_version", kJsonVersion);
    json.attributeArray("sweeps", [&] {
      for (const Sweep &sweep : sweeps)
        write(json, sweep);
    });
  });
  out << '\n';
}
