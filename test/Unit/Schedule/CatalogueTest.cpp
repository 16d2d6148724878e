//===- CatalogueTest.cpp - Schedules that nobody built, counted -----------===//
//
// The folds know no schedule by name.  So schedules of the literature that have
// no file are written down here as values and must reproduce the word counts
// and the peaks of a simulator that counted every word: N = 32, d = 16.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

constexpr Level smem = Level::Smem, regs = Level::Registers;

Problem problem(bool lse) {
  Problem p;
  p.queries = p.keys = 32;
  p.headDim = p.headDimV = 16;
  p.lse = lse;
  return p;
}

/// S by slices of the head dimension, both operands streamed.
Body scoresBySlices(int64_t slice) {
  return {loop(Axis::HeadDim, slice, 1,
               {stream(Tensor::Q, smem), stream(Tensor::K, smem),
                multiply(Tensor::S, Tensor::Q, Tensor::K)})};
}

TEST(Catalogue, FlashAttention1) {
  // Keys outside, queries inside: the other nesting.
  Schedule fa1{"fa1",
               {grid(Axis::Key, 8, 1,
                     {load(Tensor::K, smem), load(Tensor::V, smem),
                      loop(Axis::Query, 4, 1,
                           {stream(Tensor::Q, smem), load(Tensor::O, regs),
                            load(Tensor::Stats, regs), hold(Tensor::S),
                            multiply(Tensor::S, Tensor::Q, Tensor::K),
                            softmax(Tensor::S), rescale(Tensor::O),
                            multiply(Tensor::O, Tensor::P, Tensor::V),
                            store(Tensor::O), spill(Tensor::Stats)})})}};
  EXPECT_EQ(trafficWords(fa1, problem(false)), 7680);
  EXPECT_EQ(peakWords(fa1, problem(false)), 424);
}

TEST(Catalogue, StreamedQuery) {
  Schedule f1{
      "f1",
      {grid(Axis::Query, 8, 1,
            {hold(Tensor::O), hold(Tensor::Stats),
             loop(Axis::Key, 8, 1,
                  sequence(
                      {{hold(Tensor::S)},
                       scoresBySlices(1),
                       {softmax(Tensor::S), rescale(Tensor::O)},
                       {loop(Axis::HeadDimV, 1, 1,
                             {stream(Tensor::V, smem),
                              multiply(Tensor::O, Tensor::P, Tensor::V)})}})),
             store(Tensor::O), store(Tensor::Lse)})}};
  EXPECT_EQ(trafficWords(f1, problem(true)), 6688);
  EXPECT_EQ(peakWords(f1, problem(true)), 224);
}

TEST(Catalogue, SahaYe) {
  // One statistic per row; P spilled without a max.
  Schedule sy{
      "sy",
      {grid(Axis::Query, 4, 1,
            {hold(Tensor::Lse),
             loop(Axis::Key, 4, 1,
                  sequence({{hold(Tensor::S)},
                            scoresBySlices(4),
                            {softmax(Tensor::S), spill(Tensor::P)}})),
             spill(Tensor::Lse)}),
       grid(Axis::Query, 4, 1,
            {load(Tensor::Lse, regs),
             loop(Axis::HeadDimV, 4, 1,
                  {hold(Tensor::O),
                   loop(Axis::Key, 4, 1,
                        {stream(Tensor::P, smem), stream(Tensor::V, smem),
                         multiply(Tensor::O, Tensor::P, Tensor::V)}),
                   store(Tensor::O)})})}};
  EXPECT_EQ(trafficWords(sy, problem(false)), 17984);
  EXPECT_EQ(peakWords(sy, problem(false)), 52);
}

TEST(Catalogue, RemoteReduction) {
  // O leaves for every tile and is added up far away.
  Schedule e{
      "e_prime",
      {grid(Axis::Query, 8, 1,
            {load(Tensor::Lse, regs),
             loop(Axis::Key, 8, 1,
                  sequence({{hold(Tensor::S)},
                            scoresBySlices(1),
                            {softmax(Tensor::S)},
                            {loop(Axis::HeadDimV, 1, 1,
                                  {stream(Tensor::V, smem),
                                   multiply(Tensor::O, Tensor::P, Tensor::V),
                                   spill(Tensor::O)})}}))})}};
  EXPECT_EQ(trafficWords(e, problem(false)), 8224);
}

/// S again for every slice of the output's columns.
Schedule recomputed(int64_t br, int64_t bc, int64_t columns) {
  return {
      "rec",
      {grid(
          Axis::Query, br, 1,
          {loop(Axis::HeadDimV, columns, 1,
                {hold(Tensor::O),
                 loop(Axis::Key, bc, 1,
                      sequence({{hold(Tensor::S)},
                                scoresBySlices(1),
                                {softmax(Tensor::S), stream(Tensor::V, smem),
                                 multiply(Tensor::O, Tensor::P, Tensor::V)}})),
                 store(Tensor::O)})})}};
}

TEST(Catalogue, Recomputation) {
  EXPECT_EQ(trafficWords(recomputed(8, 8, 8), problem(false)), 10752);
  EXPECT_EQ(trafficWords(recomputed(8, 4, 4), problem(false)), 27136);
}

} // namespace
