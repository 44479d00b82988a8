/* The sentences of the doctor about GPUs, on made-up machines. */
#include "gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/testing/group.h"

#define OPEN_DRIVER                                                                                                    \
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder)\n"
#define OLD_DRIVER "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021\n"

static char root[] = "/tmp/softverbs-gpu-XXXXXX";
static char say[1024];

static void make_file(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + sizeof root; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0755);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A machine with these files, each with its text; NULL ends them. */
static struct gpu_machine machine_with(const char *const *files)
{
    struct gpu_machine machine;
    strcpy(root, "/tmp/softverbs-gpu-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (; *files; files += 2)
        make_file(files[0], files[1]);
    gpu_look(root, &machine);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", root);
    assert_int_equal(system(remove), 0);
    return machine;
}

static struct gpu_machine h100(void)
{
    return machine_with((const char *const[]){"/proc/sys/kernel/osrelease", "6.18.44\n", "/proc/driver/nvidia/version",
                                              OPEN_DRIVER, "/dev/nvidia0", "", "/dev/nvidia1", "", "/dev/nvidiactl", "",
                                              NULL});
}

static void expect(const char *words)
{
    if (!strstr(say, words))
        fail_msg("\"%s\" is not in \"%s\"", words, say);
}

static void a_machine_without_a_gpu_is_well(void **state)
{
    struct gpu_machine machine = machine_with((const char *const[]){"/proc/sys/kernel/osrelease", "6.1.0-13\n", NULL});
    assert_int_equal(machine.driver, GPU_NONE);
    assert_false(machine.dma_buf);
    assert_int_equal(gpu_say_driver(&machine, say, sizeof say), VERDICT_OK);
    expect("No driver of a GPU is loaded");
}

static void a_driver_has_its_release_and_its_gpus(void **state)
{
    struct gpu_machine machine = h100();
    assert_string_equal(machine.release, "580.159.04");
    assert_true(machine.open_modules && machine.dma_buf && !machine.peermem);
    assert_int_equal(gpu_say_driver(&machine, say, sizeof say), VERDICT_OK);
    assert_string_equal(say, "NVIDIA's driver 580.159.04 with open kernel modules, 2 GPUs.");
    gpu_say_memory(&machine, say, sizeof say);
    expect("nvidia_peermem is not loaded");
    expect("kernel and driver have them (kernel 6.18.44)");
}

static void an_old_machine_has_no_dma_bufs(void **state)
{
    struct gpu_machine machine =
        machine_with((const char *const[]){"/proc/sys/kernel/osrelease", "5.4.0-150\n", "/proc/driver/nvidia/version",
                                           OLD_DRIVER, "/dev/nvidia0", "", NULL});
    assert_string_equal(machine.release, "470.57.02");
    assert_false(machine.dma_buf || machine.open_modules);
    gpu_say_memory(&machine, say, sizeof say);
    expect("a kernel from 5.12 on");
    assert_int_equal(gpu_say_nccl(&machine, "SYS", false, say, sizeof say), VERDICT_OK);
    expect("it finds neither nvidia_peermem nor dma-bufs");
    gpu_say_ucx(&machine, NULL, say, sizeof say);
    expect("stages memory of the GPU through the host, as it finds neither");
}

static void a_container_without_device_nodes_is_warned_of(void **state)
{
    struct gpu_machine machine =
        machine_with((const char *const[]){"/proc/driver/nvidia/version", OPEN_DRIVER, "/dev/nvidiactl", "", NULL});
    assert_int_equal(gpu_say_driver(&machine, say, sizeof say), VERDICT_WARNING);
    expect("there is no /dev/nvidia0");
    expect("docker run --gpus all");
}

static void amd_s_memory_is_not_copied(void **state)
{
    struct gpu_machine machine =
        machine_with((const char *const[]){"/proc/sys/kernel/osrelease", "6.8.0\n", "/sys/module/amdgpu/version",
                                           "6.7\n", "/dev/kfd", "", "/dev/dri/renderD128", "", NULL});
    assert_int_equal(machine.driver, GPU_AMD);
    assert_int_equal(machine.nodes, 1);
    assert_int_equal(gpu_say_driver(&machine, say, sizeof say), VERDICT_WARNING);
    expect("can't be registered here");
}

static void nccl_stages_unless_a_device_is_near(void **state)
{
    struct gpu_machine machine = h100();
    static const struct {
        const char *level;
        bool placed;
        enum verdict verdict;
        const char *words;
    } cases[] = {
        {NULL, false, VERDICT_OK, "no device is within a PCI switch of a GPU"},
        {"PXB", false, VERDICT_OK, "no device is within a PCI switch of a GPU"},
        {"LOC", true, VERDICT_OK, "NCCL_NET_GDR_LEVEL says so"},
        {"SYS", false, VERDICT_WARNING, "as NCCL_NET_GDR_LEVEL=SYS. Such a run hung"},
        {NULL, true, VERDICT_WARNING, "as a device may be near a GPU (--pci)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(gpu_say_nccl(&machine, cases[i].level, cases[i].placed, say, sizeof say), cases[i].verdict);
        expect(cases[i].words);
    }
}

static void ucx_registers_where_it_can(void **state)
{
    struct gpu_machine machine = h100();
    gpu_say_ucx(&machine, NULL, say, sizeof say);
    expect("registers memory of the GPU, as its probe finds that we take dma-bufs");
    gpu_say_ucx(&machine, "n", say, sizeof say);
    expect("stages memory of the GPU through the host, as UCX_IB_GPU_DIRECT_RDMA says so");
    machine.peermem = true;
    gpu_say_ucx(&machine, NULL, say, sizeof say);
    expect("as nvidia_peermem is loaded");
}

static void modules_of_other_names_are_peermem_too(void **state)
{
    struct gpu_machine machine = machine_with((const char *const[]){
        "/proc/driver/nvidia/version", OLD_DRIVER, "/sys/kernel/mm/memory_peers/nv_mem/version", "1.2\n", NULL});
    assert_true(machine.peermem);
    assert_int_equal(gpu_say_nccl(&machine, "5", false, say, sizeof say), VERDICT_WARNING);
}

TESTS(a_machine_without_a_gpu_is_well,
      a_driver_has_its_release_and_its_gpus,
      an_old_machine_has_no_dma_bufs,
      a_container_without_device_nodes_is_warned_of,
      amd_s_memory_is_not_copied,
      nccl_stages_unless_a_device_is_near,
      ucx_registers_where_it_can,
      modules_of_other_names_are_peermem_too)
