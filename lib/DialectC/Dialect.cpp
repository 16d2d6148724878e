//===- Dialect.cpp - The attn dialect in MLIR's C interface ---------------===//

#include "attn-c/Dialect.h"

#include "attn/IR/Attn.h"
#include "attn/InitAll.h"
#include "attn/Tile/Tile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

// The macro for it brings a dialect alone.  Ours bring what is attached from
// outside as well: without it upstream neither tiles nor bufferizes the ops.

template <typename Kind> static MlirDialect load(MlirContext context) {
  DialectRegistry registry;
  registerDialects(registry);
  unwrap(context)->appendDialectRegistry(registry);
  return wrap(unwrap(context)->getOrLoadDialect<Kind>());
}

template <typename Kind> static MlirDialectHandle handleOf() {
  static const MlirDialectRegistrationHooks hooks = {
      [](MlirDialectRegistry registry) { registerDialects(*unwrap(registry)); },
      load<Kind>, [] { return wrap(Kind::getDialectNamespace()); }};
  return {&hooks};
}

MlirDialectHandle mlirGetDialectHandle__attn__() {
  return handleOf<AttnDialect>();
}

MlirDialectHandle mlirGetDialectHandle__tile__() {
  return handleOf<tile::TileDialect>();
}

void mlirAttnRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}

void mlirAttnRegisterPasses() { attn::registerPasses(); }

void mlirAttnRegisterAllPasses() { attn::registerAllPasses(); }

//===----------------------------------------------------------------------===//
// All attributes
//===----------------------------------------------------------------------===//

/// The attribute as one of a kind; null if it is none.
template <typename Kind> static Kind as(MlirAttribute attribute) {
  return dyn_cast_if_present<Kind>(unwrap(attribute));
}

/// A name as a text, null for none.
static MlirStringRef textOf(StringAttr name) {
  return wrap(name ? name.getValue() : StringRef());
}

/// An attribute that its verifier accepts; null, and an error without a place,
/// if not.
template <typename Kind, typename... Parts>
static MlirAttribute checked(MlirContext c, Parts &&...parts) {
  MLIRContext *context = unwrap(c);
  context->getOrLoadDialect<AttnDialect>();
  auto fault = [&] { return emitError(UnknownLoc::get(context)); };
  return wrap(Attribute(
      Kind::getChecked(fault, context, std::forward<Parts>(parts)...)));
}

/// `#attn.mnemonic<text>`, by the parser of the dialect: one set of messages.
template <typename Kind>
static MlirAttribute parsed(MlirContext c, MlirStringRef text) {
  if (mlirContextIsNull(c))
    return {nullptr};
  MLIRContext *context = unwrap(c);
  context->getOrLoadDialect<AttnDialect>();
  StringRef mnemonic = Kind::getMnemonic();
  std::string whole = ("#attn." + mnemonic + "<" + unwrap(text) + ">").str();
  size_t read = 0;
  Attribute attribute = parseAttribute(whole, context, {}, &read);
  if (attribute && read == whole.size() && isa<Kind>(attribute))
    return wrap(attribute);
  if (attribute)
    emitError(UnknownLoc::get(context))
        << "expects the body of #attn." << mnemonic << ", but got '"
        << unwrap(text) << "'";
  return {nullptr};
}

/// Whether there is a context, and there are as many names and numbers as
/// promised; an error if not.
static bool hasPairs(MlirContext context, intptr_t count,
                     const MlirStringRef *names, const void *numbers) {
  if (mlirContextIsNull(context))
    return false;
  InFlightDiagnostic error = emitError(UnknownLoc::get(unwrap(context)));
  if (count > 0 && !(names && numbers)) {
    error << "expects names and numbers, " << count << " of each, but got no "
          << (names ? "numbers" : "names");
    return false;
  }
  for (intptr_t i = 0; i < count; ++i)
    if (names[i].length == 0) {
      error << "expects a name for every number, but got none at position "
            << i;
      return false;
    }
  error.abandon();
  return true;
}

//===----------------------------------------------------------------------===//
// Mask
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnMask(MlirAttribute attribute) {
  return bool(as<MaskAttr>(attribute));
}

MlirAttribute mlirAttnMaskAttrGet(MlirContext context, MlirStringRef text) {
  return parsed<MaskAttr>(context, text);
}

MlirStringRef mlirAttnMaskAttrGetText(MlirAttribute attribute) {
  auto mask = as<MaskAttr>(attribute);
  // The context keeps the text.
  return textOf(mask ? StringAttr::get(mask.getContext(), str(mask.getValue()))
                     : StringAttr());
}

MlirTypeID mlirAttnMaskAttrGetTypeID() { return wrap(MaskAttr::getTypeID()); }

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnPrecision(MlirAttribute attribute) {
  return bool(as<PrecisionAttr>(attribute));
}

MlirAttribute mlirAttnPrecisionAttrGet(MlirContext context,
                                       MlirStringRef name) {
  return parsed<PrecisionAttr>(context, name);
}

