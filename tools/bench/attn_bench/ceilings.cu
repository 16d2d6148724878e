// Kernels that do one thing as fast as the chip can.  Loads are volatile asm,
// so that none is merged, hoisted or dropped.

// Reads `data`, a power of two of float4, round and round, past L1; another
// multiprocessor reads a piece in every round.  Eight loads are in flight.
extern "C" __global__ void read_memory(const float4 *data, float *out,
                                       int count, int steps) {
  float sum = 0;
  unsigned stride = gridDim.x * blockDim.x;
  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; ++step) {
    float4 x[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x[j].x), "=f"(x[j].y), "=f"(x[j].z), "=f"(x[j].w)
                   : "l"(data + (index & (count - 1))));
      index += stride;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sum += x[j].x + x[j].y + x[j].z + x[j].w;
  }
  if (sum == 1.2345f)
    out[0] = sum;
}

// Each thread reads 16 bytes at a time, a warp 512 consecutive ones: no bank
// conflict.
extern "C" __global__ void read_shared(float *out, int iterations) {
  __shared__ float4 tile[2048];
  for (int i = threadIdx.x; i < 2048; i += blockDim.x)
    tile[i] = make_float4(i, 0, 0, 0);
  __syncthreads();
  unsigned base = (unsigned)__cvta_generic_to_shared(tile);
  unsigned offset = threadIdx.x * 16;
  float sum = 0;
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int step = 0; step < 16; ++step) {
      float4 x;
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                   : "r"(base + ((offset + step * 2048) & 32767)));
      sum += x.x + x.y + x.z + x.w;
    }
    offset += 512;
  }
  if (sum == 1.2345f)
    out[0] = sum;
}

// x -> 2^-x stays near 0.64.  Eight chains a thread hide the latency; the
// negation is free.
extern "C" __global__ void exponentials(float *out, int iterations) {
  float x[8];
#pragma unroll
  for (int j = 0; j < 8; ++j)
    x[j] = 0.001f * (threadIdx.x + j);
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(x[j]) : "f"(-x[j]));
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j)
    sum += x[j];
  if (sum == 1.2345f)
    out[0] = sum;
}
