/* Functions of releases after 44, called as a program that was built against them calls them: by name and version node,
 * with structures laid out here once more, by value. */
#include "later.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ };
enum { MASK_IOVA = 1, MASK_ADDR = 2, MASK_FD = 4, MASK_FD_OFFSET = 8, MASK_DMAH = 16, MASK_BUF = 32 };

struct buf;
struct dmah {
    struct ibv_context *context;
};
struct dmah_attr {
    uint32_t comp_mask, cpu_id;
    uint8_t ph, tph_mem_type;
};
struct mr_attr {
    size_t length;
    int access;
    uint64_t comp_mask, iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    struct dmah *dmah;
    struct buf *buf;
};
#if __SIZEOF_POINTER__ == 8
_Static_assert(sizeof(struct mr_attr) == 72, "ibv_mr_init_attr of release 64");
#endif

static struct {
    struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct mr_attr *);
    struct dmah *(*alloc_dmah)(struct ibv_context *, struct dmah_attr *);
    int (*dealloc_dmah)(struct dmah *);
    int (*query_port_speed)(struct ibv_context *, uint32_t port, uint64_t *speed);
    void *(*alloc_buf)(struct ibv_pd *, size_t, struct buf **);
    void (*free_buf)(struct buf *);
    struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *, struct buf *, void *, size_t, int);
    int (*export_buf_dmabuf_fd)(struct buf *);
    const char *(*wr_opcode_str)(unsigned);
} later;

static int open_device(void **unused)
{
    static const struct later_function functions[] = {
        {&later.reg_mr_ex, "ibv_reg_mr_ex", "IBVERBS_1.15"},
        {&later.alloc_dmah, "ibv_alloc_dmah", "IBVERBS_1.15"},
        {&later.dealloc_dmah, "ibv_dealloc_dmah", "IBVERBS_1.15"},
        {&later.query_port_speed, "ibv_query_port_speed", "IBVERBS_1.16"},
        {&later.alloc_buf, "ibv_alloc_buf", "IBVERBS_1.17"},
        {&later.free_buf, "ibv_free_buf", "IBVERBS_1.17"},
        {&later.reg_buf_mr, "ibv_reg_buf_mr", "IBVERBS_1.17"},
        {&later.export_buf_dmabuf_fd, "ibv_export_buf_dmabuf_fd", "IBVERBS_1.18"},
        {&later.wr_opcode_str, "ibv_wr_opcode_str", "IBVERBS_PRIVATE_34"},
        {NULL, NULL, NULL},
    };
    return later_open(functions);
}

static void a_buffer_begins_on_a_page_and_can_be_registered_in_part(void **unused)
{
    struct buf *buf;
    char *memory = later.alloc_buf(pd, PAGE + 100, &buf);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % PAGE, 0);
    memset(memory, 'x', PAGE + 100);
    struct ibv_mr *mr = later.reg_buf_mr(pd, buf, memory + 10, PAGE, ACCESS);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory + 10);
    assert_int_equal(mr->length, PAGE);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    later.free_buf(buf);
}

static void a_region_of_a_buffer_stays_within_it_and_in_its_domain(void **unused)
{
    struct buf *buf;
    struct ibv_pd *other = ibv_alloc_pd(context);
    char *memory = later.alloc_buf(pd, PAGE, &buf);
    refused(later.reg_buf_mr(other, buf, memory, PAGE, ACCESS), EINVAL);
    refused(later.reg_buf_mr(pd, buf, memory, PAGE + 1, ACCESS), EINVAL);
    refused(later.reg_buf_mr(pd, buf, memory + PAGE, 1, ACCESS), EINVAL);
    refused(later.reg_buf_mr(pd, buf, memory - 1, 1, ACCESS), EINVAL);
    refused(later.reg_buf_mr(pd, buf, memory + 1, SIZE_MAX, ACCESS), EINVAL);
    errno = 0;
    assert_int_equal(later.export_buf_dmabuf_fd(buf), -1);
    assert_int_equal(errno, ENODATA);
    later.free_buf(buf);
    assert_int_equal(ibv_dealloc_pd(other), 0);
}

static void reg_mr_ex_registers_memory_under_another_address(void **unused)
{
    char *memory = aligned_alloc(PAGE, PAGE);
    struct mr_attr attr = {
        .length = PAGE, .access = ACCESS, .comp_mask = MASK_ADDR | MASK_IOVA, .addr = memory, .iova = 0x10000};
    struct ibv_mr *mr = later.reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory);
    assert_ptr_equal(mr->context, context);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(memory);
}

static void reg_mr_ex_registers_a_file(void **unused)
{
    int fd = memfd_create("later", 0);
    assert_int_equal(ftruncate(fd, 2L * PAGE), 0);
    struct mr_attr attr = {.length = PAGE,
                           .access = ACCESS,
                           .comp_mask = MASK_FD | MASK_FD_OFFSET | MASK_IOVA,
                           .fd = fd,
                           .fd_offset = PAGE,
                           .iova = PAGE};
    struct ibv_mr *mr = later.reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    close(fd);
}

