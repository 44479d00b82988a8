/* Memory regions of special memory: device memory, a file or dma-buf, nothing at all, pages on demand. They belong to
 * the near end; the far end reads and writes through their keys. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "local_end.h"
#include "mmap_hint.h"

enum { PAGE = 4096, SEED = 11, ALL = ACCESS_ALL, DM_ACCESS = ACCESS_ALL | IBV_ACCESS_ZERO_BASED };

static struct ibv_context *near_context(const struct pair *pair)
{
    return near_pd(pair)->context;
}

static struct ibv_dm *allocate_dm(const struct pair *pair, size_t length, uint32_t log_alignment)
{
    struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_alignment};
    struct ibv_dm *dm = ibv_alloc_dm(near_context(pair), &attr);
    EXPECT_TRUE(dm);
    EXPECT(*newer_dm_handle(dm), !=, 0);
    return dm;
}

/* Copies the far end's first bytes there, and back to the bytes after them. */
static void write_and_read_back(struct pair *pair, uint32_t rkey, uint64_t address, uint32_t length)
{
    remote_fill(pair->far.remote, pair->far.memory, length, SEED);
    remote_set(pair->far.remote, pair->far.memory + length, length, 0);
    end_post(&pair->far, far_send_to(pair, IBV_WR_RDMA_WRITE, 1, rkey, address, length));
    end_expect_sent(&pair->far, 1, IBV_WC_SUCCESS);
    struct send read = far_send_to(pair, IBV_WR_RDMA_READ, 2, rkey, address, length);
    read.sge[0].addr += length;
    end_post(&pair->far, read);
    end_expect_sent(&pair->far, 2, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair->far.remote, pair->far.memory + length, length, SEED, 0), ==, -1);
}

static void expect_far_refused(struct pair *pair, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                               uint32_t length)
{
    end_post(&pair->far, far_send_to(pair, opcode, 3, rkey, address, length));
    end_expect_sent(&pair->far, 3, IBV_WC_REM_ACCESS_ERR);
}

static void device_memory_is_written_and_read(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    char in[64] = "what the program put there", out[64];
    struct ibv_dm *dm = allocate_dm(&pair, 3 * PAGE, 12);
    struct ibv_mr *mr = ibv_reg_dm_mr(near_pd(&pair), dm, PAGE, 2 * PAGE, DM_ACCESS);
    EXPECT_TRUE(mr);
    write_and_read_back(&pair, mr->rkey, 0, 2 * PAGE);
    near_in_step(&pair);
    EXPECT(ibv_memcpy_to_dm(dm, PAGE, in, sizeof in), ==, 0);
    near_in_step(&pair);
    end_post(&pair.far, far_send_to(&pair, IBV_WR_RDMA_READ, 4, mr->rkey, 0, sizeof in));
    end_expect_sent(&pair.far, 4, IBV_WC_SUCCESS);
    uint64_t word;
    memcpy(&word, in, sizeof word);
    EXPECT_TRUE(remote_peek(pair.far.remote, pair.far.memory) == word);
    EXPECT(ibv_memcpy_from_dm(out, dm, PAGE, sizeof out), ==, 0);
    EXPECT_TRUE(!memcmp(in, out, sizeof in));
    expect_far_refused(&pair, IBV_WR_RDMA_READ, mr->rkey, 2 * PAGE - 4, 8);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_free_dm(dm), ==, 0);
}

static void device_memory_takes_atomics(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_dm *dm = allocate_dm(&pair, 64, 3);
    struct ibv_mr *mr = ibv_reg_dm_mr(near_pd(&pair), dm, 0, 64, DM_ACCESS);
    EXPECT_TRUE(mr);
    for (uint64_t i = 0; i < 5; i++) {
        struct send add = far_send_to(&pair, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, mr->rkey, 8, 8);
        add.wr.wr.atomic.compare_add = 3;
        end_post(&pair.far, add);
        end_expect_sent(&pair.far, 1, IBV_WC_SUCCESS);
        EXPECT(remote_peek(pair.far.remote, pair.far.memory), ==, 3 * i);
    }
    uint64_t sum;
    near_in_step(&pair);
    EXPECT(ibv_memcpy_from_dm(&sum, dm, 8, 8), ==, 0);
    EXPECT(sum, ==, 15);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_free_dm(dm), ==, 0);
}

