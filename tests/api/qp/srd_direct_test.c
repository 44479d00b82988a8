/* READs and WRITEs of SRD to another process of the host, which the sender does by itself once their target is
 * published: what would refuse their packets refuses them at once. Run under profiles/efa3.profile. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "srd_end.h"

enum { NO_ACCESS = 7, NO_QP = 9, NO_ADDRESS = 14, TIMES = 4 };

/* The steps of the other process. */
enum step { STEP_NOTHING, STEP_ADD_HANDLE, STEP_DROP_HANDLE, STEP_CHANGE_KEY, STEP_READ_ONLY, STEP_FAIL, STEP_FORK };

struct target {
    uint32_t qpn, rkey, rkey_of_other_domain;
    uint64_t memory;
};

/* The end in this process, and what it knows of the end in the other one. */
struct two {
    struct ibv_context *context;
    struct srd_end near;
    struct ibv_ah *there;
    struct target target;
    pid_t child;
    int to_child;
};

/* ---- the other process ---- */

struct served {
    struct srd_end end, other; /* of another protection domain */
    struct ibv_ah *handles[2];
};

static void do_step(struct served *served, enum step step)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR, .qkey = SRD_QKEY + 1};
    struct ibv_ah **last = served->handles[1] ? &served->handles[1] : &served->handles[0];
    if (step == STEP_ADD_HANDLE)
        served->handles[served->handles[0] != NULL] = srd_handle(&served->end);
    if (step == STEP_DROP_HANDLE) {
        EXPECT(ibv_destroy_ah(*last), ==, 0);
        *last = NULL;
    }
    if (step == STEP_CHANGE_KEY)
        EXPECT(ibv_modify_qp(served->end.qp, &attr, IBV_QP_QKEY), ==, 0);
    if (step == STEP_FAIL)
        EXPECT(ibv_modify_qp(served->end.qp, &attr, IBV_QP_STATE), ==, 0);
    if (step == STEP_READ_ONLY)
        EXPECT(ibv_dereg_mr(served->end.mr), ==, 0);
    if (step == STEP_READ_ONLY)
        EXPECT_TRUE(served->end.mr = ibv_reg_mr(served->end.pd, served->end.memory, SRD_BYTES,
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
}

/* The child of a fork destroys its copy of the handle. */
static void fork_a_child(struct served *served)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(ibv_destroy_ah(served->handles[0]));
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
}

/* Ends without a status where a step fails. */
static void serve(int from_parent)
{
    struct ibv_context *context = srd_device();
    struct served served = {.end = srd_open(context), .other = srd_open(context)};
    enum step step;
    do_step(&served, STEP_ADD_HANDLE);
    while (read(from_parent, &step, sizeof step) == sizeof step) {
        do_step(&served, step);
        if (step == STEP_FORK)
            fork_a_child(&served);
        const struct target target = {served.end.qp->qp_num, served.end.mr->rkey, served.other.mr->rkey,
                                      (uintptr_t)served.end.memory};
        if (write(from_parent, &target, sizeof target) != sizeof target)
            break;
    }
    while (served.handles[0])
        do_step(&served, STEP_DROP_HANDLE);
    srd_close(&served.end);
    srd_close(&served.other);
    EXPECT(ibv_close_device(context), ==, 0);
    _exit(0);
}

/* ---- this process ---- */

static void ask(struct two *two, enum step step)
{
    EXPECT(write(two->to_child, &step, sizeof step), ==, (long long)sizeof step);
    EXPECT(read(two->to_child, &two->target, sizeof two->target), ==, (long long)sizeof two->target);
}

static struct two open_two(void)
{
    struct two two;
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), ==, 0);
    two.child = fork();
    if (!two.child) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    two.to_child = ends[0];
    two.context = srd_device();
    two.near = srd_open(two.context);
    two.there = srd_handle(&two.near);
    ask(&two, STEP_NOTHING);
    return two;
}

static void close_two(struct two *two)
{
    int status;
    close(two->to_child);
    EXPECT(waitpid(two->child, &status, 0), ==, two->child);
    EXPECT(status, ==, 0);
    EXPECT(ibv_destroy_ah(two->there), ==, 0);
    srd_close(&two->near);
    EXPECT(ibv_close_device(two->context), ==, 0);
}

static struct srd_wr work_to(const struct two *two, enum ibv_wr_opcode opcode)
{
    struct srd_wr work = srd_wr(&two->near, &two->near, two->there, opcode, 8);
    work.qpn = two->target.qpn;
    work.rkey = two->target.rkey;
    work.remote = two->target.memory + SRD_BYTES / 2;
    return work;
}

static void pass(struct two *two, struct srd_wr work, enum ibv_wc_status status, uint32_t vendor)
{
    srd_post(&two->near, work);
    srd_expect(&two->near, 7, status, vendor);
}

