/*===- calls.h - Arrays at made-up addresses, and what is printed ---------===*/

#ifndef ATTN_TEST_UNIT_CAPI_CALLS_H
#define ATTN_TEST_UNIT_CAPI_CALLS_H

#include "attn-c/Attn.h"

#include <stdio.h>
#include <string.h>

static inline attn_buffer array(uintptr_t address, int64_t batch, int64_t heads,
                                int64_t rows, int64_t dim) {
  attn_buffer buffer;
  memset(&buffer, 0, sizeof(buffer));
  buffer.data = (void *)address;
  buffer.rank = 4;
  buffer.sizes[0] = batch;
  buffer.sizes[1] = heads;
  buffer.sizes[2] = rows;
  buffer.sizes[3] = dim;
  buffer.strides[3] = 1;
  buffer.strides[2] = dim;
  buffer.strides[1] = rows * dim;
  buffer.strides[0] = heads * rows * dim;
  return buffer;
}

static inline void show(const char *what, attn_status *status) {
  printf("%s: %d %s\n", what, (int)status->code,
         status->message ? status->message : "-");
  attn_status_clear(status);
}

static inline void showText(const char *what, char *text) {
  printf("%s: %s\n", what, text ? text : "-");
  attn_free(text);
}

static inline void showCache(const char *what) {
  char *json = NULL;
  attn_cache_json(&json, NULL);
  showText(what, json);
}

#endif