static void device_memory_is_a_source_and_a_sink_of_messages(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    uint32_t words[16] = {1, 2, 3}, back[16];
    struct ibv_dm *dm = allocate_dm(&pair, 2 * sizeof words, 0);
    struct ibv_mr *mr = ibv_reg_dm_mr(near_pd(&pair), dm, 0, 2 * sizeof words, DM_ACCESS);
    EXPECT_TRUE(mr);
    EXPECT(ibv_memcpy_to_dm(dm, 0, words, sizeof words), ==, 0);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, sizeof words);
    send.sge[0] = (struct ibv_sge){.addr = 0, .length = sizeof words, .lkey = mr->lkey};
    end_post_receive(&pair.far, end_receive(&pair.far, 2, 0, sizeof words));
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_received(&pair.far, 2, IBV_WC_SUCCESS, sizeof words);
    struct receive receive = end_receive(&pair.near, 3, 0, sizeof words);
    receive.sge[0] = (struct ibv_sge){.addr = sizeof words, .length = sizeof words, .lkey = mr->lkey};
    end_post_receive(&pair.near, receive);
    end_post(&pair.far, end_send(&pair.far, &pair.near, IBV_WR_SEND, 4, 0, sizeof words));
    end_expect_sent(&pair.far, 4, IBV_WC_SUCCESS);
    end_expect_received(&pair.near, 3, IBV_WC_SUCCESS, sizeof words);
    EXPECT(ibv_memcpy_from_dm(back, dm, sizeof words, sizeof back), ==, 0);
    EXPECT_TRUE(!memcmp(words, back, sizeof words));
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_free_dm(dm), ==, 0);
}

static void device_memory_in_use_is_busy(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_dm *dm = allocate_dm(&pair, 64, 0);
    struct ibv_mr *mr = ibv_reg_dm_mr(near_pd(&pair), dm, 0, 64, DM_ACCESS);
    EXPECT(ibv_free_dm(dm), ==, EBUSY);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_free_dm(dm), ==, 0);
}

static void bad_uses_of_device_memory_are_refused(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    char bytes[256] = {0};
    struct ibv_dm *dm = allocate_dm(&pair, 128, 0);
    static const struct {
        uint64_t offset;
        size_t length;
    } copies[] = {{1, 4}, {4, 3}, {128, 4}, {0, 132}, {UINT64_MAX - 3, 8}};
    for (size_t i = 0; i < COUNT(copies); i++) {
        EXPECT(ibv_memcpy_to_dm(dm, copies[i].offset, bytes, copies[i].length), ==, EINVAL);
        EXPECT(ibv_memcpy_from_dm(bytes, dm, copies[i].offset, copies[i].length), ==, EINVAL);
    }
    static const struct {
        uint64_t offset;
        size_t length;
        unsigned access;
    } regions[] = {{0, 132, DM_ACCESS},
                   {128, 4, DM_ACCESS},
                   {UINT64_MAX, 4, DM_ACCESS},
                   {0, 128, ALL},
                   {0, 128, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE},
                   {0, 128, DM_ACCESS | IBV_ACCESS_ON_DEMAND}};
    for (size_t i = 0; i < COUNT(regions); i++) {
        errno = 0;
        EXPECT_TRUE(!ibv_reg_dm_mr(near_pd(&pair), dm, regions[i].offset, regions[i].length, regions[i].access));
        EXPECT(errno, ==, EINVAL);
    }
    EXPECT(ibv_free_dm(dm), ==, 0);
}

