/* Layers around all calls (calls/calls.h) come and go, around objects that exist and threads that are inside of calls.
 * The test has all of the library inside, and a queue pair that is connected to itself. */
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/testing/notes.h"
#include "abi/ucma/ucma.h"

enum { MEMORY = 4096, PIECE = 8, DEPTH = 16 };

/* MUST works in all threads; cmocka's assertions are for the first one only. */
#define MUST(condition) ((condition) ? (void)0 : must(#condition, __LINE__))

static void must(const char *condition, int line)
{
    print_error("line %d: not %s: %s\n", line, condition, strerror(errno));
    abort();
}

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp;
    char memory[MEMORY];
};

static struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    MUST(list && list[0]);
    struct ibv_context *context = ibv_open_device(list[0]);
    MUST(context);
    ibv_free_device_list(list);
    return context;
}

static void make_qp(struct end *end)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(end->cq),
        .recv_cq = ibv_cq_ex_to_cq(end->cq),
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = end->pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
    };
    end->qp = ibv_create_qp_ex(end->context, &attr);
    MUST(end->qp);
}

static void connect_to_itself(struct end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = end->qp->qp_num,
                               .min_rnr_timer = 1,
                               .ah_attr = {.is_global = 1, .port_num = 1},
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7};
    MUST(!ibv_query_gid(end->context, 1, 0, &attr.ah_attr.grh.dgid));
    MUST(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct end *begin(void)
{
    struct end *end = calloc(1, sizeof *end);
    MUST(end);
    end->context = open_first();
    end->pd = ibv_alloc_pd(end->context);
    MUST(end->pd);
    end->mr = ibv_reg_mr(end->pd, end->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    MUST(end->mr);
    end->cq =
        ibv_create_cq_ex(end->context, &(struct ibv_cq_init_attr_ex){.cqe = DEPTH, .wc_flags = IBV_WC_EX_WITH_QP_NUM});
    MUST(end->cq);
    make_qp(end);
    connect_to_itself(end);
    return end;
}

static void finish(struct end *end)
{
    MUST(!ibv_destroy_qp(end->qp));
    MUST(!ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)));
    MUST(!ibv_dereg_mr(end->mr));
    MUST(!ibv_dealloc_pd(end->pd));
    MUST(!ibv_close_device(end->context));
    free(end);
}

/* A WRITE into its own memory, from post to completion. */
static void write_by_list(struct end *end)
{
    struct ibv_sge sge = {.addr = (uintptr_t)end->memory, .length = PIECE, .lkey = end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)end->memory + MEMORY / 2, .rkey = end->mr->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int found;
    MUST(!ibv_post_send(end->qp, &wr, &bad));
    while ((found = ibv_poll_cq(ibv_cq_ex_to_cq(end->cq), 1, &wc)) == 0) {
    }
    MUST(found == 1 && wc.status == IBV_WC_SUCCESS);
}

static void begin_batch(struct end *end)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, end->mr->rkey, (uintptr_t)end->memory + MEMORY / 2);
}

static void end_batch(struct end *end)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
    ibv_wr_set_sge(qp, end->mr->lkey, (uintptr_t)end->memory, PIECE);
    MUST(!ibv_wr_complete(qp));
}

static void begin_poll(struct end *end)
{
    int error;
    while ((error = ibv_start_poll(end->cq, &(struct ibv_poll_cq_attr){0})) == ENOENT) {
    }
    MUST(!error);
}

static void end_poll(struct end *end)
{
    MUST(end->cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(end->cq) == IBV_WC_RDMA_WRITE);
    MUST(ibv_wc_read_qp_num(end->cq) == end->qp->qp_num);
    ibv_end_poll(end->cq);
}

static void write_by_builders(struct end *end)
{
    begin_batch(end);
    end_batch(end);
    begin_poll(end);
    end_poll(end);
}

/* -- what was noted */

static bool is_note(const struct note *note, const struct calls_layer *layer, const char *title, uint32_t number)
{
    return note->layer == layer->name && !strcmp(note->title, title) && note->subject.number == number;
}

static unsigned count_notes(const struct calls_layer *layer, const char *title, uint32_t number)
{
    unsigned count = 0;
    for (unsigned at = 0; at < notes_count(); at++)
        count += is_note(&notes[at], layer, title, number) ? notes[at].times : 0;
    return count;
}

struct expected {
    const char *title, *kind;
    uint32_t number;
};

