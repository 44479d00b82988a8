#include "verbs/memory/cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/static_lock.h"

/* Constants of the driver's interface. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_POINTER_CONTEXT = 1,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_ORDINAL = 9,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_HOST_PORTABLE = 1,
    CUDA_CAPTURE_RELAXED = 2,
};

typedef unsigned long long cuda_address;

/* The driver's functions: those without which nothing works, and those that only make it better. */
#define CUDA_NEEDED(CALL)                                                                                              \
    CALL(cuPointerGetAttribute, (void *, int, cuda_address))                                                           \
    CALL(cuDevicePrimaryCtxRetain, (void **, int))                                                                     \
    CALL(cuCtxSetCurrent, (void *))                                                                                    \
    CALL(cuStreamCreate, (void **, unsigned))                                                                          \
    CALL(cuStreamSynchronize, (void *))                                                                                \
    CALL(cuMemcpyHtoDAsync_v2, (cuda_address, const void *, size_t, void *))                                           \
    CALL(cuMemcpyDtoHAsync_v2, (void *, cuda_address, size_t, void *))
#define CUDA_WELCOME(CALL)                                                                                             \
    CALL(cuDeviceGet, (int *, int))                                                                                    \
    CALL(cuCtxGetCurrent, (void **))                                                                                   \
    CALL(cuMemHostAlloc, (void **, size_t, unsigned))                                                                  \
    CALL(cuThreadExchangeStreamCaptureMode, (int *))

static struct {
#define CALL(name, parameters) int(*name) parameters;
    CUDA_NEEDED(CALL) CUDA_WELCOME(CALL)
#undef CALL
} driver;

enum { STAGE = 1 << 20, PINNED = STAGE + (FOREIGN_LANDINGS + FOREIGN_AHEAD) * FOREIGN_PIECE };

/* A context of a device, and what copies in it. A device that was reset gets another struct cuda_device. */
struct cuda_device {
    struct foreign foreign;
    struct cuda_device *next;
    void *context, *stream;
    atomic_bool failed; /* a copy has failed: the context may be gone */
};

MUTEX_STATIC(opening, LOCK_DRIVER);
static struct cuda_device *devices;
static atomic_bool resolved;

static bool resolve(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *from = library ? library : RTLD_DEFAULT;
    bool whole = true;
#define CALL(name, parameters) whole = (driver.name = (int(*) parameters)dlsym(from, #name)) && whole;
    CUDA_NEEDED(CALL)
#undef CALL
#define CALL(name, parameters) driver.name = (int(*) parameters)dlsym(from, #name);
    CUDA_WELCOME(CALL)
#undef CALL
    if (library && !whole)
        dlclose(library);
    return whole; /* the library stays loaded, whatever the program does with it */
}

bool cuda_is_loaded(void)
{
    mutex_take(&opening);
    bool loaded = atomic_load(&resolved) || resolve();
    atomic_store(&resolved, loaded);
    mutex_release(&opening);
    return loaded;
}

/* While a thread captures a stream, the driver refuses calls of other threads that might wait for the stream, unless
 * their mode is relaxed. */
static int enter_context(const struct cuda_device *device)
{
    static _Thread_local bool relaxed __attribute__((tls_model("initial-exec")));
    int mode = CUDA_CAPTURE_RELAXED;
    if (!relaxed && driver.cuThreadExchangeStreamCaptureMode)
        driver.cuThreadExchangeStreamCaptureMode(&mode);
    relaxed = true;
    return driver.cuCtxSetCurrent(device->context);
}

/* Notes a failure, after which the context may be gone. CUDA_INVALID_VALUE only says that the memory was freed. */
static bool note_result(struct cuda_device *device, int result)
{
    if (result != CUDA_SUCCESS && result != CUDA_INVALID_VALUE)
        atomic_store(&device->failed, true);
    return result == CUDA_SUCCESS;
}

static bool copy_out(void *device, void *stage, const void *from, size_t length)
{
    struct cuda_device *of = device;
    int entered = enter_context(of);
    return note_result(of, entered ? entered : driver.cuMemcpyDtoHAsync_v2(stage, (uintptr_t)from, length, of->stream));
}

