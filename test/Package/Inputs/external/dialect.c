/* Attention through MLIR's C interface: built, verified, compiled to PTX. */

#include "attn-c/Dialect.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MlirStringRef text(const char *chars) {
  return mlirStringRefCreateFromCString(chars);
}

static void require(bool holds, const char *what) {
  if (holds)
    return;
  printf("WRONG: %s\n", what);
  exit(1);
}

static void print(MlirStringRef part, void *prefix) {
  (void)prefix;
  fwrite(part.data, 1, part.length, stdout);
}

static MlirLogicalResult show(MlirDiagnostic diagnostic, void *data) {
  (void)data;
  printf("diagnostic: ");
  mlirDiagnosticPrint(diagnostic, print, NULL);
  printf("\n");
  return mlirLogicalResultSuccess();
}

static MlirNamedAttribute named(MlirContext context, const char *name,
                                MlirAttribute attribute) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, text(name)),
                               attribute);
}

/* func @f(%q, %k, %v) { return attn.forward %q, %k, %v mask(causal) } */
static MlirModule build(MlirContext context) {
  MlirLocation at = mlirLocationUnknownGet(context);
  MlirModule module = mlirModuleCreateEmpty(at);
  const int64_t shape[4] = {1, 2, 256, 64};
  MlirType type = mlirRankedTensorTypeGet(4, shape, mlirBF16TypeGet(context),
                                          mlirAttributeGetNull());
  MlirType types[3] = {type, type, type};
  MlirLocation places[3] = {at, at, at};
  MlirBlock block = mlirBlockCreate(3, types, places);

  MlirOperationState forward = mlirOperationStateGet(text("attn.forward"), at);
  MlirValue operands[3];
  for (intptr_t i = 0; i < 3; ++i)
    operands[i] = mlirBlockGetArgument(block, i);
  mlirOperationStateAddOperands(&forward, 3, operands);
  mlirOperationStateAddResults(&forward, 1, &type);
  MlirStringRef tiles[4] = {text("query"), text("key"), text("stages"),
                            text("warps")};
  const int64_t sizes[4] = {64, 64, 2, 4};
  MlirNamedAttribute attributes[2] = {
      named(context, "mask", mlirAttnMaskAttrGet(context, text("causal"))),
      named(context, "schedule",
            mlirAttnScheduleAttrGet(context, text("flash"), 4, tiles, sizes))};
  mlirOperationStateAddAttributes(&forward, 2, attributes);
  MlirOperation op = mlirOperationCreate(&forward);
  mlirBlockAppendOwnedOperation(block, op);

  MlirOperationState back = mlirOperationStateGet(text("func.return"), at);
  MlirValue result = mlirOperationGetResult(op, 0);
  mlirOperationStateAddOperands(&back, 1, &result);
  mlirBlockAppendOwnedOperation(block, mlirOperationCreate(&back));

  MlirOperationState function = mlirOperationStateGet(text("func.func"), at);
  MlirRegion body = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(body, block);
  mlirOperationStateAddOwnedRegions(&function, 1, &body);
  MlirType of = mlirFunctionTypeGet(context, 3, types, 1, &type);
  MlirNamedAttribute signature[2] = {
      named(context, "sym_name", mlirStringAttrGet(context, text("f"))),
      named(context, "function_type", mlirTypeAttrGet(of))};
  mlirOperationStateAddAttributes(&function, 2, signature);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module),
                                mlirOperationCreate(&function));
  return module;
}