static void the_device_memory_is_as_large_as_the_device_says(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_device_attr_ex attr;
    EXPECT(ibv_query_device_ex(near_context(&pair), NULL, &attr), ==, 0);
    EXPECT(attr.max_dm_size, >, 0);
    struct ibv_dm *half = allocate_dm(&pair, attr.max_dm_size / 2, 0);
    struct ibv_dm *rest = allocate_dm(&pair, attr.max_dm_size - attr.max_dm_size / 2, 0);
    struct ibv_alloc_dm_attr one = {.length = 4};
    EXPECT_TRUE(!ibv_alloc_dm(near_context(&pair), &one));
    EXPECT(errno, ==, ENOMEM);
    EXPECT(ibv_free_dm(half), ==, 0);
    EXPECT(ibv_free_dm(allocate_dm(&pair, 4, 0)), ==, 0);
    EXPECT(ibv_free_dm(rest), ==, 0);
    one = (struct ibv_alloc_dm_attr){.length = 4, .comp_mask = 1};
    EXPECT_TRUE(!ibv_alloc_dm(near_context(&pair), &one));
    EXPECT(errno, ==, EINVAL);
    one = (struct ibv_alloc_dm_attr){.length = 0};
    EXPECT_TRUE(!ibv_alloc_dm(near_context(&pair), &one));
    EXPECT(errno, ==, EINVAL);
}

static int make_file(size_t length)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    EXPECT(ftruncate(fd, (off_t)length), ==, 0);
    return fd;
}

/* Another process that maps the file sees a peer's writes, too; the region outlives the descriptor. */
static void a_file_is_a_region(const void *row)
{
    enum { IOVA = 0x7000000 + 100 };
    struct pair pair = pair_open(IBV_QPT_RC);
    int fd = make_file(4 * PAGE);
    char *mine = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_TRUE(mine != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(near_pd(&pair), PAGE + 100, 2 * PAGE, IOVA, fd, ALL);
    EXPECT_TRUE(mr);
    EXPECT(close(fd), ==, 0);
    write_and_read_back(&pair, mr->rkey, IOVA, 2 * PAGE);
    EXPECT(remote_compare(pair.near.remote, (uintptr_t)mine + PAGE + 100, 2 * PAGE, SEED, 0), ==, -1);
    EXPECT(mine[PAGE + 99], ==, 0);
    EXPECT(mine[3 * PAGE + 100], ==, 0);
    expect_far_refused(&pair, IBV_WR_RDMA_WRITE, mr->rkey, IOVA - 1, 8);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    munmap(mine, 4 * PAGE);
}

static void bad_files_are_refused(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    int fd = make_file(2 * PAGE), read_only = open("/proc/self/exe", O_RDONLY), pipes[2];
    EXPECT(pipe(pipes), ==, 0);
    const struct {
        uint64_t offset;
        size_t length;
        uint64_t iova;
        int fd, access, error;
    } rows[] = {
        {0, PAGE, 8, fd, ALL, EINVAL},
        {0, 0, 0, fd, ALL, EINVAL},
        {PAGE, 2 * PAGE, 0, fd, ALL, EINVAL},
        {UINT64_MAX - PAGE + 1, 2 * PAGE, 0, fd, ALL, EINVAL},
        {0, PAGE, 0, fd, ALL | IBV_ACCESS_ON_DEMAND, EINVAL},
        {0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE, EINVAL},
        {0, PAGE, 0, -1, ALL, EOPNOTSUPP},
        {0, 0, 0, -1, 0, EOPNOTSUPP},
        {0, PAGE, 0, read_only, ALL, EOPNOTSUPP},
        {0, PAGE, 0, pipes[0], IBV_ACCESS_REMOTE_READ, EOPNOTSUPP},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        errno = 0;
        EXPECT_TRUE(!ibv_reg_dmabuf_mr(near_pd(&pair), rows[i].offset, rows[i].length, rows[i].iova, rows[i].fd,
                                       rows[i].access));
        EXPECT(errno, ==, rows[i].error);
    }
    close(fd), close(read_only), close(pipes[0]), close(pipes[1]);
}

struct unmappable {
    struct ibv_pd *pd;
    int fd, error;
};

/* NVIDIA's driver answers mmap of a GPU's dma-buf with an errno of the kernel's own. A filter of this thread's system
 * calls does so here. */
static void *register_what_can_not_be_mapped(void *argument)
{
    enum { KERNELS_OWN = 524 };
    struct unmappable *of = argument;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)of->fd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | KERNELS_OWN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {COUNT(code), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return NULL;
    errno = 0;
    if (!ibv_reg_dmabuf_mr(of->pd, 0, PAGE, 0, of->fd, IBV_ACCESS_LOCAL_WRITE))
        of->error = errno;
    return of;
}

static void a_dmabuf_that_can_not_be_mapped_is_EOPNOTSUPP(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct unmappable of = {.pd = near_pd(&pair), .fd = make_file(2 * PAGE)};
    pthread_t thread;
    void *filtered;
    EXPECT(pthread_create(&thread, NULL, register_what_can_not_be_mapped, &of), ==, 0);
    EXPECT(pthread_join(thread, &filtered), ==, 0);
    close(of.fd);
    if (!filtered)
        harness_skip("no filters of system calls here");
    EXPECT(of.error, ==, EOPNOTSUPP);
}

/* Memory that its program can load and store, and the kernel can't copy. memfd_secret(2) is our device's memory. */
static int make_secret(size_t length)
{
    enum { SYS_MEMFD_SECRET = 447 };
    int fd = (int)syscall(SYS_MEMFD_SECRET, 0);
    if (fd < 0)
        harness_skip("no memfd_secret here");
    EXPECT(ftruncate(fd, (off_t)length), ==, 0);
    return fd;
}

static bool is_copied_by_the_kernel(const void *memory)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)memory, 1};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