/* Exactly these calls, in this order; a call that is repeated at once counts once. */
static void expect_notes(const struct calls_layer *layer, const struct expected *expected, size_t count)
{
    size_t at = 0;
    for (unsigned i = 0; i < notes_count(); i++) {
        const struct note *note = &notes[i];
        if (at && is_note(note, layer, expected[at - 1].title, expected[at - 1].number))
            continue;
        assert_in_range(at, 0, count - 1);
        assert_string_equal(note->title, expected[at].title);
        assert_string_equal(note->subject.kind ? note->subject.kind : "-", expected[at].kind);
        assert_int_equal(note->subject.number, expected[at].number);
        at++;
    }
    assert_int_equal(at, count);
}

#define EXPECT_NOTES(layer, ...)                                                                                       \
    expect_notes(layer, (const struct expected[]){__VA_ARGS__},                                                        \
                 sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

/* The functions that the program would call. */
struct members {
    struct ibv_context_ops ops;
    struct verbs_context context;
    struct ibv_qp_ex qp;
    struct ibv_cq_ex cq;
};

static struct members members_of(const struct end *end)
{
    const struct verbs_context *context =
        (const struct verbs_context *)((const char *)end->context - offsetof(struct verbs_context, context));
    return (struct members){end->context->ops, *context, *ibv_qp_to_qp_ex(end->qp), *end->cq};
}

static void expect_own(const struct members *before, const struct members *after)
{
    assert_memory_equal(&before->ops, &after->ops, sizeof before->ops);
    assert_memory_equal(&before->context, &after->context, offsetof(struct verbs_context, context));
    assert_memory_equal(&before->qp.wr_atomic_cmp_swp, &after->qp.wr_atomic_cmp_swp,
                        sizeof before->qp - offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp));
    assert_memory_equal(&before->cq.start_poll, &after->cq.start_poll,
                        sizeof before->cq - offsetof(struct ibv_cq_ex, start_poll));
}

static int forget_notes(void **state)
{
    notes_clear();
    return 0;
}

static int take_all_off(void **state)
{
    calls_take_off(&notes_low);
    calls_take_off(&notes_middle);
    calls_take_off(&notes_high);
    return 0;
}

/* -- the cases */

static void a_layer_sees_every_call_from_the_first(void **state)
{
    calls_put_around(&notes_low);
    struct end *end = begin();
    uint32_t context = (uint32_t)end->context->cmd_fd, pd = end->pd->handle, mr = end->mr->handle, cq = end->cq->handle,
             qp = end->qp->qp_num;
    write_by_list(end);
    write_by_builders(end);
    finish(end);
    EXPECT_NOTES(&notes_low, {"ibv_get_device_list", "-", 0}, {"ibv_open_device", "device", 0},
                 {"ibv_free_device_list", "-", 0}, {"ibv_alloc_pd", "context", context}, {"ibv_reg_mr", "pd", pd},
                 {"ibv_create_cq_ex", "context", context}, {"ibv_create_qp_ex", "context", context},
                 {"ibv_query_gid", "context", context}, {"ibv_modify_qp", "qp", qp}, {"ibv_post_send", "qp", qp},
                 {"ibv_poll_cq", "cq", cq}, {"ibv_qp_to_qp_ex", "qp", qp}, {"ibv_wr_start", "qp", qp},
                 {"ibv_wr_rdma_write", "qp", qp}, {"ibv_qp_to_qp_ex", "qp", qp}, {"ibv_wr_set_sge", "qp", qp},
                 {"ibv_wr_complete", "qp", qp}, {"ibv_start_poll", "cq", cq}, {"ibv_wc_read_opcode", "cq", cq},
                 {"ibv_wc_read_qp_num", "cq", cq}, {"ibv_end_poll", "cq", cq}, {"ibv_destroy_qp", "qp", qp},
                 {"ibv_destroy_cq", "cq", cq}, {"ibv_dereg_mr", "mr", mr}, {"ibv_dealloc_pd", "pd", pd},
                 {"ibv_close_device", "context", context});
}

static void a_layer_joins_objects_that_exist_and_leaves_them_as_they_were(void **state)
{
    struct end *end = begin();
    struct members before = members_of(end);
    uint32_t qp = end->qp->qp_num;
    calls_put_around(&notes_low);
    write_by_list(end);
    write_by_builders(end);
    assert_int_equal(count_notes(&notes_low, "ibv_post_send", qp), 1);
    assert_int_equal(count_notes(&notes_low, "ibv_wr_complete", qp), 1);
    assert_int_equal(count_notes(&notes_low, "ibv_wc_read_opcode", end->cq->handle), 1);
    calls_take_off(&notes_low);
    struct members after = members_of(end);
    expect_own(&before, &after);
    notes_clear();
    write_by_list(end);
    write_by_builders(end);
    finish(end);
    assert_int_equal(notes_count(), 0);
}

