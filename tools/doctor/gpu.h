/* The GPUs of this machine, and the choices of NCCL and UCX on our devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "checks.h"

enum gpu_driver { GPU_NONE, GPU_NVIDIA, GPU_AMD };

struct gpu_machine {
    enum gpu_driver driver;
    unsigned nodes;             /* device nodes of GPUs; a container may have 0 */
    bool open_modules, peermem; /* NVIDIA's */
    bool dma_buf;               /* the kernel is new enough (5.12), and the driver exports its memory as dma-bufs */
    char release[32], kernel[64];
};

/* Looks at the machine whose "/" is `root`: "" is this machine. */
void gpu_look(const char *root, struct gpu_machine *);

/* The driver and its device nodes. */
enum verdict gpu_say_driver(const struct gpu_machine *, char *say, size_t size);

/* How memory of a GPU is registered and copied. */
enum verdict gpu_say_memory(const struct gpu_machine *, char *say, size_t size);

/* Whether NCCL registers memory of a GPU or stages it through the host. `level` is NCCL_NET_GDR_LEVEL, or NULL;
 * `placed`: a device has a PCI function. */
enum verdict gpu_say_nccl(const struct gpu_machine *, const char *level, bool placed, char *say, size_t size);

/* Whether UCX registers memory of a GPU or stages it. `direct` is UCX_IB_GPU_DIRECT_RDMA, or NULL. */
enum verdict gpu_say_ucx(const struct gpu_machine *, const char *direct, char *say, size_t size);
