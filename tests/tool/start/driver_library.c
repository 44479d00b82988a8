/* Functions of libmlx5, or with EFA of libefa, of src/around/driven.def: each makes the object by libibverbs. */
#include <infiniband/verbs.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef EFA
EXPORT struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t type);

/* Its type is the driver's own. */
struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t type)
{
    attr->qp_type = IBV_QPT_UD;
    struct ibv_qp *qp = type ? NULL : ibv_create_qp(pd, attr);
    if (qp)
        qp->qp_type = IBV_QPT_DRIVER;
    return qp;
}
#else
/* The attributes that each maker gets for its driver alone. */
static const char own_attributes;
EXPORT const void *driver_attributes = &own_attributes;

EXPORT struct ibv_context *mlx5dv_open_device(struct ibv_device *device, const void *own);
EXPORT struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                          const void *own);
EXPORT struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr, const void *own);
EXPORT int mlx5dv_init_obj(void *objects, uint64_t kinds);
EXPORT void *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out,
                                    size_t outlen);

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, const void *own)
{
    return own == driver_attributes ? ibv_open_device(device) : NULL;
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, const void *own)
{
    return own == driver_attributes ? ibv_create_cq_ex(context, attr) : NULL;
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr, const void *own)
{
    return own == driver_attributes ? ibv_create_qp_ex(context, attr) : NULL;
}

int mlx5dv_init_obj(void *objects, uint64_t kinds)
{
    (void)objects, (void)kinds;
    return 0;
}

void *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out, size_t outlen)
{
    static const unsigned char answer[] = {[9] = 0x12, 0x34, 0x56};
    (void)context, (void)in, (void)inlen;
    memcpy(out, answer, outlen < sizeof answer ? outlen : sizeof answer);
    return out;
}
#endif