static void expect_registered(const struct pair *pair, void *memory, size_t length, int access, int error)
{
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(near_pd(pair), memory, length, access);
    EXPECT(errno, ==, error);
    EXPECT(!mr, ==, !!error);
    if (mr)
        EXPECT(ibv_dereg_mr(mr), ==, 0);
}

/* Untouched, and touched; the whole, its first page and its last one. The page before it can be copied. */
static void memory_that_only_the_processor_reaches_is_EFAULT(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    int fd = make_secret(2 * PAGE);
    char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_TRUE(memory != MAP_FAILED);
    EXPECT_TRUE(mmap(memory + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    if (is_copied_by_the_kernel(memory + PAGE))
        harness_skip("the kernel copies secret memory here, or refuses process_vm_readv");
    for (unsigned touched = 0; touched < 2; touched++) {
        expect_registered(&pair, memory + PAGE, 2 * PAGE, ALL, EFAULT);
        expect_registered(&pair, memory, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT);
        expect_registered(&pair, memory + PAGE, 8, 0, EFAULT);
        expect_registered(&pair, memory, PAGE, ALL, 0);
        memset(memory + PAGE, 1, 2 * PAGE);
    }
    munmap(memory, 3 * PAGE);
}

/* Memory that the program itself can't read is registered as before: for writing only, or with its file cut off. Of
 * memory that was never touched, registration makes only the first and the last page present. */
static void memory_that_is_not_there_yet_is_registered(const void *row)
{
    enum { PAGES = 64 };
    struct pair pair = pair_open(IBV_QPT_RC);
    unsigned char there[PAGES];
    unsigned count = 0;
    char *fresh = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_TRUE(fresh != MAP_FAILED);
    EXPECT(madvise(fresh, PAGES * PAGE, MADV_NOHUGEPAGE), ==, 0);
    expect_registered(&pair, fresh, PAGES * PAGE, ALL, 0);
    EXPECT(mincore(fresh, PAGES * PAGE, there), ==, 0);
    for (unsigned i = 0; i < PAGES; i++)
        count += there[i] & 1;
    EXPECT_TRUE(count <= 2);
    EXPECT(mprotect(fresh, PAGES * PAGE, PROT_WRITE), ==, 0);
    expect_registered(&pair, fresh, PAGES * PAGE, ALL, 0);
    munmap(fresh, PAGES * PAGE);
    int fd = make_file(PAGE);
    char *behind = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_TRUE(behind != MAP_FAILED);
    close(fd);
    expect_registered(&pair, behind, 2 * PAGE, ALL, 0);
    munmap(behind, 2 * PAGE);
}

/* Long enough for a reference. Both ways of work that would use one, with no retry to spare. */
static void a_dmabuf_that_only_the_processor_reaches_is_a_source(const void *row)
{
    enum { IOVA = 0x7000000, LONG = 512 << 10 };
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.length = LONG;
    struct pair pair = pair_open_as(wishes);
    int fd = make_secret(LONG);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(near_pd(&pair), 0, LONG, IOVA, fd, ALL);
    char *mine = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_TRUE(mr && mine != MAP_FAILED);
    close(fd);
    pair_ping(&pair, &pair.near, &pair.far); /* each knows by then whether references are possible */
    for (unsigned i = 0; i < 4; i++) {
        enum ibv_wr_opcode opcode = i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
        remote_fill(pair.near.remote, (uintptr_t)mine, LONG, SEED + i);
        if (opcode == IBV_WR_SEND)
            end_post_receive(&pair.far, end_receive(&pair.far, i, 0, LONG));
        struct send send = end_send(&pair.near, &pair.far, opcode, i, 0, LONG);
        send.sge[0] = (struct ibv_sge){.addr = IOVA, .length = LONG, .lkey = mr->lkey};
        end_post(&pair.near, send);
        end_expect_sent(&pair.near, i, IBV_WC_SUCCESS);
        if (opcode == IBV_WR_SEND)
            end_expect_received(&pair.far, i, IBV_WC_SUCCESS, LONG);
        EXPECT(remote_compare(pair.far.remote, pair.far.memory, LONG, SEED + i, 0), ==, -1);
    }
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    munmap(mine, LONG);
}

static void the_null_region_swallows_what_is_received(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_mr *null = ibv_alloc_null_mr(near_pd(&pair));
    EXPECT_TRUE(null);
    remote_fill(pair.far.remote, pair.far.memory, 3 * PAGE, SEED);
    struct receive receive = end_receive(&pair.near, 1, 0, PAGE);
    receive.wr.num_sge = 3;
    receive.sge[1] = (struct ibv_sge){.addr = 0x123456789, .length = PAGE, .lkey = null->lkey};
    receive.sge[2] = end_sge(&pair.near, PAGE, PAGE);
    end_post_receive(&pair.near, receive);
    end_post(&pair.far, end_send(&pair.far, &pair.near, IBV_WR_SEND, 2, 0, 3 * PAGE));
    end_expect_sent(&pair.far, 2, IBV_WC_SUCCESS);
    end_expect_received(&pair.near, 1, IBV_WC_SUCCESS, 3 * PAGE);
    EXPECT(remote_compare(pair.near.remote, pair.near.memory, PAGE, SEED, 0), ==, -1);
    EXPECT(remote_compare(pair.near.remote, pair.near.memory + PAGE, PAGE, SEED, 2 * PAGE), ==, -1);
    EXPECT(ibv_dereg_mr(null), ==, 0);
}

static void the_null_region_sends_zeros(const void *row)
{
    const uint32_t *length = row;
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_mr *null = ibv_alloc_null_mr(near_pd(&pair));
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, 1, 0, *length);
    send.sge[0] = (struct ibv_sge){.addr = 8, .length = *length, .lkey = null->lkey};
    end_post(&pair.near, send); /* what is read into it is lost */
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    remote_set(pair.far.remote, pair.far.memory, *length, 0xff);
    send.wr.opcode = IBV_WR_RDMA_WRITE;
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    for (uint32_t at = 0; at < *length; at += 8)
        EXPECT(remote_peek(pair.far.remote, pair.far.memory + at), ==, 0);
    EXPECT(ibv_dereg_mr(null), ==, 0);
}

static void the_null_region_is_no_remote_memory(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_mr *null = ibv_alloc_null_mr(near_pd(&pair));
    struct ibv_mw_bind bind = {.bind_info = {.mr = null, .length = 8, .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
    struct ibv_mw *mw = ibv_alloc_mw(near_pd(&pair), IBV_MW_TYPE_1);
    EXPECT(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(ibv_bind_mw(near_qp(&pair), mw, &bind), ==, EINVAL);
    expect_far_refused(&pair, IBV_WR_RDMA_READ, null->lkey, 0, 8);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dereg_mr(null), ==, 0);
}

static void what_cannot_be_written_is_not_registered_for_writing(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    char *pages = mmap(mmap_hint(), 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(mprotect(pages + PAGE, PAGE, PROT_READ), ==, 0);
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), pages, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE));
    EXPECT(errno, ==, EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(near_pd(&pair), pages, 3 * PAGE, IBV_ACCESS_REMOTE_READ);
    EXPECT_TRUE(mr);
    EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), ==,
           IBV_REREG_MR_ERR_CMD);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(mprotect(pages + PAGE, PAGE, PROT_NONE), ==, 0);
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), pages, 3 * PAGE, IBV_ACCESS_REMOTE_READ));
    EXPECT(errno, ==, EFAULT);
    EXPECT(munmap(pages + PAGE, PAGE), ==, 0);
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), pages, 3 * PAGE, IBV_ACCESS_REMOTE_READ));
    EXPECT(errno, ==, EFAULT);
    mr = ibv_reg_mr(near_pd(&pair), pages + PAGE - 1, 1, ALL);
    EXPECT_TRUE(mr);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    munmap(pages, 3 * PAGE);
}

