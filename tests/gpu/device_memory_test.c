/* Memory of a GPU that the fake driver has (fake_cuda.h), as source and destination of RC, with memory of the host and
 * with itself. Two processes. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

static const char *const places[] = {"host", "GPU"};

/* One message of each kind; both processes call it with the same arguments. */
struct message {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool receives, reads, immediate;
};

static const struct message messages[] = {
    {"SEND", IBV_WR_SEND, .receives = true},
    {"SEND with immediate", IBV_WR_SEND_WITH_IMM, .receives = true, .immediate = true},
    {"WRITE", IBV_WR_RDMA_WRITE},
    {"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, .receives = true, .immediate = true},
    {"READ", IBV_WR_RDMA_READ, .reads = true},
};

enum { OFFSET = 24, SEED = 5 };

static bool post_and_wait(struct pair *pair, const struct message *message, int here, int there, uint32_t length)
{
    struct ibv_sge sge = pair_sge(pair, here, OFFSET, length);
    pair_post(pair, message->opcode, &sge, 1, there, OFFSET);
    struct ibv_wc wc = pair_wait(pair);
    if (wc.status)
        printf("# %s, vendor_err %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
    return wc.status == IBV_WC_SUCCESS;
}

static bool receive(struct pair *pair, const struct message *message)
{
    struct ibv_wc wc = pair_wait(pair);
    return wc.status == IBV_WC_SUCCESS && (!message->immediate || wc.imm_data == 0x11223344);
}

/* `here` is the first process's memory, `there` the second's. */
static bool move(struct pair *pair, const struct message *message, int here, int there, uint32_t length)
{
    bool source = pair->first != message->reads, good = true;
    int mine = pair->first ? here : there;
    struct ibv_sge sge = pair_sge(pair, mine, OFFSET, length);
    pair_fill(pair, mine, OFFSET - 8, length + 16, source ? SEED : 0);
    if (source)
        pair_fill(pair, mine, OFFSET, length, SEED + 1);
    if (!pair->first && message->receives)
        pair_receive(pair, &sge, 1);
    pair_meet(pair);
    if (pair->first)
        good = post_and_wait(pair, message, here, there, length);
    else if (message->receives)
        good = receive(pair, message);
    pair_meet(pair);
    return good &&
           (source || (pair_holds(pair, mine, OFFSET, length, SEED + 1) && pair_holds(pair, mine, OFFSET - 8, 8, 0)));
}

static void messages_arrive(struct pair *pair)
{
    static const uint32_t lengths[] = {1, 8, 13, 4096, 65536, (1 << 20) + 5, 3 << 20};
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
        for (int places_of = 0; places_of < 4; places_of++) {
            bool good = true;
            for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++)
                good = move(pair, &messages[i], places_of & 1, places_of >> 1, lengths[l]) && good;
            pair_report(pair, good, "%s between memory of the %s and of the %s", messages[i].name,
                        places[places_of & 1], places[places_of >> 1]);
        }
}

/* Elements of both kinds in one message. */
static void lists_are_mixed(struct pair *pair)
{
    struct ibv_sge sges[] = {pair_sge(pair, HOST, 0, 100), pair_sge(pair, GPU, 3, 70001), pair_sge(pair, HOST, 200, 9),
                             pair_sge(pair, GPU, 1 << 20, 16)};
    bool good = true;
    for (int i = 0; i < 4; i++)
        pair_fill(pair, i & 1, sges[i].addr - pair->memory[i & 1], sges[i].length, pair->first ? (unsigned)i : 99);
    if (!pair->first)
        pair_receive(pair, sges, 4);
    pair_meet(pair);
    if (pair->first)
        pair_post(pair, IBV_WR_SEND, sges, 4, HOST, 0);
    good = pair_wait(pair).status == IBV_WC_SUCCESS;
    for (int i = 0; i < 4; i++)
        good = pair_holds(pair, i & 1, sges[i].addr - pair->memory[i & 1], sges[i].length, (unsigned)i) && good;
    pair_report(pair, good, "a list with elements of both");
}

/* Programs ask with the first call whether dma-bufs are supported, and register one with the second. */
static void a_dma_buf_is_its_address(struct pair *pair)
{
    int fd = -1;
    struct ibv_mr *kept = pair->mr[GPU];
    errno = 0;
    bool good = !ibv_reg_dmabuf_mr(pair->pd, 0, 4096, 0, -1, 0) && errno == EBADF;
    cuMemGetHandleForAddressRange(&fd, pair->memory[GPU], MEMORY, 1, 0);
    pair->mr[GPU] = ibv_reg_dmabuf_mr(pair->pd, 0, MEMORY, pair->memory[GPU], fd, PAIR_ACCESS);
    if (!pair->mr[GPU]) {
        printf("# ibv_reg_dmabuf_mr: %d\n", errno);
        _exit(9);
    }
    pair_connect(pair);
    good = move(pair, &messages[0], GPU, GPU, 70000) && move(pair, &messages[2], GPU, GPU, 70000) &&
           move(pair, &messages[4], GPU, GPU, 70000) && good;
    good = !ibv_dereg_mr(pair->mr[GPU]) && good;
    close(fd);
    pair->mr[GPU] = kept;
    pair_connect(pair);
    pair_report(pair, good, "a dma-buf is registered by the address that is its iova");
}

static void what_is_no_gpus_memory_is_refused(struct pair *pair)
{
    void *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = 0;
    bool good = !ibv_reg_mr(pair->pd, nothing, 4096, 0) && errno == EFAULT;
    errno = 0;
    good =
        good && !ibv_reg_mr(pair->pd, (void *)(uintptr_t)pair->memory[GPU], MEMORY + (1 << 20), 0) && errno == EFAULT;
    int fd = -1;
    cuMemGetHandleForAddressRange(&fd, pair->memory[GPU], MEMORY, 1, 0);
    errno = 0;
    good = good && !ibv_reg_dmabuf_mr(pair->pd, 0, 4096, (uintptr_t)nothing, fd, 0) && errno == EOPNOTSUPP;
    close(fd);
    munmap(nothing, 4096);
    pair_report(pair, good, "what is no memory of a GPU is refused as before");
}

static void nothing_ran_on_the_legacy_stream(struct pair *pair)
{
    pair_report(pair, !fake_cuda_legacy_copies || !fake_cuda_legacy_copies(), "no copy ran on the legacy stream");
}

int main(void)
{
    struct pair pair;
    pair_open(&pair);
    messages_arrive(&pair);
    lists_are_mixed(&pair);
    a_dma_buf_is_its_address(&pair);
    what_is_no_gpus_memory_is_refused(&pair);
    nothing_ran_on_the_legacy_stream(&pair);
    pair_plan(&pair);
    return !pair_close(&pair, true);
}