static bool copy_in(void *device, void *to, const void *stage, size_t length)
{
    struct cuda_device *of = device;
    int entered = enter_context(of);
    return note_result(of, entered ? entered : driver.cuMemcpyHtoDAsync_v2((uintptr_t)to, stage, length, of->stream));
}

static bool fence(void *device)
{
    struct cuda_device *of = device;
    int entered = enter_context(of);
    return note_result(of, entered ? entered : driver.cuStreamSynchronize(of->stream));
}

static bool is_device_memory(const void *at)
{
    unsigned type = 0;
    return driver.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)at) == CUDA_SUCCESS &&
           type == CUDA_MEMORY_DEVICE;
}

/* Called only when a copy has failed; the driver may still know the memory when its context is gone. */
static bool is_there(void *device, const void *at, size_t length)
{
    struct cuda_device *of = device;
    const uint8_t *last = (const uint8_t *)at + length - 1;
    return is_device_memory(at) && is_device_memory(last) && copy_out(of, of->foreign.stage, at, 1) &&
           copy_out(of, of->foreign.stage, last, 1) && fence(of);
}

static const struct foreign_operations operations = {copy_out, copy_in, fence, is_there};

/* The context in which the memory was allocated; memory without a context is its device's. */
static void *context_of_memory(const void *at)
{
    int ordinal = 0, number = 0;
    void *context = NULL, *primary = NULL;
    driver.cuPointerGetAttribute(&context, CUDA_POINTER_CONTEXT, (uintptr_t)at);
    if (driver.cuPointerGetAttribute(&ordinal, CUDA_POINTER_ORDINAL, (uintptr_t)at) != CUDA_SUCCESS)
        ordinal = 0;
    number = ordinal;
    if (driver.cuDeviceGet && driver.cuDeviceGet(&number, ordinal) != CUDA_SUCCESS)
        return context;
    if (context)
        return context;
    return driver.cuDevicePrimaryCtxRetain(&primary, number) == CUDA_SUCCESS ? primary : NULL;
}

/* Makes the private stream, which doesn't wait for the program's, and the stage, in the device's context. Without
 * pinned memory other memory is used, which is slower. */
static bool device_fill(struct cuda_device *device)
{
    void *stage = NULL;
    if (driver.cuStreamCreate(&device->stream, CUDA_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    if (!driver.cuMemHostAlloc || driver.cuMemHostAlloc(&stage, PINNED, CUDA_HOST_PORTABLE) != CUDA_SUCCESS)
        stage = malloc(PINNED);
    if (!stage)
        return false;
    uint8_t *landings = (uint8_t *)stage + STAGE;
    device->foreign =
        (struct foreign){&operations, device, stage, STAGE, landings, landings + FOREIGN_LANDINGS * FOREIGN_PIECE};
    return true;
}

static struct cuda_device *device_open(void *context)
{
    struct cuda_device *device = calloc(1, sizeof *device);
    void *before = NULL;
    if (!device)
        return NULL;
    device->context = context;
    if (driver.cuCtxGetCurrent)
        driver.cuCtxGetCurrent(&before);
    bool filled = driver.cuCtxSetCurrent(context) == CUDA_SUCCESS && device_fill(device);
    driver.cuCtxSetCurrent(before);
    if (!filled) {
        free(device);
        return NULL;
    }
    device->next = devices;
    devices = device;
    return device;
}

static struct cuda_device *device_for(void *context)
{
    struct cuda_device *device = devices;
    while (device && (device->context != context || atomic_load(&device->failed)))
        device = device->next;
    return device ? device : device_open(context);
}

const struct foreign *cuda_find(const void *address, size_t length)
{
    /* The whole address space is a region, too, and begins at NULL. */
    const void *first = address, *last = (const void *)((uintptr_t)address + (length ? length - 1 : 0));
    if (!cuda_is_loaded() || !is_device_memory(first) || !is_device_memory(last))
        return NULL;
    void *context = context_of_memory(first);
    if (!context)
        return NULL;
    mutex_take(&opening);
    const struct cuda_device *device = device_for(context);
    mutex_release(&opening);
    return device ? &device->foreign : NULL;
}