static void the_whole_address_space_is_a_region(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_mr *mr = ibv_reg_mr(near_pd(&pair), NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
    EXPECT_TRUE(mr);
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    near_in_step(&pair);
    write_and_read_back(&pair, mr->rkey, (uintptr_t)pages + 8, PAGE);
    EXPECT(remote_compare(pair.near.remote, (uintptr_t)pages + 8, PAGE, SEED, 0), ==, -1);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    munmap(pages, 2 * PAGE);
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), NULL, SIZE_MAX, ALL));
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB));
    EXPECT(errno, ==, EINVAL);
}

/* The advice of the manual page, each error by its name there. */
static void advice_is_taken_for_what_pages_on_demand(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char resident[4];
    EXPECT(mprotect(pages + 3 * PAGE, PAGE, PROT_NONE), ==, 0); /* a hole might be filled by another thread */
    struct ibv_mr *mr = ibv_reg_mr(near_pd(&pair), pages, 4 * PAGE, ALL | IBV_ACCESS_ON_DEMAND);
    struct ibv_mr *read_only = ibv_reg_mr(near_pd(&pair), pages, PAGE, IBV_ACCESS_ON_DEMAND);
    struct ibv_pd *other = ibv_alloc_pd(near_context(&pair));
    struct ibv_mw *mw = ibv_alloc_mw(near_pd(&pair), IBV_MW_TYPE_1);
    EXPECT_TRUE(mr && read_only);
    uint64_t at = (uintptr_t)pages;
    const struct {
        struct ibv_pd *pd;
        int advice;
        uint32_t flags;
        struct ibv_sge sge;
        int error;
    } rows[] = {
        {near_pd(&pair), 1, 1, {at + 100, PAGE, mr->lkey}, 0},
        {near_pd(&pair), 0, 1, {at, 3 * PAGE, mr->lkey}, 0},
        {near_pd(&pair), 0, 0, {at, 3 * PAGE, mr->lkey}, 0},
        {near_pd(&pair), 2, 1, {at, 3 * PAGE, mr->lkey}, 0},
        {near_pd(&pair), 0, 1, {at, 4 * PAGE, mr->lkey}, EFAULT},
        {near_pd(&pair), 0, 0, {at, 4 * PAGE, mr->lkey}, EFAULT},
        {near_pd(&pair), 0, 1, {at, 5 * PAGE, mr->lkey}, EFAULT},
        {near_pd(&pair), 0, 1, {at, PAGE, 0x7fffff00}, EFAULT},
        {near_pd(&pair), 0, 1, {at, PAGE, mr->lkey ^ 1}, ENOENT},
        {near_pd(&pair), 0, 1, {at, PAGE, mw->rkey}, EINVAL},
        {near_pd(&pair), 0, 1, {pair.near.memory, 8, pair.near.lkey}, EINVAL},
        {near_pd(&pair), 0, 2, {at, PAGE, mr->lkey}, EINVAL},
        {near_pd(&pair), 3, 1, {at, PAGE, mr->lkey}, ENOTSUP},
        {near_pd(&pair), 1, 1, {at, PAGE, read_only->lkey}, EPERM},
        {other, 0, 1, {at, PAGE, mr->lkey}, EPERM},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ibv_sge sge = rows[i].sge;
        EXPECT(ibv_advise_mr(rows[i].pd, (enum ibv_advise_mr_advice)rows[i].advice, rows[i].flags, &sge, 1), ==,
               rows[i].error);
        if (i == 0) {
            EXPECT(mincore(pages, 3 * PAGE, resident), ==, 0);
            EXPECT_TRUE((resident[0] & 1) && (resident[1] & 1) && !(resident[2] & 1));
        }
    }
    EXPECT(ibv_advise_mr(near_pd(&pair), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), ==, EINVAL);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dealloc_pd(other), ==, 0);
    EXPECT(ibv_dereg_mr(read_only), ==, 0);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    munmap(pages, 3 * PAGE);
}

