//===- RequestArrays.cpp - Arrays that a request may leave out ------------===//

#include "RequestArrays.h"

#include "attn/IR/Clauses.h"

#include "llvm/ADT/STLExtras.h"

#include <cstddef>

using namespace attn;

Outcome attn::checkBlocks(const BlockSize &size) {
  for (int64_t rows : {size.queries, size.keys})
    if (rows <= 0 || rows % kBlockMultiple != 0)
      return invalid("expects blocks of multiples of " +
                     std::to_string(kBlockMultiple) +
                     " queries and keys, but got " + str(size));
  return std::nullopt;
}

Outcome attn::checkLongest(const Lengths &longest) {
  for (int64_t rows : {longest.queries, longest.keys})
    if (rows < 0 || rows > kMaxRows)
      return invalid("expects the longest sequences between 0 and " +
                     std::to_string(kMaxRows) + ", but got " +
                     std::to_string(rows));
  return std::nullopt;
}

/// The arrays of lists, in the order of arraysOf.
using Lists = llvm::SmallVector<const attn_buffer *, 8>;
static Lists listsOf(const attn_forward_request &source) {
  return {source.partial_counts, source.partial_blocks, source.full_counts,
          source.full_blocks};
}
static Lists listsOf(const attn_backward_request &source) {
  return {source.partial_counts,
          source.partial_blocks,
          source.full_counts,
          source.full_blocks,
          source.transposed_partial_counts,
          source.transposed_partial_blocks,
          source.transposed_full_counts,
          source.transposed_full_blocks};
}

/// Adds a place for each array of lists, and says what their blocks are.
template <typename Source>
static Outcome readLists(const Source &source, AttentionRequest &request,
                         llvm::SmallVectorImpl<const attn_buffer *> &buffers) {
  bool isThere =
      source.struct_size >= offsetof(Source, block_keys) + sizeof(int64_t);
  Lists lists(listsOf(Source()).size(), nullptr);
  if (isThere)
    lists = listsOf(source);
  buffers.append(lists);
  if (llvm::all_of(lists, [](const attn_buffer *list) { return !list; }))
    return std::nullopt;
  request.blocks = BlockSize{source.block_queries, source.block_keys};
  return checkBlocks(*request.blocks);
}

/// Adds places for the offsets of sequences, and says how long they may be.
template <typename Source>
static Outcome readRagged(const Source &source, AttentionRequest &request,
                          llvm::SmallVectorImpl<const attn_buffer *> &buffers,
                          bool hasCache) {
  bool isThere =
      source.struct_size >= offsetof(Source, wide_offsets) + sizeof(int64_t);
  const attn_buffer *q = isThere ? source.cu_q : nullptr,
                    *k = isThere ? source.cu_k : nullptr;
  buffers.append({q, k});
  if (!q && !k)
    return std::nullopt;
  if (hasCache && (!q || k))
    return invalid("expects cu_q without cu_k beside used_keys, which says "
                   "where the keys of each sequence end");
  if (!hasCache && (!q || !k))
    return invalid("expects cu_q and cu_k together, the offsets of queries and "
                   "of keys, or cu_q and used_keys");
  Ragged ragged;
  ragged.longest = {source.longest_q, source.longest_k};
  ragged.isWide = source.wide_offsets != 0;
  request.ragged = ragged;
  return checkLongest(ragged.longest);
}

/// Whether a request has fields for what tells where rows lie, as only forward
/// ones may.
static bool hasPlace(const attn_forward_request &source) {
  return source.struct_size >=
         offsetof(attn_forward_request, used_keys_bits) + sizeof(int64_t);
}
static bool hasCache(const attn_backward_request &) { return false; }
static bool hasCache(const attn_forward_request &source) {
  return hasPlace(source) && source.used_keys;
}

/// Adds places for that.
static void readPlace(const attn_backward_request &, AttentionRequest &,
                      llvm::SmallVectorImpl<const attn_buffer *> &) {}
static void readPlace(const attn_forward_request &source,
                      AttentionRequest &request,
                      llvm::SmallVectorImpl<const attn_buffer *> &buffers) {
  bool isThere = hasPlace(source);
  buffers.push_back(isThere ? source.used_keys : nullptr);
  buffers.push_back(isThere ? source.page_table : nullptr);
  if (isThere && source.used_keys && source.used_keys_bits != 0)
    request.usedKeysBits = source.used_keys_bits;
  if (source.struct_size >=
      offsetof(attn_forward_request, values_of_keys) + sizeof(int64_t))
    request.valuesOfKeys = source.values_of_keys != 0;
}

template <typename Source>
static Outcome readAll(const Source &source, AttentionRequest &request,
                       llvm::SmallVectorImpl<const attn_buffer *> &buffers) {
  if (Outcome fault = readLists(source, request, buffers))
    return fault;
  if (Outcome fault = readRagged(source, request, buffers, hasCache(source)))
    return fault;
  readPlace(source, request, buffers);
  return std::nullopt;
}

Outcome
attn::readOptional(const attn_forward_request &source,
                   AttentionRequest &request,
                   llvm::SmallVectorImpl<const attn_buffer *> &buffers) {
  return readAll(source, request, buffers);
}

Outcome
attn::readOptional(const attn_backward_request &source,
                   AttentionRequest &request,
                   llvm::SmallVectorImpl<const attn_buffer *> &buffers) {
  return readAll(source, request, buffers);
}
