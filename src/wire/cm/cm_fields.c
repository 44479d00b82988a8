#include "wire/cm/cm_fields.h"

/* A field of `bits` bits that begins at bit `first` of a byte, for a member of struct cm_message. */
#define ANY(path, label, byte, first, bits, at, counted)                                                               \
    {                                                                                                                  \
        .name = label, .bit = (byte)*8 + (first), .width = bits, .member = offsetof(struct cm_message, path),          \
        .size = sizeof(((struct cm_message *)0)->path), .shift = at, .decimal = counted                                \
    }
#define FIELD(part, part_member, byte, first, bits)                                                                    \
    ANY(part.part_member, #part_member, byte, first, bits, 0, (bits) <= 8)
#define CUT(part, part_member, byte, first, bits, at) ANY(part.part_member, #part_member, byte, first, bits, at, false)
#define END                                                                                                            \
    {                                                                                                                  \
        .width = 0                                                                                                     \
    }

#define ID(member, byte) ANY(member, #member, byte, 0, 32, 0, false)
#define IDS ID(local_id, 0), ID(remote_id, 4)

#define PATH(path, byte)                                                                                               \
    FIELD(req, path.local_lid, (byte) + 0, 0, 16), FIELD(req, path.remote_lid, (byte) + 2, 0, 16),                     \
        FIELD(req, path.local_gid, (byte) + 4, 0, 128), FIELD(req, path.remote_gid, (byte) + 20, 0, 128),              \
        FIELD(req, path.flow_label, (byte) + 36, 0, 20), FIELD(req, path.rate, (byte) + 39, 2, 6),                     \
        FIELD(req, path.traffic_class, (byte) + 40, 0, 8), FIELD(req, path.hop_limit, (byte) + 41, 0, 8),              \
        FIELD(req, path.sl, (byte) + 42, 0, 4), FIELD(req, path.subnet_local, (byte) + 42, 4, 1),                      \
        FIELD(req, path.ack_timeout, (byte) + 43, 0, 5)

/* IBA table 103. The vendor IDs here and in the other messages are from annex A14; before, the bits were reserved. */
static const struct cm_field req_fields[] = {ID(local_id, 0),
                                             FIELD(req, vendor, 5, 0, 24),
                                             FIELD(req, service, 8, 0, 64),
                                             FIELD(req, guid, 16, 0, 64),
                                             FIELD(req, qkey, 28, 0, 32),
                                             FIELD(req, qpn, 32, 0, 24),
                                             FIELD(req, responder_resources, 35, 0, 8),
                                             FIELD(req, local_eecn, 36, 0, 24),
                                             FIELD(req, initiator_depth, 39, 0, 8),
                                             FIELD(req, remote_eecn, 40, 0, 24),
                                             FIELD(req, remote_response_timeout, 43, 0, 5),
                                             FIELD(req, transport, 43, 5, 2),
                                             FIELD(req, flow_control, 43, 7, 1),
                                             FIELD(req, starting_psn, 44, 0, 24),
                                             FIELD(req, local_response_timeout, 47, 0, 5),
                                             FIELD(req, retry_count, 47, 5, 3),
                                             FIELD(req, pkey, 48, 0, 16),
                                             FIELD(req, mtu, 50, 0, 4),
                                             FIELD(req, rdc_exists, 50, 4, 1),
                                             FIELD(req, rnr_retry_count, 50, 5, 3),
                                             FIELD(req, max_cm_retries, 51, 0, 4),
                                             FIELD(req, srq, 51, 4, 1),
                                             FIELD(req, extended_transport, 51, 5, 3),
                                             PATH(primary, 52),
                                             PATH(alternate, 96),
                                             END};

static const struct cm_field mra_fields[] = {IDS, FIELD(mra, about, 8, 0, 2), FIELD(mra, service_timeout, 9, 0, 5),
                                             END};

static const struct cm_field rej_fields[] = {IDS,
                                             FIELD(rej, about, 8, 0, 2),
                                             FIELD(rej, information_length, 9, 0, 7),
                                             ANY(rej.reason, "reason", 10, 0, 16, 0, true),
                                             FIELD(rej, information, 12, 0, 8 * CM_INFORMATION_MAX),
                                             END};

static const struct cm_field rep_fields[] = {IDS,
                                             FIELD(rep, qkey, 8, 0, 32),
                                             FIELD(rep, qpn, 12, 0, 24),
                                             CUT(rep, vendor, 15, 0, 8, 16),
                                             FIELD(rep, eecn, 16, 0, 24),
                                             CUT(rep, vendor, 19, 0, 8, 8),
                                             FIELD(rep, starting_psn, 20, 0, 24),
                                             CUT(rep, vendor, 23, 0, 8, 0),
                                             FIELD(rep, responder_resources, 24, 0, 8),
                                             FIELD(rep, initiator_depth, 25, 0, 8),
                                             FIELD(rep, target_ack_delay, 26, 0, 5),
                                             FIELD(rep, failover, 26, 5, 2),
                                             FIELD(rep, flow_control, 26, 7, 1),
                                             FIELD(rep, rnr_retry_count, 27, 0, 3),
                                             FIELD(rep, srq, 27, 3, 1),
                                             FIELD(rep, guid, 28, 0, 64),
                                             END};

static const struct cm_field id_fields[] = {IDS, END};

static const struct cm_field dreq_fields[] = {IDS, FIELD(dreq, remote_qpn, 8, 0, 24), END};

static const struct cm_field sidr_req_fields[] = {ID(local_id, 0), FIELD(sidr_req, pkey, 4, 0, 16),
                                                  FIELD(sidr_req, service, 8, 0, 64), END};

static const struct cm_field sidr_rep_fields[] = {ID(remote_id, 0),
                                                  FIELD(sidr_rep, status, 4, 0, 8),
                                                  FIELD(sidr_rep, information_length, 5, 0, 8),
                                                  CUT(sidr_rep, vendor, 6, 0, 16, 8),
                                                  FIELD(sidr_rep, qpn, 8, 0, 24),
                                                  CUT(sidr_rep, vendor, 11, 0, 8, 0),
                                                  FIELD(sidr_rep, service, 12, 0, 64),
                                                  FIELD(sidr_rep, qkey, 20, 0, 32),
                                                  FIELD(sidr_rep, information, 24, 0, 8 * CM_INFORMATION_MAX),
                                                  END};

const struct cm_layout *cm_layout(enum cm_attribute attribute)
{
    static const struct cm_layout layouts[] = {
        [CM_REQ - CM_REQ] = {"REQ", req_fields, 140, false},
        [CM_MRA - CM_REQ] = {"MRA", mra_fields, 10, true},
        [CM_REJ - CM_REQ] = {"REJ", rej_fields, 84, true},
        [CM_REP - CM_REQ] = {"REP", rep_fields, 36, true},
        [CM_RTU - CM_REQ] = {"RTU", id_fields, 8, true},
        [CM_DREQ - CM_REQ] = {"DREQ", dreq_fields, 12, true},
        [CM_DREP - CM_REQ] = {"DREP", id_fields, 8, true},
        [CM_SIDR_REQ - CM_REQ] = {"SIDR_REQ", sidr_req_fields, 16, false},
        [CM_SIDR_REP - CM_REQ] = {"SIDR_REP", sidr_rep_fields, 96, true},
        [CM_LAP - CM_REQ] = {"LAP", id_fields, 8, true},
        [CM_APR - CM_REQ] = {"APR", id_fields, 8, true},
    };
    unsigned index = (unsigned)attribute - CM_REQ;
    return index < sizeof layouts / sizeof *layouts ? &layouts[index] : NULL;
}