/* The first of them go as packets. */
static void pass_some(struct two *two)
{
    for (int i = 0; i < TIMES; i++) {
        pass(two, work_to(two, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS, 0);
        pass(two, work_to(two, IBV_WR_RDMA_READ), IBV_WC_SUCCESS, 0);
    }
}

/* So no packet is needed, which the target would have to take. */
static void pass_some_to_a_stopped_target(struct two *two)
{
    int status;
    EXPECT(kill(two->child, SIGSTOP), ==, 0);
    EXPECT(waitpid(two->child, &status, WUNTRACED), ==, two->child);
    pass_some(two);
    EXPECT(kill(two->child, SIGCONT), ==, 0);
}

static void a_target_that_is_stopped_is_read_and_written(const void *row)
{
    struct two two = open_two();
    pass_some(&two);
    pass_some_to_a_stopped_target(&two);
    close_two(&two);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void the_child_of_a_fork_withdraws_nothing(const void *row)
{
    if (SANITIZED)
        harness_skip("a sanitizer's allocator may keep its locks in the child of a fork");
    struct two two = open_two();
    pass_some(&two);
    ask(&two, STEP_FORK);
    pass_some_to_a_stopped_target(&two);
    close_two(&two);
}

static void a_target_serves_while_it_has_an_address_handle(const void *row)
{
    struct two two = open_two();
    pass_some(&two);
    ask(&two, STEP_ADD_HANDLE);
    ask(&two, STEP_DROP_HANDLE);
    pass_some(&two);
    ask(&two, STEP_DROP_HANDLE);
    pass(&two, work_to(&two, IBV_WR_RDMA_READ), IBV_WC_REM_OP_ERR, NO_ADDRESS);
    pass(&two, work_to(&two, IBV_WR_RDMA_WRITE), IBV_WC_REM_OP_ERR, NO_ADDRESS);
    ask(&two, STEP_ADD_HANDLE);
    pass_some(&two);
    close_two(&two);
}

static void a_target_serves_its_own_q_key_alone(const void *row)
{
    struct two two = open_two();
    struct srd_wr work = work_to(&two, IBV_WR_RDMA_WRITE);
    pass_some(&two);
    work.qkey = SRD_QKEY + 1;
    pass(&two, work, IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    ask(&two, STEP_CHANGE_KEY);
    pass(&two, work_to(&two, IBV_WR_RDMA_READ), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    for (int i = 0; i < TIMES; i++)
        pass(&two, work, IBV_WC_SUCCESS, 0);
    close_two(&two);
}

static void a_region_that_goes_is_read_and_written_no_more(const void *row)
{
    struct two two = open_two();
    pass_some(&two);
    struct srd_wr old = work_to(&two, IBV_WR_RDMA_WRITE);
    ask(&two, STEP_READ_ONLY);
    pass(&two, old, IBV_WC_REM_ACCESS_ERR, NO_ACCESS);
    for (int i = 0; i < TIMES; i++)
        pass(&two, work_to(&two, IBV_WR_RDMA_READ), IBV_WC_SUCCESS, 0);
    pass(&two, work_to(&two, IBV_WR_RDMA_WRITE), IBV_WC_REM_ACCESS_ERR, NO_ACCESS);
    old = work_to(&two, IBV_WR_RDMA_READ);
    ask(&two, STEP_READ_ONLY);
    pass(&two, old, IBV_WC_REM_ACCESS_ERR, NO_ACCESS);
    close_two(&two);
}

static void a_region_of_another_domain_is_not_served(const void *row)
{
    struct two two = open_two();
    struct srd_wr work = work_to(&two, IBV_WR_RDMA_READ);
    pass_some(&two);
    work.rkey = two.target.rkey_of_other_domain;
    pass(&two, work, IBV_WC_REM_ACCESS_ERR, NO_ACCESS);
    close_two(&two);
}

static void a_queue_pair_in_error_serves_none(const void *row)
{
    struct two two = open_two();
    pass_some(&two);
    ask(&two, STEP_FAIL);
    pass(&two, work_to(&two, IBV_WR_RDMA_WRITE), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    pass(&two, work_to(&two, IBV_WR_RDMA_READ), IBV_WC_REM_INV_RD_REQ_ERR, NO_QP);
    close_two(&two);
}

static void all(void)
{
    CASE(a_target_that_is_stopped_is_read_and_written);
    CASE(the_child_of_a_fork_withdraws_nothing);
    CASE(a_target_serves_while_it_has_an_address_handle);
    CASE(a_target_serves_its_own_q_key_alone);
    CASE(a_region_that_goes_is_read_and_written_no_more);
    CASE(a_region_of_another_domain_is_not_served);
    CASE(a_queue_pair_in_error_serves_none);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