static void flags_that_ask_for_nothing_are_accepted(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    void *memory = (void *)(uintptr_t)pair.near.memory;
    struct ibv_mr *mr =
        ibv_reg_mr(near_pd(&pair), memory, PAGE, ALL | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB | (1 << 25));
    EXPECT_TRUE(mr);
    write_and_read_back(&pair, mr->rkey, pair.near.memory, PAGE);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT_TRUE(!ibv_reg_mr(near_pd(&pair), memory, PAGE, ALL | 1 << 10));
    EXPECT(errno, ==, EINVAL);
}

static void all(void)
{
    static const uint32_t lengths[] = {8, 32768};
    CASE(device_memory_is_written_and_read);
    CASE(device_memory_takes_atomics);
    CASE(device_memory_is_a_source_and_a_sink_of_messages);
    CASE(device_memory_in_use_is_busy);
    CASE(bad_uses_of_device_memory_are_refused);
    CASE(the_device_memory_is_as_large_as_the_device_says);
    CASE(a_file_is_a_region);
    CASE(bad_files_are_refused);
    CASE(a_dmabuf_that_can_not_be_mapped_is_EOPNOTSUPP);
    CASE(memory_that_only_the_processor_reaches_is_EFAULT);
    CASE(memory_that_is_not_there_yet_is_registered);
    CASE(a_dmabuf_that_only_the_processor_reaches_is_a_source);
    CASE(the_null_region_swallows_what_is_received);
    harness_run("the_null_region_sends_zeros (inside the ring)", the_null_region_sends_zeros, &lengths[0]);
    harness_run("the_null_region_sends_zeros (by reference)", the_null_region_sends_zeros, &lengths[1]);
    CASE(the_null_region_is_no_remote_memory);
    CASE(what_cannot_be_written_is_not_registered_for_writing);
    CASE(the_whole_address_space_is_a_region);
    CASE(advice_is_taken_for_what_pages_on_demand);
    CASE(flags_that_ask_for_nothing_are_accepted);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