static void a_layer_comes_and_goes_within_a_batch(void **state)
{
    struct end *end = begin();
    uint32_t qp = end->qp->qp_num;
    begin_batch(end);
    calls_put_around(&notes_low);
    end_batch(end);
    assert_int_equal(count_notes(&notes_low, "ibv_wr_start", qp), 0);
    assert_int_equal(count_notes(&notes_low, "ibv_wr_complete", qp), 1);
    begin_poll(end);
    calls_take_off(&notes_low);
    end_poll(end);
    assert_int_not_equal(count_notes(&notes_low, "ibv_start_poll", end->cq->handle), 0);
    assert_int_equal(count_notes(&notes_low, "ibv_end_poll", end->cq->handle), 0);
    finish(end);
}

static void expect_order(const struct calls_layer *const *layers, unsigned count, const struct end *end)
{
    struct ibv_device_attr attr;
    notes_clear();
    assert_int_equal(ibv_query_device(end->context, &attr), 0);
    ibv_wr_start(ibv_qp_to_qp_ex(end->qp));
    ibv_wr_abort(ibv_qp_to_qp_ex(end->qp));
    const char *titles[] = {"ibv_query_device", "ibv_qp_to_qp_ex", "ibv_wr_start", "ibv_qp_to_qp_ex", "ibv_wr_abort"};
    enum { TITLES = sizeof titles / sizeof *titles };
    assert_int_equal(notes_count(), count * TITLES);
    for (unsigned at = 0; at < notes_count(); at++) {
        assert_string_equal(notes[at].title, titles[at / count]);
        assert_string_equal(notes[at].layer, layers[at % count]->name);
    }
}

#define EXPECT_ORDER(end, ...)                                                                                         \
    expect_order((const struct calls_layer *const[]){__VA_ARGS__},                                                     \
                 sizeof((const struct calls_layer *const[]){__VA_ARGS__}) / sizeof(struct calls_layer *), end)

static void layers_lie_by_their_places_whichever_comes_and_goes_first(void **state)
{
    struct end *end = begin();
    struct members before = members_of(end);
    calls_put_around(&notes_high);
    calls_put_around(&notes_low);
    EXPECT_ORDER(end, &notes_high, &notes_low);
    calls_put_around(&notes_middle);
    EXPECT_ORDER(end, &notes_high, &notes_middle, &notes_low);
    calls_take_off(&notes_low);
    EXPECT_ORDER(end, &notes_high, &notes_middle);
    calls_put_around(&notes_low);
    calls_take_off(&notes_middle);
    EXPECT_ORDER(end, &notes_high, &notes_low);
    calls_take_off(&notes_high);
    EXPECT_ORDER(end, &notes_low);
    calls_put_around(&notes_low);
    EXPECT_ORDER(end, &notes_low);
    calls_take_off(&notes_low);
    calls_take_off(&notes_low);
    struct members after = members_of(end);
    expect_own(&before, &after);
    finish(end);
}

/* -- layers that want but some calls */

static struct ibv_mr *refuse_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    errno = EMFILE;
    return NULL;
}

static int refuse_query(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return EPERM;
}

static int refuse_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    *bad = wr;
    return errno = ENOBUFS;
}

static struct calls_layer slow = {
    .name = "slow", .place = 1, .calls = {.ibv_reg_mr = refuse_mr, .ibv_query_device = refuse_query}};
static struct calls_layer fast = {.name = "fast", .place = 2, .calls = {.ibv_post_send = refuse_post}};

static void what_no_layer_wants_stays_as_it_is(void **state)
{
    struct end *end = begin();
    struct members before = members_of(end);
    calls_put_around(&slow);
    struct members after = members_of(end);
    expect_own(&before, &after);
    write_by_list(end);
    calls_put_around(&fast);
    assert_ptr_not_equal(end->context->ops.post_send, before.ops.post_send);
    end->context->ops.post_send = before.ops.post_send;
    after = members_of(end);
    expect_own(&before, &after);
    calls_take_off(&fast);
    calls_take_off(&slow);
    finish(end);
}