static void checkAttributes(MlirContext context) {
  MlirAttribute window = mlirAttnMaskAttrGet(context, text("window<256, 0>"));
  require(mlirAttributeIsAAttnMask(window), "a window is a mask");
  require(!mlirAttributeIsAAttnSchedule(window), "a window is no schedule");
  require(mlirStringRefEqual(mlirAttnMaskAttrGetText(window),
                             text("window<256, 0>")) &&
              mlirAttributeEqual(
                  window, mlirAttnMaskAttrGet(context,
                                              mlirAttnMaskAttrGetText(window))),
          "a mask has its text");
  mlirAttributeDump(window);
  MlirAttribute tf32 = mlirAttnPrecisionAttrGet(context, text("tf32"));
  require(
      mlirAttributeIsAAttnPrecision(tf32) &&
          mlirStringRefEqual(mlirAttnPrecisionAttrGetName(tf32), text("tf32")),
      "a precision has its name");
  MlirStringRef field = text("smem_bytes_per_block");
  const double bytes = 65536;
  MlirAttribute machine =
      mlirAttnMachineAttrGet(context, text("h100_sxm"), 1, &field, &bytes);
  require(
      mlirAttributeIsAAttnMachine(machine) &&
          mlirAttnMachineAttrGetOverrideCount(machine) == 1 &&
          mlirAttnMachineAttrGetValue(machine, 0) == bytes &&
          mlirStringRefEqual(mlirAttnMachineAttrGetField(machine, 0), field) &&
          mlirStringRefEqual(mlirAttnMachineAttrGetName(machine),
                             text("h100_sxm")),
      "a machine has its name and its fields");
  double fact = 0;
  require(mlirAttnMachineAttrGetFact(machine, field, &fact) && fact == bytes &&
              mlirAttnMachineAttrGetFact(machine, text("sms"), &fact) &&
              fact == 132 &&
              mlirAttnMachineAttrGetFact(machine, text("sms"), NULL) &&
              !mlirAttnMachineAttrGetFact(machine, text("wings"), &fact),
          "a machine has the facts of its row, but for what is replaced");
  MlirStringRef query = text("query");
  const int64_t rows = 128;
  MlirAttribute schedule =
      mlirAttnScheduleAttrGet(context, text("flash"), 1, &query, &rows);
  require(
      mlirAttributeIsAAttnSchedule(schedule) &&
          mlirAttnScheduleAttrGetTileCount(schedule) == 1 &&
          mlirAttnScheduleAttrGetSize(schedule, 0) == rows &&
          mlirStringRefEqual(mlirAttnScheduleAttrGetTile(schedule, 0), query) &&
          mlirStringRefEqual(mlirAttnScheduleAttrGetName(schedule),
                             text("flash")),
      "a schedule has its name and its tiles");
}

/* What has no such part gives nothing, and ends nothing. */
static void checkReaders(MlirContext context) {
  MlirStringRef query = text("query");
  const int64_t rows = 128;
  MlirAttribute others[] = {
      mlirAttributeGetNull(),
      mlirUnitAttrGet(context),
      mlirAttnMaskAttrGet(context, text("causal")),
      mlirAttnPrecisionAttrGet(context, text("tf32")),
      mlirAttnMachineAttrGet(context, text("l4"), 0, NULL, NULL),
      mlirAttnScheduleAttrGet(context, text("flash"), 1, &query, &rows)};
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
    MlirAttribute each = others[i];
    require(mlirAttributeIsAAttnMask(each) ==
                    !!mlirAttnMaskAttrGetText(each).data &&
                mlirAttributeIsAAttnPrecision(each) ==
                    !!mlirAttnPrecisionAttrGetName(each).data &&
                mlirAttributeIsAAttnMachine(each) ==
                    !!mlirAttnMachineAttrGetName(each).data &&
                mlirAttributeIsAAttnMachine(each) ==
                    mlirAttnMachineAttrGetFact(each, text("sms"), NULL) &&
                mlirAttributeIsAAttnSchedule(each) ==
                    !!mlirAttnScheduleAttrGetName(each).data &&
                mlirAttributeIsAAttnSchedule(each) ==
                    mlirAttnScheduleAttrGetTileCount(each),
            "only what is of the kind has the parts of the kind");
    for (intptr_t at = -1; at < 2; ++at)
      require(!mlirAttnMachineAttrGetField(each, at).data &&
                  mlirAttnMachineAttrGetValue(each, at) == 0 &&
                  (!!mlirAttnScheduleAttrGetTile(each, at).data ==
                   (mlirAttributeIsAAttnSchedule(each) && at == 0)) &&
                  (mlirAttnScheduleAttrGetSize(each, at) != 0) ==
                      (mlirAttributeIsAAttnSchedule(each) && at == 0),
              "behind the last position is nothing");
  }
}

