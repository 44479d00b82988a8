#include "gpu.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- what there is */

static bool read_line(const char *root, const char *path, char *line, size_t size)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *file = fopen(whole, "re");
    bool read = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    line[read ? strcspn(line, "\n") : 0] = 0;
    return read;
}

static bool is_there(const char *root, const char *path)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return !access(whole, F_OK);
}

/* Counts the entries of the directory that are `prefix` and a number. */
static unsigned count_numbered(const char *root, const char *path, const char *prefix)
{
    char whole[PATH_MAX];
    unsigned count = 0;
    size_t length = strlen(prefix);
    snprintf(whole, sizeof whole, "%s%s", root, path);
    DIR *directory = opendir(whole);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += !strncmp(entry->d_name, prefix, length) && isdigit((unsigned char)entry->d_name[length]);
    if (directory)
        closedir(directory);
    return count;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build": the first word of digits and
 * dots alone that has more than four letters. */
static void find_release(const char *line, char release[32])
{
    for (const char *word = line; *word; word += strcspn(word, " "), word += strspn(word, " ")) {
        size_t length = strspn(word, "0123456789.");
        if (length > 4 && length == strcspn(word, " ") && memchr(word, '.', length)) {
            snprintf(release, 32, "%.*s", (int)length, word);
            return;
        }
    }
}

/* The kernel takes dma-bufs into regions since 5.12; NVIDIA's driver exports them by its open modules, or since 515. */
static bool has_dma_buf(const struct gpu_machine *machine)
{
    unsigned major = 0, minor = 0, driver = 0;
    sscanf(machine->kernel, "%u.%u", &major, &minor);
    sscanf(machine->release, "%u", &driver);
    bool exports =
        machine->driver == GPU_AMD || (machine->driver == GPU_NVIDIA && (machine->open_modules || driver >= 515));
    return exports && (major > 5 || (major == 5 && minor >= 12));
}

void gpu_look(const char *root, struct gpu_machine *machine)
{
    char line[256];
    *machine = (struct gpu_machine){.driver = GPU_NONE};
    read_line(root, "/proc/sys/kernel/osrelease", machine->kernel, sizeof machine->kernel);
    if (read_line(root, "/proc/driver/nvidia/version", line, sizeof line)) {
        machine->driver = GPU_NVIDIA;
        machine->open_modules = strstr(line, "Open Kernel Module");
        machine->nodes = count_numbered(root, "/dev", "nvidia");
        find_release(line, machine->release);
    } else if (is_there(root, "/sys/module/amdgpu") && is_there(root, "/dev/kfd")) {
        machine->driver = GPU_AMD;
        machine->nodes = count_numbered(root, "/dev/dri", "renderD");
    }
    machine->peermem = is_there(root, "/sys/module/nvidia_peermem/version") ||
                       is_there(root, "/sys/kernel/mm/memory_peers/nv_mem/version") ||
                       is_there(root, "/sys/kernel/mm/memory_peers/nv_mem_nc/version");
    machine->dma_buf = has_dma_buf(machine);
}

/* --- sentences */

enum verdict gpu_say_driver(const struct gpu_machine *machine, char *say, size_t size)
{
    if (machine->driver == GPU_AMD) {
        snprintf(
            say, size,
            "AMD's driver amdgpu is loaded. Memory of its GPUs can't be registered here, so programs must stage it "
            "through the host (NCCL_NET_GDR_LEVEL=LOC, UCX_IB_GPU_DIRECT_RDMA=n).");
        return VERDICT_WARNING;
    }
    if (machine->driver == GPU_NONE)
        snprintf(
            say, size,
            "No driver of a GPU is loaded: NCCL and CUDA programs do not start here. Which adapter a program takes "
            "for the nearest can be tested without one: softverbs run --pci.");
    else if (!machine->nodes)
        snprintf(say, size,
                 "NVIDIA's driver %s is loaded, but there is no /dev/nvidia0, so CUDA finds no GPU. Give the container "
                 "its GPUs (docker run --gpus all).",
                 machine->release);
    else
        snprintf(say, size, "NVIDIA's driver %s%s, %u GPU%s.", machine->release,
                 machine->open_modules ? " with open kernel modules" : "", machine->nodes,
                 machine->nodes == 1 ? "" : "s");
    return machine->driver == GPU_NVIDIA && !machine->nodes ? VERDICT_WARNING : VERDICT_OK;
}

enum verdict gpu_say_memory(const struct gpu_machine *machine, char *say, size_t size)
{
    snprintf(
        say, size,
        "ibv_reg_mr and ibv_reg_dmabuf_mr take memory of the GPU in a process that has loaded libcuda.so.1, and the "
        "driver copies it. nvidia_peermem is %s, and softverbs does not need it. Dma-bufs: %s (kernel %s).",
        machine->peermem ? "loaded" : "not loaded",
        machine->dma_buf ? "kernel and driver have them"
                         : "they need a kernel from 5.12 on and a driver from 515 on; ibv_reg_mr works without them",
        machine->kernel);
    return VERDICT_OK;
}

static bool is_within_switch(const char *level)
{
    static const char *const near[] = {"LOC", "PIX", "PXB", "0", "1", "2"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if (!strcasecmp(level, near[i]))
            return true;
    return false;
}

enum verdict gpu_say_nccl(const struct gpu_machine *machine, const char *level, bool placed, char *say, size_t size)
{
    bool able = machine->driver == GPU_NVIDIA && (machine->dma_buf || machine->peermem);
    bool far = level && !is_within_switch(level), never = level && (!strcasecmp(level, "LOC") || !strcmp(level, "0"));
    if (able && (far || (placed && !never))) {
        snprintf(say, size,
                 "NCCL takes our devices (\"NET/IB\") and registers memory of the GPU, as %s%s. Such a run hung on an "
                 "H100, most likely as CUDA loads kernels at their first launch (docs/evidence/gpu.md); "
                 "CUDA_MODULE_LOADING=EAGER loads them before. NCCL_NET_GDR_LEVEL=LOC makes it stage through the host, "
                 "which works.",
                 far ? "NCCL_NET_GDR_LEVEL=" : "a device may be near a GPU (--pci)", far ? level : "");
        return VERDICT_WARNING;
    }
    snprintf(say, size,
             "NCCL takes our devices before sockets (\"NET/IB : Using [0]soft0:1/RoCE\") and stages memory of the GPU "
             "through the host (\"GDR 0\"), as %s.",
             !able   ? "it finds neither nvidia_peermem nor dma-bufs"
             : never ? "NCCL_NET_GDR_LEVEL says so"
                     : "no device is within a PCI switch of a GPU");
    return VERDICT_OK;
}

enum verdict gpu_say_ucx(const struct gpu_machine *machine, const char *direct, char *say, size_t size)
{
    bool able = machine->driver == GPU_NVIDIA && (machine->dma_buf || machine->peermem);
    bool refused = direct && (!strcasecmp(direct, "n") || !strcasecmp(direct, "no"));
    snprintf(say, size,
             "UCX takes our devices by rc_verbs and ud_verbs and, where its CUDA modules are installed, %s, as %s. "
             "UCX_IB_GPU_DIRECT_RDMA=n makes it stage through the host.",
             able && !refused ? "registers memory of the GPU" : "stages memory of the GPU through the host",
             refused            ? "UCX_IB_GPU_DIRECT_RDMA says so"
             : machine->peermem ? "nvidia_peermem is loaded"
             : able             ? "its probe finds that we take dma-bufs"
                                : "it finds neither nvidia_peermem nor dma-bufs");
    return VERDICT_OK;
}