static void a_layer_refuses_and_errno_agrees(void **state)
{
    struct end *end = begin();
    struct ibv_device_attr attr;
    struct ibv_send_wr wr = {0}, *bad = NULL;
    calls_put_around(&slow);
    calls_put_around(&fast);
    errno = 0;
    assert_null(ibv_reg_mr(end->pd, end->memory, MEMORY, 0));
    assert_int_equal(errno, EMFILE);
    assert_int_equal(ibv_query_device(end->context, &attr), EPERM);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ibv_post_send(end->qp, &wr, &bad), ENOBUFS);
    assert_ptr_equal(bad, &wr);
    calls_take_off(&slow);
    calls_take_off(&fast);
    errno = 0;
    assert_int_equal(ibv_query_device(end->context, &attr), 0);
    assert_int_equal(errno, 0);
    finish(end);
}

static int own_poll(struct ibv_cq *cq, int count, struct ibv_wc *list)
{
    return -1;
}

static void a_member_that_the_program_replaced_stays(void **state)
{
    struct end *end = begin();
    int (*replaced)(struct ibv_cq *, int, struct ibv_wc *) = end->context->ops.poll_cq;
    end->context->ops.poll_cq = own_poll;
    calls_put_around(&notes_low);
    assert_ptr_equal(end->context->ops.poll_cq, own_poll);
    calls_take_off(&notes_low);
    assert_ptr_equal(end->context->ops.poll_cq, own_poll);
    end->context->ops.poll_cq = replaced;
    finish(end);
}

static void a_pointer_that_the_program_kept_goes_on_working(void **state)
{
    struct end *end = begin();
    struct ibv_wc wc;
    calls_put_around(&notes_low);
    int (*kept)(struct ibv_cq *, int, struct ibv_wc *) = end->context->ops.poll_cq;
    calls_take_off(&notes_low);
    assert_ptr_not_equal(kept, end->context->ops.poll_cq);
    assert_int_equal(kept(ibv_cq_ex_to_cq(end->cq), 1, &wc), 0);
    finish(end);
}

/* IBV_WC_EX_WITH_SRC_QP was not asked for: the function for such CQs is reached, which says so. */
static void a_reader_finds_the_way_of_its_queue(void **state)
{
    struct end *end = begin();
    calls_put_around(&notes_low);
    begin_batch(end);
    end_batch(end);
    begin_poll(end);
    assert_int_equal(ibv_wc_read_src_qp(end->cq), 0);
    end_poll(end);
    assert_int_equal(count_notes(&notes_low, "ibv_wc_read_src_qp", end->cq->handle), 1);
    calls_take_off(&notes_low);
    finish(end);
}

static void other_objects_calls_pass_too(void **state)
{
    struct end *end = begin();
    struct ibv_dm *dm = ibv_alloc_dm(end->context, &(struct ibv_alloc_dm_attr){.length = MEMORY});
    char piece[PIECE] = {0};
    struct ibv_port_attr port;
    MUST(dm);
    calls_put_around(&notes_low);
    assert_int_equal(ibv_memcpy_to_dm(dm, 0, piece, sizeof piece), 0);
    assert_int_equal(ibv_memcpy_from_dm(piece, dm, 0, sizeof piece), 0);
    assert_int_equal(ibv_query_port(end->context, 1, &port), 0);
    uint32_t number = *newer_dm_handle(dm), context = (uint32_t)end->context->cmd_fd;
    EXPECT_NOTES(&notes_low, {"ibv_memcpy_to_dm", "dm", number}, {"ibv_memcpy_from_dm", "dm", number},
                 {"ibv_query_port", "context", context});
    calls_take_off(&notes_low);
    assert_int_equal(ibv_free_dm(dm), 0);
    finish(end);
}

static void write_command(int fd, enum ucma_command_number command, const void *bytes, size_t length, size_t room)
{
    uint8_t whole[sizeof(struct ucma_header) + MEMORY];
    struct ucma_header header = {command, (uint16_t)length, (uint16_t)room};
    struct event_channel *channel = event_channel_find(fd);
    MUST(channel);
    memcpy(whole, &header, sizeof header);
    memcpy(whole + sizeof header, bytes, length);
    assert_int_equal(ucma_write(channel, fd, whole, sizeof header + length), 0);
    event_channel_put(channel);
}

