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

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Attn, attn, attn::AttnDialect)
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Tile, tile, attn::tile::TileDialect)

void mlirAttnRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}

void mlirAttnRegisterPasses() { attn::registerPasses(); }

void mlirAttnRegisterAllPasses() { attn::registerAllPasses(); }

/// Diagnostics have no place in a text.
static auto errorsIn(MLIRContext *context) {
  return [location = UnknownLoc::get(context)] { return emitError(location); };
}

/// `#attn.mnemonic<text>`, by the parser of the dialect: one set of messages.
template <typename Attr>
static MlirAttribute parsed(MlirContext c, StringRef mnemonic, StringRef text) {
  MLIRContext *context = unwrap(c);
  context->getOrLoadDialect<AttnDialect>();
  std::string whole = ("#attn." + mnemonic + "<" + text + ">").str();
  size_t read = 0;
  Attribute attribute = parseAttribute(whole, context, {}, &read);
  if (attribute && read == whole.size() && isa<Attr>(attribute))
    return wrap(attribute);
  if (attribute)
    emitError(UnknownLoc::get(context))
        << "expects the body of #attn." << mnemonic << ", but got '" << text
        << "'";
  return wrap(Attribute());
}

//===----------------------------------------------------------------------===//
// Mask
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnMask(MlirAttribute attribute) {
  return isa_and_present<MaskAttr>(unwrap(attribute));
}

MlirAttribute mlirAttnMaskAttrGet(MlirContext context, MlirStringRef text) {
  return parsed<MaskAttr>(context, MaskAttr::getMnemonic(), unwrap(text));
}

MlirTypeID mlirAttnMaskAttrGetTypeID() { return wrap(MaskAttr::getTypeID()); }

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnPrecision(MlirAttribute attribute) {
  return isa_and_present<PrecisionAttr>(unwrap(attribute));
}

MlirAttribute mlirAttnPrecisionAttrGet(MlirContext context,
                                       MlirStringRef name) {
  return parsed<PrecisionAttr>(context, PrecisionAttr::getMnemonic(),
                               unwrap(name));
}

MlirStringRef mlirAttnPrecisionAttrGetName(MlirAttribute precision) {
  std::string_view text =
      attn::name(cast<PrecisionAttr>(unwrap(precision)).getValue());
  return mlirStringRefCreate(text.data(), text.size());
}

MlirTypeID mlirAttnPrecisionAttrGetTypeID() {
  return wrap(PrecisionAttr::getTypeID());
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnMachine(MlirAttribute attribute) {
  return isa_and_present<MachineAttr>(unwrap(attribute));
}

MlirAttribute mlirAttnMachineAttrGet(MlirContext context, MlirStringRef name,
                                     intptr_t overrideCount,
                                     const MlirStringRef *fields,
                                     const double *values) {
  Builder b(unwrap(context));
  b.getContext()->getOrLoadDialect<AttnDialect>();
  SmallVector<NamedAttribute> overrides;
  for (intptr_t i = 0; i < overrideCount; ++i) {
    StringRef field = unwrap(fields[i]);
    if (field.empty()) {
      errorsIn(b.getContext())() << "expects the name of a field, but got none";
      return wrap(Attribute());
    }
    overrides.push_back(b.getNamedAttr(field, b.getF64FloatAttr(values[i])));
  }
  return wrap(Attribute(MachineAttr::getChecked(
      errorsIn(b.getContext()), b.getContext(), b.getStringAttr(unwrap(name)),
      ArrayRef<NamedAttribute>(overrides))));
}

MlirStringRef mlirAttnMachineAttrGetName(MlirAttribute machine) {
  return wrap(cast<MachineAttr>(unwrap(machine)).getName().getValue());
}

intptr_t mlirAttnMachineAttrGetOverrideCount(MlirAttribute machine) {
  return intptr_t(cast<MachineAttr>(unwrap(machine)).getOverrides().size());
}

static NamedAttribute overrideAt(MlirAttribute machine, intptr_t position) {
  return cast<MachineAttr>(unwrap(machine)).getOverrides()[size_t(position)];
}

MlirStringRef mlirAttnMachineAttrGetField(MlirAttribute machine,
                                          intptr_t position) {
  return wrap(overrideAt(machine, position).getName().getValue());
}

double mlirAttnMachineAttrGetValue(MlirAttribute machine, intptr_t position) {
  return cast<FloatAttr>(overrideAt(machine, position).getValue())
      .getValueAsDouble();
}

MlirTypeID mlirAttnMachineAttrGetTypeID() {
  return wrap(MachineAttr::getTypeID());
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

bool mlirAttributeIsAAttnSchedule(MlirAttribute attribute) {
  return isa_and_present<ScheduleAttr>(unwrap(attribute));
}

MlirAttribute mlirAttnScheduleAttrGet(MlirContext context, MlirStringRef name,
                                      intptr_t tileCount,
                                      const MlirStringRef *tiles,
                                      const int64_t *sizes) {
  Builder b(unwrap(context));
  b.getContext()->getOrLoadDialect<AttnDialect>();
  SmallVector<std::pair<StringAttr, int64_t>> all;
  for (intptr_t i = 0; i < tileCount; ++i)
    all.push_back({b.getStringAttr(unwrap(tiles[i])), sizes[i]});
  return wrap(Attribute(ScheduleAttr::getChecked(
      errorsIn(b.getContext()), b.getContext(), b.getStringAttr(unwrap(name)),
      ArrayRef<std::pair<StringAttr, int64_t>>(all))));
}

MlirStringRef mlirAttnScheduleAttrGetName(MlirAttribute schedule) {
  return wrap(cast<ScheduleAttr>(unwrap(schedule)).getName().getValue());
}

intptr_t mlirAttnScheduleAttrGetTileCount(MlirAttribute schedule) {
  return intptr_t(cast<ScheduleAttr>(unwrap(schedule)).getSizes().size());
}

MlirStringRef mlirAttnScheduleAttrGetTile(MlirAttribute schedule,
                                          intptr_t position) {
  auto sizes = cast<ScheduleAttr>(unwrap(schedule)).getSizes();
  return wrap(sizes[size_t(position)].first.getValue());
}

int64_t mlirAttnScheduleAttrGetSize(MlirAttribute schedule, intptr_t position) {
  auto sizes = cast<ScheduleAttr>(unwrap(schedule)).getSizes();
  return sizes[size_t(position)].second;
}

MlirTypeID mlirAttnScheduleAttrGetTypeID() {
  return wrap(ScheduleAttr::getTypeID());
}
