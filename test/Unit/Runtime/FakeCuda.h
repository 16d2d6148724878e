/*===- FakeCuda.h - What a test may ask of the fake driver -------*- C -*-===*/

#ifndef ATTN_TEST_UNIT_RUNTIME_FAKECUDA_H
#define ATTN_TEST_UNIT_RUNTIME_FAKECUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the fake driver writes into the 128 bytes of a tensor map.  Dimensions
   from the innermost; enumerators are the driver's. */
struct FakeMap {
  uint64_t address;
  uint64_t magic;
  uint64_t extents[5];
  uint64_t strides[4];
  uint16_t box[5];
  uint8_t type, rank, swizzle, promotion, fill;
};

/* The map in these 128 bytes, or null. */
const struct FakeMap *fakeCudaMap(const void *bytes);

/* Whether a stream captures a graph from now on; for eight streams at most. */
void fakeCudaCapture(void *stream, int on);

/* The handle stands for another stream from now on. */
void fakeCudaRenew(void *stream);

/* Calls a function at every launch, with the addresses of the arguments. */
typedef void FakeLaunch(const char *kernel, void *stream, void **arguments,
                        void *data);
void fakeCudaOnLaunch(FakeLaunch *function, void *data);
/* Whether the launch it is called for may begin before the one before it has
   ended. */
int fakeCudaAhead(void);

/* The table of sides of every module whose text names one. */
const unsigned *fakeCudaSides(void);

/* Pieces of memory that were allocated and not freed. */
int fakeCudaPieces(void);

#ifdef __cplusplus
}
#endif

#endif
