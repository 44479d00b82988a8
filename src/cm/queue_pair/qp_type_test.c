/* The types of queue pairs, as the connection manager sees them. */
#include "cm/queue_pair/qp_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { UC = 3, RAW_PACKET = 8, XRC_SEND = 9, XRC_RECV = 10 }; /* of enum ibv_qp_type */

static void each_type_has_its_requester_and_responder(void **state)
{
    static const struct {
        uint8_t type;
        bool datagram, requests, responds;
        uint8_t transport, extended;
    } rows[] = {
        {QP_TYPE_CONNECTED, false, true, true, CM_TRANSPORT_RC, 0},
        {UC, false, false, false, CM_TRANSPORT_UC, 0},
        {QP_TYPE_DATAGRAM, true, false, false, CM_TRANSPORT_RC, 0},
        {XRC_SEND, false, true, false, CM_TRANSPORT_EXTENDED, CM_EXTENDED_XRC},
        {XRC_RECV, false, false, true, CM_TRANSPORT_RC, 0},
        {RAW_PACKET, false, false, false, CM_TRANSPORT_RC, 0},
        {0, false, false, false, CM_TRANSPORT_RC, 0},
        {11, false, false, false, CM_TRANSPORT_RC, 0},
        {255, false, false, false, CM_TRANSPORT_RC, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct qp_type *type = qp_type_find(rows[i].type);
        assert_int_equal(type->datagram, rows[i].datagram);
        assert_int_equal(type->requests, rows[i].requests);
        assert_int_equal(type->responds, rows[i].responds);
        assert_int_equal(type->transport, rows[i].transport);
        assert_int_equal(type->extended, rows[i].extended);
    }
}

/* IBA 12.7.16, "Extended Transport Type": it counts for an extended transport only. */
static void a_req_says_which_type_its_receiver_needs(void **state)
{
    static const struct {
        uint8_t transport, extended, needed;
    } rows[] = {
        {CM_TRANSPORT_RC, 0, QP_TYPE_CONNECTED},
        {CM_TRANSPORT_RC, CM_EXTENDED_XRC, QP_TYPE_CONNECTED},
        {CM_TRANSPORT_UC, 0, UC},
        {CM_TRANSPORT_EXTENDED, CM_EXTENDED_XRC, XRC_RECV},
        {CM_TRANSPORT_EXTENDED, 0, 0},
        {CM_TRANSPORT_EXTENDED, 2, 0},
        {2, 0, 0}, /* reliable datagrams */
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cm_req req = {.transport = rows[i].transport, .extended_transport = rows[i].extended};
        assert_int_equal(qp_type_of_peer(&req), rows[i].needed);
    }
}

TESTS(each_type_has_its_requester_and_responder,
      a_req_says_which_type_its_receiver_needs)