static void reg_mr_ex_refuses_what_names_no_memory_or_two(void **unused)
{
    static char memory[PAGE];
    static const struct {
        uint64_t mask;
        int error;
    } cases[] = {
        {0, EINVAL},
        {MASK_IOVA, EINVAL},
        {MASK_ADDR | MASK_FD_OFFSET, EINVAL},
        {MASK_ADDR | MASK_FD | MASK_FD_OFFSET | MASK_IOVA, EINVAL},
        {MASK_FD | MASK_FD_OFFSET, EINVAL},
        {MASK_FD | MASK_IOVA, EINVAL},
        {MASK_ADDR | 1u << 20, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_attr attr = {.length = PAGE, .access = ACCESS, .comp_mask = cases[i].mask, .addr = memory, .fd = -1};
        refused(later.reg_mr_ex(pd, &attr), cases[i].error);
    }
}

/* The attributes of release 59 end before `buf`: the bytes there are not looked at. */
static void a_program_of_release_59_has_a_shorter_structure(void **unused)
{
    static char memory[PAGE];
    struct mr_attr attr = {.length = PAGE,
                           .access = ACCESS,
                           .comp_mask = MASK_ADDR,
                           .addr = memory,
                           .buf = (struct buf *)1,
                           .dmah = (struct dmah *)1};
    struct ibv_mr *mr = later.reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void a_dma_handle_is_busy_while_a_region_has_it(void **unused)
{
    static char memory[PAGE];
    struct dmah_attr hints = {.comp_mask = 2, .ph = 1};
    struct dmah *dmah = later.alloc_dmah(context, &hints);
    assert_non_null(dmah);
    assert_ptr_equal(dmah->context, context);
    struct mr_attr attr = {
        .length = PAGE, .access = ACCESS, .comp_mask = MASK_ADDR | MASK_DMAH, .addr = memory, .dmah = dmah};
    struct ibv_mr *mr = later.reg_mr_ex(pd, &attr);
    assert_non_null(mr);
    attr.access |= IBV_ACCESS_ON_DEMAND;
    refused(later.reg_mr_ex(pd, &attr), EOPNOTSUPP);
    assert_int_equal(later.dealloc_dmah(dmah), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(later.dealloc_dmah(dmah), 0);
}

static void a_dma_handle_needs_hints_that_fit_together(void **unused)
{
    static const struct {
        struct dmah_attr attr;
        int error;
    } cases[] = {
        {{.comp_mask = 0}, EINVAL},
        {{.comp_mask = 2, .ph = 4}, EINVAL},
        {{.comp_mask = 3, .ph = 1}, EINVAL},
        {{.comp_mask = 7, .ph = 1, .tph_mem_type = 2}, EINVAL},
        {{.comp_mask = 7, .ph = 3, .cpu_id = 0xffff}, EINVAL},
        {{.comp_mask = 10, .ph = 1}, EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dmah_attr attr = cases[i].attr;
        refused(later.alloc_dmah(context, &attr), cases[i].error);
    }
    struct dmah_attr whole = {.comp_mask = 7, .ph = 3, .tph_mem_type = 1};
    struct dmah *dmah = later.alloc_dmah(context, &whole);
    assert_non_null(dmah);
    assert_int_equal(later.dealloc_dmah(dmah), 0);
}

static void a_dma_handle_that_is_left_goes_with_its_device(void **unused)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *second = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    struct dmah_attr hints = {.comp_mask = 2, .ph = 1};
    assert_non_null(later.alloc_dmah(second, &hints)); /* LeakSanitizer sees when it stays */
    assert_int_equal(ibv_close_device(second), 0);
}

static void the_speed_of_a_port_is_that_of_its_width_and_lanes(void **unused)
{
    uint64_t speed = 0;
    assert_int_equal(later.query_port_speed(context, 1, &speed), 0);
    assert_int_equal(speed, 1000); /* 4X EDR: 100 Gbit/s in units of 100 Mbit/s */
    assert_int_equal(later.query_port_speed(context, 2, &speed), EINVAL);
    assert_int_equal(errno, EINVAL);
}

static void work_requests_have_names(void **unused)
{
    assert_string_equal(later.wr_opcode_str(IBV_WR_SEND), "send");
    assert_string_equal(later.wr_opcode_str(14), "flush");
    assert_string_equal(later.wr_opcode_str(15), "atomic-write");
    assert_string_equal(later.wr_opcode_str(12), "unknown");
    assert_string_equal(later.wr_opcode_str(99), "unknown");
}

static void a_parent_domain_may_allow_unprotected_memory(void **unused)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .comp_mask = 1 << 2};
    struct ibv_pd *parent = ibv_alloc_parent_domain(context, &attr);
    assert_non_null(parent);
    struct buf *buf;
    void *memory = later.alloc_buf(parent, PAGE, &buf);
    struct ibv_mr *mr = later.reg_buf_mr(parent, buf, memory, PAGE, ACCESS);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    later.free_buf(buf);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_begins_on_a_page_and_can_be_registered_in_part),
        cmocka_unit_test(a_region_of_a_buffer_stays_within_it_and_in_its_domain),
        cmocka_unit_test(reg_mr_ex_registers_memory_under_another_address),
        cmocka_unit_test(reg_mr_ex_registers_a_file),
        cmocka_unit_test(reg_mr_ex_refuses_what_names_no_memory_or_two),
        cmocka_unit_test(a_program_of_release_59_has_a_shorter_structure),
        cmocka_unit_test(a_dma_handle_is_busy_while_a_region_has_it),
        cmocka_unit_test(a_dma_handle_needs_hints_that_fit_together),
        cmocka_unit_test(a_dma_handle_that_is_left_goes_with_its_device),
        cmocka_unit_test(the_speed_of_a_port_is_that_of_its_width_and_lanes),
        cmocka_unit_test(work_requests_have_names),
        cmocka_unit_test(a_parent_domain_may_allow_unprotected_memory),
    };
    return cmocka_run_group_tests(tests, open_device, later_close);
}
