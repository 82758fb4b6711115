// The CUDA text in front of every generated kernel: element types, and functions with the meaning
// that ops/elementwise gives them.
#pragma once

namespace plimsoll::kernels::cuda {

inline constexpr const char* kPointwisePrelude = R"(
struct Bf16 { unsigned short bits; };
struct Half { unsigned short bits; };
template <typename T, int W> struct alignas(sizeof(T) * W) Pack { T at[W]; };

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ double wide(double x) { return x; }
__device__ __forceinline__ float wide(Bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ float wide(Half x) {
  float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;
}
__device__ __forceinline__ unsigned long long wide(unsigned long long x) { return x; }
template <typename T> __device__ __forceinline__ long long wide(T x) { return x; }

template <typename T> struct Put {
  template <typename V> static __device__ __forceinline__ T from(V x) { return static_cast<T>(x); }
};
template <> struct Put<Bf16> {
  template <typename V> static __device__ __forceinline__ Bf16 from(V x) {
    Bf16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(static_cast<float>(x))); return y;
  }
};
template <> struct Put<Half> {
  template <typename V> static __device__ __forceinline__ Half from(V x) {
    Half y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(static_cast<float>(x))); return y;
  }
};

template <int W, typename T>
__device__ __forceinline__ Pack<T, W> load(const T* from, int live) {
  if (W == 1 || live == W) return *reinterpret_cast<const Pack<T, W>*>(from);
  Pack<T, W> out = {};
  for (int w = 0; w < W; ++w) if (w < live) out.at[w] = from[w];
  return out;
}
template <int W, typename T>
__device__ __forceinline__ void store(T* to, const Pack<T, W>& pack, int live) {
  if (W == 1 || live == W) { *reinterpret_cast<Pack<T, W>*>(to) = pack; return; }
  for (int w = 0; w < W; ++w) if (w < live) to[w] = pack.at[w];
}

#define REAL_FUNCTION(name) \
  __device__ __forceinline__ float real_##name(float x) { return name##f(x); } \
  __device__ __forceinline__ double real_##name(double x) { return name(x); }
REAL_FUNCTION(exp) REAL_FUNCTION(expm1) REAL_FUNCTION(log) REAL_FUNCTION(log1p) REAL_FUNCTION(sqrt)
REAL_FUNCTION(sin) REAL_FUNCTION(cos) REAL_FUNCTION(tan) REAL_FUNCTION(asin) REAL_FUNCTION(acos)
REAL_FUNCTION(atan) REAL_FUNCTION(sinh) REAL_FUNCTION(cosh) REAL_FUNCTION(tanh)
REAL_FUNCTION(asinh) REAL_FUNCTION(acosh) REAL_FUNCTION(atanh) REAL_FUNCTION(erf)
REAL_FUNCTION(erfc)
REAL_FUNCTION(floor) REAL_FUNCTION(ceil) REAL_FUNCTION(fabs) REAL_FUNCTION(nearbyint)
__device__ __forceinline__ float real_pow(float a, float b) { return powf(a, b); }
__device__ __forceinline__ double real_pow(double a, double b) { return pow(a, b); }
__device__ __forceinline__ float real_fmod(float a, float b) { return fmodf(a, b); }
__device__ __forceinline__ double real_fmod(double a, double b) { return fmod(a, b); }

// For numbers of 16 bits: some 20 bits of exp, and erfc by Abramowitz and Stegun 7.1.26, to 1.5e-7.
__device__ __forceinline__ float short_exp(float x) {
  float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f)); return y;
}
__device__ __forceinline__ float short_erfc(float x) {
  const float a = fabsf(x);
  float t; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(1.0f + 0.3275911f * a));
  const float terms = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t
                        - 0.284496736f) * t + 0.254829592f) * t;
  const float y = terms * short_exp(-a * a);
  return x < 0 ? 2.0f - y : x != x ? x : y;
}

// Neither branch overflows.
template <typename T> __device__ __forceinline__ T real_sigmoid(T x) {
  return x >= 0 ? T(1) / (T(1) + real_exp(-x)) : real_exp(x) / (T(1) + real_exp(x));
}
template <typename T> __device__ __forceinline__ T real_softplus(T x) {
  return (x > 0 ? x : T(0)) + real_log1p(real_exp(-real_fabs(x)));
}

__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
__device__ __forceinline__ unsigned long long magnitude(unsigned long long x) { return x; }
__device__ __forceinline__ long long magnitude(long long x) {
  return x < 0 ? (long long)(0 - (unsigned long long)x) : x;
}

// A NaN in either operand is the result; of equal operands it is the first.
template <typename T> __device__ __forceinline__ T maximum(T a, T b) {
  return a >= b || a != a ? a : b;
}
template <typename T> __device__ __forceinline__ T minimum(T a, T b) {
  return a <= b || a != a ? a : b;
}
template <typename T> __device__ __forceinline__ T no_less_than_0(T x) {
  return x < 0 ? T(0) : x;
}

// An integer divided by zero gives zero.
__device__ __forceinline__ float quotient(float a, float b) { return a / b; }
__device__ __forceinline__ double quotient(double a, double b) { return a / b; }
__device__ __forceinline__ unsigned long long quotient(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a / b;
}
__device__ __forceinline__ long long quotient(long long a, long long b) {
  if (b == 0) return 0;
  return b == -1 ? (long long)(0 - (unsigned long long)a) : a / b;
}

template <typename T> __device__ __forceinline__ T floored(T rest, T b) {
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ __forceinline__ float rest_of(float a, float b) { return real_fmod(a, b); }
__device__ __forceinline__ double rest_of(double a, double b) { return real_fmod(a, b); }
__device__ __forceinline__ unsigned long long rest_of(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a % b;
}
__device__ __forceinline__ long long rest_of(long long a, long long b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

__device__ __forceinline__ float power(float a, float b) { return powf(a, b); }
__device__ __forceinline__ double power(double a, double b) { return pow(a, b); }
__device__ inline unsigned long long power(unsigned long long base, unsigned long long exponent) {
  unsigned long long out = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) if (exponent & 1) out *= base;
  return out;
}
__device__ inline long long power(long long base, long long exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  return (long long)power((unsigned long long)base, (unsigned long long)exponent);
}

// Towards zero, saturating at 64 bits; NaN gives 0.
template <typename T> __device__ __forceinline__ long long whole(T x) {
  if (x != x) return 0;
  if (x >= T(9223372036854775808.0)) return 0x7fffffffffffffffLL;
  if (x < T(-9223372036854775808.0)) return -0x7fffffffffffffffLL - 1;
  return (long long)x;
}

// ops/elementwise/dropout_mask.h
__device__ __forceinline__ unsigned long long mix64(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
__device__ __forceinline__ unsigned long long dropout_key(unsigned long long seed,
                                                          unsigned long long counter) {
  return mix64((mix64(seed + 0x9e3779b97f4a7c15ULL) ^ counter) + 0x9e3779b97f4a7c15ULL);
}
__device__ __forceinline__ unsigned dropout_mix(unsigned x) {
  x ^= x >> 16; x *= 0x7feb352dU; x ^= x >> 15; x *= 0x846ca68bU;
  return x ^ (x >> 16);
}
__device__ __forceinline__ unsigned dropout_hash(unsigned long long key, long long index) {
  const unsigned low = (unsigned)index, high = (unsigned)((unsigned long long)index >> 32);
  const unsigned once = dropout_mix((low ^ (unsigned)key) + high * 0x9e3779b9U);
  return dropout_mix(once ^ (unsigned)(key >> 32));
}
)";

}  // namespace plimsoll::kernels::cuda