static void commands_of_librdmacm_pass_with_their_identifiers(void **state)
{
    struct ibv_context *context = open_first();
    int fd = event_channel_open(0);
    struct ucma_id id = {0};
    struct ucma_reported reported;
    MUST(fd >= 0);
    enum { TCP = 0x106, RC = 2, REUSE = 1 };
    uint32_t one = 1;
    struct ucma_create_id create = {.response = (uintptr_t)&id, .space = TCP, .qp_type = RC};
    write_command(fd, UCMA_CREATE_ID, &create, sizeof create, sizeof id);
    calls_put_around(&notes_low);
    write_command(fd, UCMA_CREATE_ID, &create, sizeof create, sizeof id);
    write_command(fd, UCMA_SET_OPTION, &(struct ucma_set_option){(uintptr_t)&one, id.id, 0, REUSE, sizeof one},
                  sizeof(struct ucma_set_option), 0);
    write_command(fd, UCMA_DESTROY_ID, &(struct ucma_named){(uintptr_t)&reported, id.id, 0}, sizeof(struct ucma_named),
                  sizeof reported);
    EXPECT_NOTES(&notes_low, {"rdma_create_id", "identifier", 0}, {"rdma_set_option", "identifier", id.id},
                 {"rdma_destroy_id", "identifier", id.id});
    calls_take_off(&notes_low);
    struct event_channel *channel = event_channel_find(fd);
    event_channel_close(channel, fd);
    event_channel_put(channel);
    close(fd);
    assert_int_equal(ibv_close_device(context), 0);
}

static void a_child_has_the_layers_of_its_parent(void **state)
{
    calls_put_around(&notes_low);
    pid_t child = fork();
    if (child == 0) { /* which makes no threads: ThreadSanitizer does not take that */
        ibv_free_device_list(ibv_get_device_list(NULL));
        bool seen = notes_count() == 2;
        calls_take_off(&notes_low);
        ibv_free_device_list(ibv_get_device_list(NULL));
        _exit(seen && notes_count() == 2 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* -- threads */

enum { THREADS = 3, CHANGES = 300, LIVES = 20 };

static atomic_bool stopping;
static atomic_uint writes;

static void *write_on(void *unused)
{
    while (!atomic_load(&stopping)) {
        struct end *end = begin();
        for (int i = 0; i < LIVES && !atomic_load(&stopping); i++) {
            write_by_list(end);
            write_by_builders(end);
            atomic_fetch_add(&writes, 2);
        }
        finish(end);
    }
    return NULL;
}

static void change_layer(unsigned number)
{
    static struct calls_layer *const layers[] = {&notes_low, &notes_high, &notes_middle};
    unsigned seen = atomic_load(&writes);
    struct calls_layer *layer = layers[number % (sizeof layers / sizeof *layers)];
    if (layer->around)
        calls_take_off(layer);
    else
        calls_put_around(layer);
    for (unsigned i = 0; i < 1000 && atomic_load(&writes) == seen; i++)
        usleep(100);
    if (notes_count() > NOTES_MOST / 2)
        notes_clear();
}

/* Each works on objects that it makes and destroys, by lists and builders, while three layers come and go. */
static void layers_come_and_go_beneath_threads(void **state)
{
    pthread_t threads[THREADS];
    struct ibv_context *context = open_first();
    atomic_store(&stopping, false);
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&threads[i], NULL, write_on, NULL));
    for (unsigned i = 0; i < CHANGES; i++)
        change_layer(i);
    take_all_off(NULL);
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    notes_clear();
    struct end *end = begin();
    write_by_builders(end);
    finish(end);
    assert_int_equal(notes_count(), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

static void remove_directory(const char *directory)
{
    char path[sizeof "/dev/shm/softverbs-layers-XXXXXX" + NAME_MAX + 1];
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
    }
    if (entries)
        closedir(entries);
    rmdir(directory);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, forget_notes, take_all_off)

int main(void)
{
    char directory[] = "/dev/shm/softverbs-layers-XXXXXX";
    const struct CMUnitTest tests[] = {
        CASE(a_layer_sees_every_call_from_the_first),
        CASE(a_layer_joins_objects_that_exist_and_leaves_them_as_they_were),
        CASE(a_layer_comes_and_goes_within_a_batch),
        CASE(layers_lie_by_their_places_whichever_comes_and_goes_first),
        CASE(what_no_layer_wants_stays_as_it_is),
        CASE(a_layer_refuses_and_errno_agrees),
        CASE(a_member_that_the_program_replaced_stays),
        CASE(a_pointer_that_the_program_kept_goes_on_working),
        CASE(a_reader_finds_the_way_of_its_queue),
        CASE(other_objects_calls_pass_too),
        CASE(commands_of_librdmacm_pass_with_their_identifiers),
        CASE(a_child_has_the_layers_of_its_parent),
        CASE(layers_come_and_go_beneath_threads),
    };
    MUST(mkdtemp(directory));
    setenv("SOFTVERBS_DIR", directory, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_directory(directory);
    return failed;
}