/* Every wrong argument gives null and a diagnostic. */
static void checkErrors(MlirContext context) {
  MlirStringRef none = mlirStringRefCreate("", 0), wrong = text("rows");
  MlirContext nowhere = {NULL};
  const int64_t zero = 0;
  const double half = 0.5;
  MlirAttribute nulls[] = {
      mlirAttnMaskAttrGet(context, text("diagonal")),
      mlirAttnMaskAttrGet(context, text("window<-1, 0>")),
      mlirAttnMaskAttrGet(context, text("causal> : i32 #attn.mask<none")),
      mlirAttnMaskAttrGet(context, none),
      mlirAttnPrecisionAttrGet(context, text("f64")),
      mlirAttnMachineAttrGet(context, text("abacus"), 0, NULL, NULL),
      mlirAttnMachineAttrGet(context, text("h100_sxm"), 1, &wrong, &half),
      mlirAttnMachineAttrGet(context, text("h100_sxm"), 1, &none, &half),
      mlirAttnScheduleAttrGet(context, text("flsh"), 0, NULL, NULL),
      mlirAttnScheduleAttrGet(context, text("flash"), 1, &wrong, &zero),
      mlirAttnScheduleAttrGet(context, text("flash"), 1, &none, &zero),
      mlirAttnMachineAttrGet(context, text("l4"), 1, NULL, &half),
      mlirAttnMachineAttrGet(context, text("l4"), 1, &wrong, NULL),
      mlirAttnScheduleAttrGet(context, text("flash"), 2, NULL, NULL),
      mlirAttnMaskAttrGet(nowhere, text("causal")),
      mlirAttnPrecisionAttrGet(nowhere, text("tf32")),
      mlirAttnMachineAttrGet(nowhere, text("l4"), 0, NULL, NULL),
      mlirAttnScheduleAttrGet(nowhere, text("flash"), 0, NULL, NULL)};
  for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); ++i)
    require(mlirAttributeIsNull(nulls[i]), "a wrong attribute is null");
  require(!mlirAttributeIsAAttnMask(mlirAttributeGetNull()) &&
              !mlirAttributeIsAAttnPrecision(mlirAttributeGetNull()) &&
              !mlirAttributeIsAAttnMachine(mlirAttributeGetNull()) &&
              !mlirAttributeIsAAttnSchedule(mlirAttributeGetNull()),
          "null is of no kind");
}

/* The handle alone brings ops with their interfaces. */
static void checkHandle(void) {
  MlirContext context = mlirContextCreate();
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__attn__(), context);
  require(mlirContextIsRegisteredOperation(context, text("attn.forward")) &&
              !mlirContextIsRegisteredOperation(context, text("func.func")),
          "the handle loads our dialect and no other");
  mlirContextDestroy(context);
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirAttnRegisterAllDialects(registry);
  mlirAttnRegisterPasses();
  mlirAttnRegisterAllPasses();
  mlirAttnRegisterAllPasses();
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirContextAttachDiagnosticHandler(context, show, NULL, NULL);
  require(mlirStringRefEqual(
              mlirDialectHandleGetNamespace(mlirGetDialectHandle__attn__()),
              text("attn")),
          "the handle is that of attn");
  checkHandle();
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__attn__(), context);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__tile__(), context);
  mlirContextGetOrLoadDialect(context, text("func"));
  checkAttributes(context);
  checkReaders(context);
  checkErrors(context);

  MlirModule module = build(context);
  MlirOperation op = mlirModuleGetOperation(module);
  require(mlirOperationVerify(op), "the module verifies");
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirLogicalResult parsed = mlirParsePassPipeline(
      mlirPassManagerGetAsOpPassManager(passes),
      text("builtin.module(attn-to-binary{machine=a100_80g format=isa})"),
      print, NULL);
  require(mlirLogicalResultIsSuccess(parsed), "the pipeline has its name");
  require(mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(passes, op)),
          "the module compiles");
  mlirOperationPrint(op, print, NULL);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  printf("\nall right\n");
  return 0;
}
