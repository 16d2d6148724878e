// Where copies of 16 bytes land in shared memory, and how fast they come: every
// block copies the same 4 MiB from L2, in rows of 128 bytes.
//
//   nvcc -O3 -arch=sm_90 sectors.cu -o sectors && ./sectors
//   ncu --metrics l1tex__m_xbar2l1tex_read_bytes.sum ./sectors
//
// A sector of 32 bytes whose halves do not share 32 aligned bytes of shared
// memory comes twice.

#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kThreads = 128, kRows = 64, kPieces = 8, kPiece = 16;
constexpr int kMostPitch = 160;

enum class Place { dense, odd16, odd16Shifted, swizzled, odd32, odd32Swapped };

// Of a piece of a row in a tile.
template <Place place> __device__ int placeOf(int row, int piece) {
  switch (place) {
  case Place::dense:
    return row * 128 + piece * kPiece;
  case Place::odd16:
    return row * 144 + piece * kPiece;
  case Place::odd16Shifted:
    return row * 144 + (piece + 1) * kPiece;
  case Place::swizzled:
    return row * 128 + (piece ^ (row & 7)) * kPiece;
  case Place::odd32:
    return row * 160 + piece * kPiece;
  case Place::odd32Swapped: // what `padded` of !tile.smem is
    return row * 160 + (piece ^ (row >> 2 & 1)) * kPiece;
  }
  return 0;
}

template <Place place>
__global__ void copies(const char *from, long bytes, int *out) {
  constexpr int tile = kRows * kPieces * kPiece, stage = kRows * kMostPitch;
  __shared__ __align__(128) char stages[2 * stage + 128];
  int turn = 0;
  for (long at = 0; at < bytes; at += tile) {
    for (int i = threadIdx.x; i < kRows * kPieces; i += kThreads) {
      char *to =
          stages + turn * stage + placeOf<place>(i / kPieces, i % kPieces);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       uint32_t(__cvta_generic_to_shared(to))),
                   "l"(from + at + i * kPiece));
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    turn ^= 1;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (stages[threadIdx.x] == 77)
    out[0] = 1;
}

template <Place place>
void time(const char *name, const char *from, long bytes, int *out) {
  constexpr int blocks = 132 * 8;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float least = 1e9f;
  for (int round = 0; round < 5; ++round) {
    cudaEventRecord(begin);
    copies<place><<<blocks, kThreads>>>(from, bytes, out);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms;
    cudaEventElapsedTime(&ms, begin, end);
    least = ms < least ? ms : least;
  }
  printf("%-40s %.3f ms, %.2f TB/s\n", name, least,
         1e-9 * blocks * bytes / least);
}

int main() {
  long bytes = 4 << 20;
  char *from;
  int *out;
  cudaMalloc(&from, bytes);
  cudaMalloc(&out, sizeof(int));
  cudaMemset(from, 0, bytes);
  time<Place::dense>("rows behind each other", from, bytes, out);
  time<Place::odd16>("an odd number of 16 bytes", from, bytes, out);
  time<Place::odd16Shifted>("the same, 16 bytes on", from, bytes, out);
  time<Place::swizzled>("pieces at place j ^ (row % 8)", from, bytes, out);
  time<Place::odd32>("an odd number of 32 bytes", from, bytes, out);
  time<Place::odd32Swapped>("the same, halves swapped in 4 of 8 rows", from,
                            bytes, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
