/*===- Dialect.h - The attn dialect in MLIR's C interface ---------*- C -*-===*/
/*
 * For compilers and bindings that build IR through mlir-c.  Names and ownership
 * are as there: an attribute lives as long as its context, a text that is
 * passed in is copied, and a text that is given back lives as long as what it
 * was taken from.
 *
 * Ops need no functions of their own: `mlirOperationCreate` makes
 * "attn.forward" of operands, result types and attributes by name (mask, scale,
 * precision, schedule), as docs/reference/attn.md has them.
 *
 * A function that makes an attribute gives a null one if its arguments are
 * wrong, and reports a diagnostic in the context that says what was expected.
 * One that reads an attribute takes any: of another kind, of null and behind
 * the last position it gives the null text, 0 or false.
 *
 *   MlirDialectRegistry registry = mlirDialectRegistryCreate();
 *   mlirAttnRegisterAllDialects(registry);
 *   mlirAttnRegisterAllPasses();
 *   MlirContext context = mlirContextCreateWithRegistry(registry, false);
 *   MlirAttribute mask =
 *       mlirAttnMaskAttrGet(context, mlirStringRefCreateFromCString("causal"));
 */
/*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_DIALECT_H
#define ATTN_C_DIALECT_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The handle `mlirGetDialectHandle__attn__()`: of the ops and attributes, with
 * the interfaces by which upstream tiles and bufferizes the ops. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Attn, attn);
/* And `mlirGetDialectHandle__tile__()`: of the kernels below them. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Tile, tile);

/* Our dialects and the upstream ones that our pipelines use, with the
 * interfaces that inlining, tiling, bufferization and translation look for. */
MLIR_CAPI_EXPORTED void
mlirAttnRegisterAllDialects(MlirDialectRegistry registry);

/* Our passes and pipelines, by name; once in a process is enough, and again
 * does nothing. */
MLIR_CAPI_EXPORTED void mlirAttnRegisterPasses(void);
/* The same, and the upstream passes that go with them. */
MLIR_CAPI_EXPORTED void mlirAttnRegisterAllPasses(void);

/*===----------------------------------------------------------------------===*/
/* #attn.mask<...>: which keys a query sees */
/*===----------------------------------------------------------------------===*/

MLIR_CAPI_EXPORTED bool mlirAttributeIsAAttnMask(MlirAttribute attribute);
/* Of the text between the brackets, "causal" or "window<1024, 0>". */
MLIR_CAPI_EXPORTED MlirAttribute mlirAttnMaskAttrGet(MlirContext context,
                                                     MlirStringRef text);
/* That text, which the context keeps. */
MLIR_CAPI_EXPORTED MlirStringRef mlirAttnMaskAttrGetText(MlirAttribute mask);
MLIR_CAPI_EXPORTED MlirTypeID mlirAttnMaskAttrGetTypeID(void);

/*===----------------------------------------------------------------------===*/
/* #attn.precision<...>: how factors of f32 are multiplied */
/*===----------------------------------------------------------------------===*/

MLIR_CAPI_EXPORTED bool mlirAttributeIsAAttnPrecision(MlirAttribute attribute);
/* Of its name, "tf32x3" or "tf32". */
MLIR_CAPI_EXPORTED MlirAttribute mlirAttnPrecisionAttrGet(MlirContext context,
                                                          MlirStringRef name);
MLIR_CAPI_EXPORTED MlirStringRef
mlirAttnPrecisionAttrGetName(MlirAttribute precision);
MLIR_CAPI_EXPORTED MlirTypeID mlirAttnPrecisionAttrGetTypeID(void);

/*===----------------------------------------------------------------------===*/
/* #attn.machine<...>: the GPU that code is compiled for */
/*===----------------------------------------------------------------------===*/

MLIR_CAPI_EXPORTED bool mlirAttributeIsAAttnMachine(MlirAttribute attribute);
/* A row of the table of machines, in which some fields are replaced. */
MLIR_CAPI_EXPORTED MlirAttribute mlirAttnMachineAttrGet(
    MlirContext context, MlirStringRef name, intptr_t overrideCount,
    const MlirStringRef *fields, const double *values);
MLIR_CAPI_EXPORTED MlirStringRef
mlirAttnMachineAttrGetName(MlirAttribute machine);
MLIR_CAPI_EXPORTED intptr_t
mlirAttnMachineAttrGetOverrideCount(MlirAttribute machine);
/* The field at a position below the count, and its value. */
MLIR_CAPI_EXPORTED MlirStringRef
mlirAttnMachineAttrGetField(MlirAttribute machine, intptr_t position);
MLIR_CAPI_EXPORTED double mlirAttnMachineAttrGetValue(MlirAttribute machine,
                                                      intptr_t position);
/* A fact of the machine, "sms", replaced or not; false if it has none such. */
MLIR_CAPI_EXPORTED bool mlirAttnMachineAttrGetFact(MlirAttribute machine,
                                                   MlirStringRef field,
                                                   double *value);
MLIR_CAPI_EXPORTED MlirTypeID mlirAttnMachineAttrGetTypeID(void);

/*===----------------------------------------------------------------------===*/
/* #attn.schedule<...>: how an op is computed */
/*===----------------------------------------------------------------------===*/

MLIR_CAPI_EXPORTED bool mlirAttributeIsAAttnSchedule(MlirAttribute attribute);
/* A schedule, "flash", and sizes of tiles by name. */
MLIR_CAPI_EXPORTED MlirAttribute mlirAttnScheduleAttrGet(
    MlirContext context, MlirStringRef name, intptr_t tileCount,
    const MlirStringRef *tiles, const int64_t *sizes);
MLIR_CAPI_EXPORTED MlirStringRef
mlirAttnScheduleAttrGetName(MlirAttribute schedule);
MLIR_CAPI_EXPORTED intptr_t
mlirAttnScheduleAttrGetTileCount(MlirAttribute schedule);
/* The tile at a position below the count, and its size. */
MLIR_CAPI_EXPORTED MlirStringRef
mlirAttnScheduleAttrGetTile(MlirAttribute schedule, intptr_t position);
MLIR_CAPI_EXPORTED int64_t mlirAttnScheduleAttrGetSize(MlirAttribute schedule,
                                                       intptr_t position);
MLIR_CAPI_EXPORTED MlirTypeID mlirAttnScheduleAttrGetTypeID(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_DIALECT_H */
