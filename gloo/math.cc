#include "gloo/math.h"

#include "gloo/internal/kernels.h"

GLOO_NAMESPACE_BEGIN

#define GLOO_DEFINE_REDUCTION(T, operation, reduction)                        \
  template <>                                                                 \
  void operation<T>(void* c, const void* a, const void* b, size_t n) {        \
    internal::kernelFor(internal::elementTypeOf<T>(),                         \
                        internal::Reduction::reduction)(c, a, b, n, nullptr); \
  }                                                                           \
  template <>                                                                 \
  void operation<T>(T * a, const T* b, size_t n) {                            \
    operation<T>(static_cast<void*>(a), a, b, n);                             \
  }
#define GLOO_DEFINE_SUMS(T)           \
  GLOO_DEFINE_REDUCTION(T, sum, kSum) \
  GLOO_DEFINE_REDUCTION(T, product, kProduct)
#define GLOO_DEFINE_REDUCTIONS(T)     \
  GLOO_DEFINE_SUMS(T)                 \
  GLOO_DEFINE_REDUCTION(T, max, kMax) \
  GLOO_DEFINE_REDUCTION(T, min, kMin)

GLOO_DEFINE_REDUCTIONS(char)
GLOO_DEFINE_REDUCTIONS(signed char)
GLOO_DEFINE_REDUCTIONS(unsigned char)
GLOO_DEFINE_REDUCTIONS(short)
GLOO_DEFINE_REDUCTIONS(unsigned short)
GLOO_DEFINE_REDUCTIONS(int)
GLOO_DEFINE_REDUCTIONS(unsigned int)
GLOO_DEFINE_REDUCTIONS(long)
GLOO_DEFINE_REDUCTIONS(unsigned long)
GLOO_DEFINE_REDUCTIONS(long long)
GLOO_DEFINE_REDUCTIONS(unsigned long long)
GLOO_DEFINE_REDUCTIONS(float)
GLOO_DEFINE_REDUCTIONS(double)
GLOO_DEFINE_REDUCTIONS(float16)
GLOO_DEFINE_REDUCTIONS(bfloat16)
GLOO_DEFINE_SUMS(std::complex<float>)
GLOO_DEFINE_SUMS(std::complex<double>)

GLOO_NAMESPACE_END
