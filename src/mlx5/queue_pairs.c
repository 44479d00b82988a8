/* Questions and changes of queue pairs. */
#include <errno.h>

#include "config/device.h"
#include "events/refusal.h"
#include "events/words.h"
#include "link/udp/udp.h"
#include "mlx5/answers.h"
#include "mlx5/mlx5.h"
#include "verbs/kinds/dc/dc.h"
#include "verbs/qp/qp.h"

/* Returns true for RC and UC. */
static bool is_connection(const struct qp *qp)
{
    const uint32_t others = QP_DATAGRAM | QP_ETHERNET | QP_UNORDERED, has = QP_SENDS | QP_RECEIVES;
    return (qp->traits & (has | others)) == has;
}

static int refuse_state(const struct qp *qp, const char *may)
{
    return refuse(EOPNOTSUPP, REASON_MLX5_LACKED, "qp 0x%x is in %s, and %s", qp->number, words_state(qp->state), may);
}

/* 0, or an errno: only a connection over UDP has a source port; inside of a host there is no UDP to have one. */
static int pin(struct qp *qp, uint16_t udp_sport)
{
    if (qp->state != IBV_QPS_RTS)
        return refuse_state(qp, "only queue pairs in RTS have a source port");
    int error = qp->path.remote ? udp_pin(qp->path.remote, udp_sport) : 0;
    return error ? refuse(error, REASON_MLX5_EXCLUDED, "the source port %u is not free", udp_sport) : 0;
}

int own_mlx5dv_modify_qp_udp_sport(struct ibv_qp *ibv, uint16_t udp_sport)
{
    struct qp *qp = qp_of(ibv);
    int error = mlx5_check();
    if (!error && !qp_is_known(ibv))
        error = refused(ENOENT);
    if (!error && !is_connection(qp))
        error = mlx5_lacks("source ports of other types than RC and UC");
    if (error)
        return error;
    lock_take(&qp->lock);
    error = pin(qp, udp_sport);
    lock_release(&qp->lock);
    return error;
}

/* The device has one port, which is in no group. */
int own_mlx5dv_query_qp_lag_port(struct ibv_qp *qp, uint8_t *port_num, uint8_t *active_port_num)
{
    int error = mlx5_check();
    return error ? error : mlx5_lacks("groups of ports (num_lag_ports)");
}

int own_mlx5dv_modify_qp_lag_port(struct ibv_qp *qp, uint8_t port_num)
{
    int error = mlx5_check();
    return error ? error : mlx5_lacks("groups of ports (num_lag_ports)");
}

static int refuse_stream(enum dci_reset result, const struct qp *qp, uint16_t stream)
{
    if (result == DCI_RESET)
        return 0;
    if (result == DCI_SOUND)
        return refuse(EINVAL, REASON_MLX5_EXCLUDED, "stream %u is not in error", stream);
    if (result == DCI_NOT_IN_RTS)
        return refuse_state(qp, "only queue pairs in RTS have streams to reset");
    return refuse(EOPNOTSUPP, REASON_MLX5_EXCLUDED, "qp 0x%x was made without dci_streams", qp->number);
}

int own_mlx5dv_dci_stream_id_reset(struct ibv_qp *ibv, uint16_t stream_id)
{
    int error = mlx5_check();
    if (!error && !qp_is_known(ibv))
        error = refused(ENOENT);
    if (!error && !(qp_of(ibv)->traits & QP_ADDRESSED))
        error = mlx5_refuse_together("the queue pair is no initiator of dynamic connections");
    return error ? error : refuse_stream(dci_reset_stream(qp_of(ibv), stream_id), qp_of(ibv), stream_id);
}
