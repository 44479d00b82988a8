/* The functions that error_faults.def names. */
#include "matrix.h"

enum { BAD_KEY = 0x7f000000 };

static void no_reads(struct wishes *wishes)
{
    wishes->reads = 0;
}

static void no_reads_served(struct wishes *wishes)
{
    wishes->served_reads = 0;
}

static void no_rnr_retries(struct wishes *wishes)
{
    wishes->rnr_retries = 0;
}

static void few_rnr_retries(struct wishes *wishes)
{
    wishes->rnr_retries = 2;
}

static void qp_without_permission(struct wishes *wishes)
{
    wishes->qp_access = 0;
}

/* Memory of an end under a new registration: the scene's end has its `lkey` and `rkey` from then on. */
static void register_anew(struct scene *scene, struct end *end, bool of_other_pd, int access)
{
    if (of_other_pd)
        scene->other_pd = remote_alloc_pd(end->remote);
    scene->other_mr =
        remote_reg_mr(end->remote, of_other_pd ? scene->other_pd : end->pd, end->memory, end->length, access);
    EXPECT(scene->other_mr, !=, NOBODY);
    end->lkey = end->remote->call.about.lkey;
    end->rkey = end->remote->call.about.rkey;
}

static bool is_atomic(const struct scene *scene)
{
    enum ibv_wr_opcode opcode = scene->send.wr.opcode;
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void set_rkey(struct scene *scene, uint32_t rkey)
{
    if (scene->send.wr.opcode == IBV_WR_SEND_WITH_INV)
        scene->send.wr.invalidate_rkey = rkey;
    else if (is_atomic(scene))
        scene->send.wr.wr.atomic.rkey = rkey;
    else
        scene->send.wr.wr.rdma.rkey = rkey;
}

static void move_remote(struct scene *scene, uint64_t address)
{
    if (is_atomic(scene))
        scene->send.wr.wr.atomic.remote_addr = address;
    else
        scene->send.wr.wr.rdma.remote_addr = address;
}

static void lkey_unknown(struct scene *scene)
{
    scene->send.sge[0].lkey = BAD_KEY;
}

static void stale(struct scene *scene, struct end *end)
{
    register_anew(scene, end, false, ACCESS_ALL);
    EXPECT(remote_destroy(end->remote, KIND_MR, scene->other_mr), ==, 0);
}

static void lkey_stale(struct scene *scene)
{
    stale(scene, &scene->pair.near);
    scene->send.sge[0].lkey = scene->pair.near.lkey;
}

static void lkey_of_other_pd(struct scene *scene)
{
    register_anew(scene, &scene->pair.near, true, ACCESS_ALL);
    scene->send.sge[0].lkey = scene->pair.near.lkey;
}

static void local_before(struct scene *scene)
{
    scene->send.sge[0].addr = scene->pair.near.memory - 1;
}

static void local_behind(struct scene *scene)
{
    struct end *near = &scene->pair.near;
    scene->send.sge[0].addr = near->memory + near->length - scene->send.sge[0].length + 1;
}

enum { PAGE = 4096 };

static void local_gone(struct scene *scene)
{
    struct end *near = &scene->pair.near;
    remote_lose(near->remote, near->memory, PAGE, LOSS_PROTECTED);
}

static void local_protected(struct scene *scene)
{
    struct end *near = &scene->pair.near;
    remote_lose(near->remote, near->memory, PAGE, LOSS_READ_ONLY);
}

static void local_read_only(struct scene *scene)
{
    register_anew(scene, &scene->pair.near, false, 0);
    scene->send.sge[0].lkey = scene->pair.near.lkey;
}

static void local_short(struct scene *scene)
{
    scene->send.sge[0].length = 7;
}

static void second_sge(struct scene *scene)
{
    struct ibv_sge *sge = scene->send.sge;
    scene->send.wr.num_sge = 2;
    sge[1] = sge[0];
    sge[0].length /= 2;
    sge[1].length -= sge[0].length;
    sge[1].lkey = BAD_KEY;
}

/* Longer than any limit: the SGE is not looked at before. */
static void too_long(struct scene *scene)
{
    scene->send.sge[0].length = scene->pair.wishes.type == IBV_QPT_UD ? 4097 : (1u << 30) + 1;
}

static void requester_in_error(struct scene *scene)
{
    EXPECT(end_move(&scene->pair.near, IBV_QPS_ERR), ==, 0);
}

static void rkey_unknown(struct scene *scene)
{
    set_rkey(scene, BAD_KEY);
}

static void rkey_stale(struct scene *scene)
{
    stale(scene, &scene->pair.far);
    set_rkey(scene, scene->pair.far.rkey);
}

static void rkey_of_other_pd(struct scene *scene)
{
    register_anew(scene, &scene->pair.far, true, ACCESS_ALL);
    set_rkey(scene, scene->pair.far.rkey);
}

static void remote_before(struct scene *scene)
{
    move_remote(scene, scene->pair.far.memory - 8);
}

static void remote_behind(struct scene *scene)
{
    move_remote(scene, scene->pair.far.memory + scene->pair.far.length - scene->send.sge[0].length + 8);
}

static void remote_gone(struct scene *scene)
{
    struct end *far = &scene->pair.far;
    remote_lose(far->remote, far->memory, PAGE, LOSS_PROTECTED);
}

static void remote_wraps(struct scene *scene)
{
    move_remote(scene, UINT64_MAX - 7);
    scene->send.sge[0].length = scene->send.sge[0].length > 8 ? scene->send.sge[0].length : 8;
}

static void remote_without_permission(struct scene *scene)
{
    register_anew(scene, &scene->pair.far, false, IBV_ACCESS_LOCAL_WRITE);
    set_rkey(scene, scene->pair.far.rkey);
}

static void misaligned(struct scene *scene)
{
    move_remote(scene, scene->pair.far.memory + 4);
}

static void misaligned_with_bad_key(struct scene *scene)
{
    misaligned(scene);
    set_rkey(scene, BAD_KEY);
}

static void both_keys_bad(struct scene *scene)
{
    lkey_unknown(scene);
    rkey_unknown(scene);
}

static void empty_with_bad_keys(struct scene *scene)
{
    scene->send.sge[0] = (struct ibv_sge){.addr = 1, .length = 0, .lkey = BAD_KEY};
    if (scene->pair.wishes.type != IBV_QPT_UD) {
        set_rkey(scene, BAD_KEY);
        move_remote(scene, 3);
    }
    if (scene->send.wr.opcode == IBV_WR_SEND && scene->pair.wishes.type != IBV_QPT_UD)
        scene->receive.sge[0] = scene->send.sge[0];
}

static uint32_t arriving(const struct scene *scene)
{
    return scene->send.sge[0].length + (scene->pair.wishes.type == IBV_QPT_UD ? 40 : 0);
}

static void receive_short(struct scene *scene)
{
    scene->receive.sge[0].length = arriving(scene) - 1;
    scene->bad_receive = scene->pair.wishes.type != IBV_QPT_UD;
}

static void receive_lkey_unknown(struct scene *scene)
{
    scene->receive.sge[0].lkey = BAD_KEY;
    scene->bad_receive = true;
}

static void receive_of_other_pd(struct scene *scene)
{
    register_anew(scene, &scene->pair.far, true, ACCESS_ALL);
    scene->receive.sge[0].lkey = scene->pair.far.lkey;
    scene->bad_receive = true;
}

static void receive_behind(struct scene *scene)
{
    struct end *far = &scene->pair.far;
    scene->receive.sge[0].length = arriving(scene);
    scene->receive.sge[0].addr = far->memory + far->length - arriving(scene) + 1;
    scene->bad_receive = true;
}

static void receive_gone(struct scene *scene)
{
    struct end *far = &scene->pair.far;
    remote_lose(far->remote, scene->receive.sge[0].addr, PAGE, LOSS_PROTECTED);
    scene->bad_receive = true;
}

static void receive_read_only(struct scene *scene)
{
    register_anew(scene, &scene->pair.far, false, 0);
    scene->receive.sge[0].lkey = scene->pair.far.lkey;
    scene->bad_receive = true;
}

static void no_receive(struct scene *scene)
{
    scene->post_receive = false;
}

static void peer_destroyed(struct scene *scene)
{
    EXPECT(remote_destroy(scene->pair.far.remote, KIND_QP, scene->pair.far.qp), ==, 0);
    scene->pair.far.qp = NOBODY;
    scene->post_receive = false;
}

static void peer_in_error(struct scene *scene)
{
    EXPECT(end_move(&scene->pair.far, IBV_QPS_ERR), ==, 0);
}

static void peer_in_reset(struct scene *scene)
{
    EXPECT(end_move(&scene->pair.far, IBV_QPS_RESET), ==, 0);
    scene->post_receive = false;
}

static void wrong_qkey(struct scene *scene)
{
    scene->send.wr.wr.ud.remote_qkey ^= 1;
}

const struct fault faults[FAULTS] = {
#define FAULT(name, wish, spoil, sentence) {sentence, wish, spoil},
#include "error_faults.def"
#undef FAULT
};