MlirStringRef mlirAttnPrecisionAttrGetName(MlirAttribute attribute) {
  auto precision = as<PrecisionAttr>(attribute);
  std::string_view text;
  if (precision)
    text = attn::name(precision.getValue());
  return mlirStringRefCreate(text.data(), text.size());
}

MlirTypeID mlirAttnPrecisionAttrGetTypeID() {
  return wrap(PrecisionAttr::getTypeID());
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnMachine(MlirAttribute attribute) {
  return bool(as<MachineAttr>(attribute));
}

MlirAttribute mlirAttnMachineAttrGet(MlirContext context, MlirStringRef name,
                                     intptr_t overrideCount,
                                     const MlirStringRef *fields,
                                     const double *values) {
  if (!hasPairs(context, overrideCount, fields, values))
    return {nullptr};
  Builder b(unwrap(context));
  SmallVector<NamedAttribute> overrides;
  for (intptr_t i = 0; i < overrideCount; ++i)
    overrides.push_back(
        b.getNamedAttr(unwrap(fields[i]), b.getF64FloatAttr(values[i])));
  return checked<MachineAttr>(context, b.getStringAttr(unwrap(name)),
                              ArrayRef<NamedAttribute>(overrides));
}

MlirStringRef mlirAttnMachineAttrGetName(MlirAttribute attribute) {
  auto machine = as<MachineAttr>(attribute);
  return textOf(machine ? machine.getName() : StringAttr());
}

intptr_t mlirAttnMachineAttrGetOverrideCount(MlirAttribute attribute) {
  auto machine = as<MachineAttr>(attribute);
  return machine ? intptr_t(machine.getOverrides().size()) : 0;
}

static std::optional<NamedAttribute> overrideAt(MlirAttribute attribute,
                                                intptr_t position) {
  if (position < 0 ||
      position >= mlirAttnMachineAttrGetOverrideCount(attribute))
    return std::nullopt;
  return as<MachineAttr>(attribute).getOverrides()[size_t(position)];
}

MlirStringRef mlirAttnMachineAttrGetField(MlirAttribute machine,
                                          intptr_t position) {
  std::optional<NamedAttribute> field = overrideAt(machine, position);
  return textOf(field ? field->getName() : StringAttr());
}

double mlirAttnMachineAttrGetValue(MlirAttribute machine, intptr_t position) {
  std::optional<NamedAttribute> field = overrideAt(machine, position);
  return field ? cast<FloatAttr>(field->getValue()).getValueAsDouble() : 0;
}

bool mlirAttnMachineAttrGetFact(MlirAttribute attribute, MlirStringRef field,
                                double *value) {
  auto machine = as<MachineAttr>(attribute);
  if (!machine)
    return false;
  std::optional<double> fact =
      fieldValue(machine.resolve(), {field.data, field.length});
  if (fact && value)
    *value = *fact;
  return fact.has_value();
}

MlirTypeID mlirAttnMachineAttrGetTypeID() {
  return wrap(MachineAttr::getTypeID());
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnSchedule(MlirAttribute attribute) {
  return bool(as<ScheduleAttr>(attribute));
}

MlirAttribute mlirAttnScheduleAttrGet(MlirContext context, MlirStringRef name,
                                      intptr_t tileCount,
                                      const MlirStringRef *tiles,
                                      const int64_t *sizes) {
  if (!hasPairs(context, tileCount, tiles, sizes))
    return {nullptr};
  Builder b(unwrap(context));
  SmallVector<std::pair<StringAttr, int64_t>> all;
  for (intptr_t i = 0; i < tileCount; ++i)
    all.push_back({b.getStringAttr(unwrap(tiles[i])), sizes[i]});
  return checked<ScheduleAttr>(context, b.getStringAttr(unwrap(name)),
                               ArrayRef<std::pair<StringAttr, int64_t>>(all));
}

MlirStringRef mlirAttnScheduleAttrGetName(MlirAttribute attribute) {
  auto schedule = as<ScheduleAttr>(attribute);
  return textOf(schedule ? schedule.getName() : StringAttr());
}

intptr_t mlirAttnScheduleAttrGetTileCount(MlirAttribute attribute) {
  auto schedule = as<ScheduleAttr>(attribute);
  return schedule ? intptr_t(schedule.getSizes().size()) : 0;
}

static std::pair<StringAttr, int64_t> tileAt(MlirAttribute attribute,
                                             intptr_t position) {
  if (position < 0 || position >= mlirAttnScheduleAttrGetTileCount(attribute))
    return {nullptr, 0};
  return as<ScheduleAttr>(attribute).getSizes()[size_t(position)];
}

MlirStringRef mlirAttnScheduleAttrGetTile(MlirAttribute schedule,
                                          intptr_t position) {
  return textOf(tileAt(schedule, position).first);
}

int64_t mlirAttnScheduleAttrGetSize(MlirAttribute schedule, intptr_t position) {
  return tileAt(schedule, position).second;
}

MlirTypeID mlirAttnScheduleAttrGetTypeID() {
  return wrap(ScheduleAttr::getTypeID());
}
