/* A program of drivers' libraries (driver_library.c), to which it is linked, or that it loads when it begins (LATE).
 * Prints the numbers of the queue pairs that libibverbs does not drive, and of the completion queue; it asks twice for
 * memory. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The libraries' own headers need not be here. */
struct pair {
    void *in, *out;
};
struct ibv_context *mlx5dv_open_device(struct ibv_device *device, const void *own);
struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, const void *own);
struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr, const void *own);
extern const void *driver_attributes;
int mlx5dv_init_obj(struct pair *objects, uint64_t kinds);
void *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out, size_t outlen);
struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t type);

static void need(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "around_driven: %s\n", what);
    exit(1);
}

#ifdef LATE
static void *mlx5, *efa;
#define FIND(library, name) ((__typeof__(&name))dlsym(library, #name))
#else
#define FIND(library, name) name
#endif

static const void *attributes;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd};
    struct ibv_qp *qp = FIND(mlx5, mlx5dv_create_qp)(context, &attr, attributes);
    need(qp, "no queue pair");
    return qp;
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && list[0] ? FIND(mlx5, mlx5dv_open_device)(list[0], attributes) : NULL;
    need(context, "no device");
    ibv_free_device_list(list);
    struct ibv_cq_init_attr_ex attr = {.cqe = 4};
    pd = ibv_alloc_pd(context);
    cq = FIND(mlx5, mlx5dv_create_cq)(context, &attr, attributes);
    need(pd && cq, "no queue");
}

static uint32_t make_devx_qp(void)
{
    unsigned char in[16] = {0x05}, out[16] = {0};
    need(FIND(mlx5, mlx5dv_devx_obj_create)(context, in, sizeof in, out, sizeof out), "no object");
    return (uint32_t)(out[9] << 16 | out[10] << 8 | out[11]);
}

static struct ibv_qp *make_driver_qp(void)
{
    struct ibv_qp_init_attr attr = {.send_cq = ibv_cq_ex_to_cq(cq),
                                    .recv_cq = ibv_cq_ex_to_cq(cq),
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_DRIVER};
    struct ibv_qp *qp = FIND(efa, efadv_create_driver_qp)(pd, &attr, 0);
    need(qp, "no queue pair of the driver's type");
    return qp;
}

int main(void)
{
    enum { QP = 1, CQ = 2 };
#ifdef LATE
    mlx5 = dlopen("$ORIGIN/libmlx5.so.1", RTLD_NOW); /* softverbs has a libefa, which would be found by its name */
    efa = dlopen("$ORIGIN/libefa.so.1", RTLD_NOW);
    need(mlx5 && efa, "no library");
    attributes = *(const void **)dlsym(mlx5, "driver_attributes");
#else
    attributes = driver_attributes;
#endif
    make_objects();
    struct ibv_qp *given = make_qp(), *alone = make_qp(), *driver = make_driver_qp();
    struct pair pairs[2] = {{given, NULL}, {cq, NULL}};
    for (int times = 0; times < 2; times++)
        need(!FIND(mlx5, mlx5dv_init_obj)(pairs, QP), "no memory of the queue pair");
    printf("0x%x 0x%x 0x%x", given->qp_num, driver->qp_num, make_devx_qp());
    need(!FIND(mlx5, mlx5dv_init_obj)(pairs, QP | CQ), "no memory of the queue");
    printf(" %u\n", cq->handle);
    need(!ibv_destroy_qp(given) && !ibv_destroy_qp(alone) && !ibv_destroy_qp(driver), "not destroyed");
    return ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}
