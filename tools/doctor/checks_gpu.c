#include <stdlib.h>

#include "checks.h"
#include "gpu.h"
#include "pci/pci.h"

static const struct gpu_machine *look(void)
{
    static struct gpu_machine machine;
    gpu_look("", &machine);
    return &machine;
}

bool checks_have_gpu(void)
{
    return look()->driver == GPU_NVIDIA;
}

enum verdict check_gpu(char *say, size_t size)
{
    return gpu_say_driver(look(), say, size);
}

enum verdict check_gpu_memory(char *say, size_t size)
{
    return gpu_say_memory(look(), say, size);
}

enum verdict check_gpu_nccl(char *say, size_t size)
{
    bool placed = false;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        placed |= pci_of_device(pci_layout(), i) != NULL;
    return gpu_say_nccl(look(), getenv("NCCL_NET_GDR_LEVEL"), placed, say, size);
}

enum verdict check_gpu_ucx(char *say, size_t size)
{
    return gpu_say_ucx(look(), getenv("UCX_IB_GPU_DIRECT_RDMA"), say, size);
}
