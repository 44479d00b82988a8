/* Messages whose bytes a kernel of the GPU writes and another compares, and kernels that wait for what a WRITE brings.
 * For a machine with a GPU: its driver loads the kernels (kernels.cu) from the file that is named. Two processes.
 * Usage: gpu_kernels KERNELS.cubin */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pair.h"

/* The driver's calls that the fake one lacks. */
#define DRIVER(CALL)                                                                                                   \
    CALL(cuModuleLoad, (void **, const char *))                                                                        \
    CALL(cuModuleGetFunction, (void **, void *, const char *))                                                         \
    CALL(cuLaunchKernel,                                                                                               \
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
static struct {
#define CALL(name, parameters) int(*name) parameters;
    DRIVER(CALL)
#undef CALL
} driver;

#define KERNELS(KERNEL) KERNEL(fill) KERNEL(compare) KERNEL(wait_and_compare)
static struct {
#define KERNEL(name) void *name;
    KERNELS(KERNEL)
#undef KERNEL
} kernels;

enum { BLOCKS = 64, THREADS = 256, WRONG_AT = MEMORY - 4096, ROUNDS = 100 };
static void *module, *second_stream;
static const unsigned long long KERNEL_GIVES_UP = 3000000000;

static void need(bool there, const char *call)
{
    if (there)
        return;
    fprintf(stderr, "# %s failed\n", call);
    _Exit(9);
}

static void load_kernels(const char *path)
{
#define CALL(name, parameters)                                                                                         \
    driver.name = (int(*) parameters)dlsym(RTLD_DEFAULT, #name);                                                       \
    need(driver.name, #name);
    DRIVER(CALL)
#undef CALL
    need(!driver.cuModuleLoad(&module, path), "cuModuleLoad");
#define KERNEL(name) need(!driver.cuModuleGetFunction(&kernels.name, module, #name), "cuModuleGetFunction of " #name);
    KERNELS(KERNEL)
#undef KERNEL
}

static void launch(void *stream, void *kernel, unsigned blocks, void **arguments)
{
    need(!driver.cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
}

static void fill(struct pair *pair, size_t offset, unsigned long long length, unsigned seed)
{
    cuda_address at = pair->memory[GPU] + offset;
    launch(pair->stream, kernels.fill, BLOCKS, (void *[]){&at, &length, &seed});
    need(!cuStreamSynchronize(pair->stream), "cuStreamSynchronize");
}

static void set_word(struct pair *pair, size_t offset, unsigned value)
{
    need(!cuMemcpyHtoDAsync_v2(pair->memory[GPU] + offset, &value, sizeof value, pair->stream), "cuMemcpyHtoDAsync");
    need(!cuStreamSynchronize(pair->stream), "cuStreamSynchronize");
}

static void begin_comparing(struct pair *pair, void *stream, void *kernel, unsigned blocks, void **arguments)
{
    set_word(pair, WRONG_AT, 0);
    launch(stream, kernel, blocks, arguments);
}

/* The number of wrong bytes. */
static unsigned wrong_bytes(struct pair *pair, void *stream)
{
    need(!cuStreamSynchronize(stream), "cuStreamSynchronize");
    return (unsigned)pair_word(pair, GPU, WRONG_AT);
}

static unsigned compare(struct pair *pair, size_t offset, unsigned long long length, unsigned seed)
{
    cuda_address at = pair->memory[GPU] + offset, wrong = pair->memory[GPU] + WRONG_AT;
    begin_comparing(pair, pair->stream, kernels.compare, BLOCKS, (void *[]){&at, &length, &seed, &wrong});
    return wrong_bytes(pair, pair->stream);
}

static const uint32_t lengths[] = {1, 8, 4097, 65536, (1 << 20) + 5, 16 << 20};

static bool exchange(struct pair *pair, enum ibv_wr_opcode opcode, uint32_t length)
{
    bool source = pair->first != (opcode == IBV_WR_RDMA_READ), receives = opcode == IBV_WR_SEND, good = true;
    struct ibv_sge sge = pair_sge(pair, GPU, 0, length);
    fill(pair, 0, length, source ? length : length + 1);
    if (!pair->first && receives)
        pair_receive(pair, &sge, 1);
    pair_meet(pair);
    if (pair->first)
        pair_post(pair, opcode, &sge, 1, GPU, 0);
    if (pair->first || receives)
        good = pair_wait(pair).status == IBV_WC_SUCCESS;
    pair_meet(pair);
    return good && !compare(pair, 0, length, length);
}

static void kernels_compare_messages(struct pair *pair)
{
    static const struct {
        const char *name;
        enum ibv_wr_opcode opcode;
    } kinds[] = {{"SEND", IBV_WR_SEND}, {"WRITE", IBV_WR_RDMA_WRITE}, {"READ", IBV_WR_RDMA_READ}};
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool good = true;
        for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++)
            good = exchange(pair, kinds[k].opcode, lengths[l]) && good;
        pair_report(pair, good, "a kernel finds each byte of a %s as another has written it", kinds[k].name);
    }
}

static void launch_late(const char *name, void **arguments)
{
    void *kernel;
    need(!driver.cuModuleGetFunction(&kernel, module, name), "cuModuleGetFunction of a late kernel");
    launch(second_stream, kernel, 1, arguments);
}

/* One WRITE of `length` bytes and a word after them. `meanwhile` is launched for the first time while a kernel waits.
 */
static bool write_to_waiting(struct pair *pair, void *stream, uint32_t length, unsigned round, void *meanwhile)
{
    struct ibv_sge sge = pair_sge(pair, GPU, 0, length + 4);
    unsigned long long bytes = length;
    unsigned seed = round, value = round + 1;
    cuda_address at = pair->memory[GPU], wrong = at + WRONG_AT;
    fill(pair, 0, length, pair->first ? seed : seed + 100);
    set_word(pair, length, pair->first ? value : 0);
    if (!pair->first)
        begin_comparing(pair, stream, kernels.wait_and_compare, 1,
                        (void *[]){&at, &bytes, &seed, &value, (void *)&KERNEL_GIVES_UP, &wrong});
    if (!pair->first && meanwhile)
        launch_late(meanwhile, (void *[]){&at, &bytes, &seed});
    pair_meet(pair);
    if (pair->first)
        pair_post(pair, IBV_WR_RDMA_WRITE, &sge, 1, GPU, 0);
    bool good = pair->first ? pair_wait(pair).status == IBV_WC_SUCCESS : !wrong_bytes(pair, stream);
    pair_meet(pair);
    return good;
}

static void a_kernel_waits_for_a_write(struct pair *pair, void *stream, const char *name)
{
    static const uint32_t waited[] = {0, 60, 4096, 65536, 1 << 20};
    bool good = true;
    for (unsigned l = 0; l < sizeof waited / sizeof *waited; l++)
        for (unsigned round = 0; round < ROUNDS / (1 + waited[l] / 65536); round++)
            good = write_to_waiting(pair, stream, waited[l], round, NULL) && good;
    pair_report(pair, good, "a kernel on %s that waits for the last word of a WRITE finds all bytes", name);
}

/* Not a case: by the mode of the driver the word arrives at once, or when the kernel has given up. */
static void a_kernel_is_loaded_meanwhile(struct pair *pair)
{
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    bool came = write_to_waiting(pair, pair->stream, 60, 7, "late");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    const char *mode = getenv("CUDA_MODULE_LOADING");
    if (!pair->first)
        printf(
            "# CUDA_MODULE_LOADING=%s, another kernel launched for the first time meanwhile: the word %s (%.1f ms)\n",
            mode ? mode : "", came ? "came" : "did not come while the kernel waited",
            (double)(ended.tv_sec - begun.tv_sec) * 1e3 + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-6);
    fflush(stdout);
    pair_meet(pair);
}

int main(int argc, char **argv)
{
    struct pair pair;
    need(argc == 2, "gpu_kernels without the file of the kernels");
    pair_open(&pair);
    load_kernels(argv[1]);
    need(!cuStreamCreate(&second_stream, 1), "cuStreamCreate");
    kernels_compare_messages(&pair);
    a_kernel_waits_for_a_write(&pair, pair.stream, "a stream of its own");
    a_kernel_waits_for_a_write(&pair, NULL, "the legacy stream");
    a_kernel_is_loaded_meanwhile(&pair);
    pair_plan(&pair);
    return !pair_close(&pair, true);
}
