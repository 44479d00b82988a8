/* A libcuda of our own, as much of it as programs and the library here use. Its device memory is address space that no
 * processor reaches, with the bytes elsewhere; each stream is a thread; what a stream is asked for happens later, in
 * order. The default stream is the legacy one: it waits for all streams that were not made non-blocking, and they for
 * it. Within a host callback each call is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef unsigned long long cuda_address;

enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_READY = 600,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_NOT_PERMITTED = 800,
};

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxGetCurrent(void **context);
int cuMemAlloc_v2(cuda_address *, size_t);
int cuMemFree_v2(cuda_address);
int cuMemHostAlloc(void **, size_t, unsigned flags);
int cuPointerGetAttribute(void *, int attribute, cuda_address);
int cuMemGetHandleForAddressRange(void *handle, cuda_address, size_t, int type, unsigned long long flags);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamQuery(void *stream);
int cuStreamSynchronize(void *stream);
int cuMemcpyHtoDAsync_v2(cuda_address, const void *, size_t, void *stream);
int cuMemcpyDtoHAsync_v2(void *, cuda_address, size_t, void *stream);
int cuMemcpyHtoD_v2(cuda_address, const void *, size_t);
int cuMemcpyDtoH_v2(void *, cuda_address, size_t);
int cuLaunchHostFunc(void *stream, void (*)(void *), void *);

/* Copies on streams that were made: the library's, and a program's. */
struct fake_cuda_copies {
    unsigned count, most_in_flight; /* begun on one stream and not ended */
    unsigned into;                  /* copies into the device */
    unsigned gone;                  /* their memory had been freed when they ran */
    unsigned long long bytes;
};

/* Beside the interface. With FAKE_CUDA_LATENCY (environment; 0) copies take this number of microseconds, and their
 * bytes 54 GB/s. A kernel that waits until 32 bits of device memory have the value. The context ends: each copy fails
 * from now on. The number of copies that ran on the legacy stream. */
int fake_cuda_launch_wait(void *stream, cuda_address, uint32_t value);
void fake_cuda_kill(void);
/* Copies on streams that were made do not begin, or the calls for them do not return, as while a kernel is loaded and
 * others run. */
enum fake_cuda_hold { FAKE_CUDA_HOLD_NONE, FAKE_CUDA_HOLD_COPIES, FAKE_CUDA_HOLD_CALLS };
void fake_cuda_hold_copies(enum fake_cuda_hold);
void fake_cuda_fail_copy(unsigned number) __attribute__((weak)); /* the copy into the device that has it, counted from
                                                                    now; 0: no copy */
/* The next `count` copies out of the device are refused when they are asked for. */
void fake_cuda_refuse_copies(unsigned count) __attribute__((weak));
unsigned fake_cuda_pinned(void) __attribute__((weak));                     /* calls for pinned memory */
unsigned fake_cuda_legacy_copies(void) __attribute__((weak));              /* NULL: the driver is the machine's */
struct fake_cuda_copies fake_cuda_take_copies(void) __attribute__((weak)); /* since the last call */

#pragma GCC visibility pop
