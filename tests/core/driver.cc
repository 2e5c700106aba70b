// Passes for libcuda.so.1: all that the library takes from the CUDA driver, or,
// without GLOO_TEST_WHOLE, one function of it.
#define GLOO_TEST_CALL(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return 999; }

GLOO_TEST_CALL(cuPointerGetAttribute)
#if GLOO_TEST_WHOLE
GLOO_TEST_CALL(cuPointerSetAttribute)
GLOO_TEST_CALL(cuDeviceGetAttribute)
GLOO_TEST_CALL(cuDevicePrimaryCtxRetain)
GLOO_TEST_CALL(cuDevicePrimaryCtxRelease_v2)
GLOO_TEST_CALL(cuCtxPushCurrent_v2)
GLOO_TEST_CALL(cuCtxPopCurrent_v2)
GLOO_TEST_CALL(cuStreamCreate)
GLOO_TEST_CALL(cuStreamDestroy_v2)
GLOO_TEST_CALL(cuStreamSynchronize)
GLOO_TEST_CALL(cuMemcpyAsync)
GLOO_TEST_CALL(cuGetErrorString)
#endif
