/* Arguments and results as the text of a line. */
#include "calls/qp_types.h"
#include "trace/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct trace_line line;

static void begin(void)
{
    text_begin(&line, "", TRACE_TEXT);
}

static void reads(const char *text)
{
    line.text[line.length] = 0;
    assert_string_equal(line.text, text);
    begin();
}

static int begin_test(void **unused)
{
    begin();
    return 0;
}

static void numbers_have_the_form_of_their_argument(void **unused)
{
    static const struct {
        value_writer *write;
        const char *name;
        uint64_t value;
        const char *text;
    } rows[] = {
        {value_unsigned, "port_num", 0, "0"},
        {value_unsigned, "length", UINT64_MAX, "18446744073709551615"},
        {value_unsigned, "rkey", 0x1f, "0x1f"},
        {value_unsigned, "flags", 0, "0x0"},
        {value_unsigned, "srq_mask", IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, "IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT"},
        {value_unsigned, "attr_mask", 0, "0"},
        {value_signed, "cqe", (uint64_t)-1, "-1"},
        {value_signed, "cqe", (uint64_t)INT64_MIN, "-9223372036854775808"},
        {value_pointer, "address", 0, "NULL"},
        {value_pointer, "address", 0xabc, "0xabc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rows[i].write(&line, rows[i].name, rows[i].value);
        reads(rows[i].text);
    }
}

static void an_object_has_its_kind_and_number(void **unused)
{
    int object;
    value_argument(&line, "qp", (struct calls_subject){"qp", 0x12, 0}, value_pointer, (uintptr_t)&object);
    reads("\x1fqp=qp 0x12");
    value_argument(&line, "cq", (struct calls_subject){"cq", 7, 0}, value_pointer, (uintptr_t)&object);
    reads("\x1f"
          "cq=cq 7");
    value_argument(&line, "cq", (struct calls_subject){"cq", 7, 0}, value_pointer, 0);
    reads("\x1f"
          "cq=NULL");
}

static void an_error_has_its_name_or_its_number(void **unused)
{
    text_add_error(&line, ENOMEM);
    reads("ENOMEM");
    text_add_error(&line, 4095);
    reads("errno 4095");
}

/* The last part is cut where the room ends, and what follows is lost. */
static void a_text_without_room_ends_in_dots(void **unused)
{
    text_begin(&line, "abc", 3 + TEXT_END + 2);
    text_add(&line, "defgh");
    line.text[line.length] = 0;
    assert_string_equal(line.text, "abcde...");
}

static void a_send_has_the_members_of_its_opcode(void **unused)
{
    struct ibv_sge sge = {0x1000, 8, 0x2a};
    struct ibv_send_wr swap = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
    struct ibv_send_wr send = {.next = &swap, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(0x10)};
    send.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    swap.wr.atomic.compare_add = 1;
    swap.wr.atomic.swap = 2;
    swap.wr.atomic.rkey = 3;
    value_send_requests(&line, &send, false);
    reads("{wr_id=0, opcode=IBV_WR_SEND_WITH_IMM, sg_list=[], send_flags=IBV_SEND_FENCE|IBV_SEND_SIGNALED, "
          "imm_data=0x10}, {wr_id=7, opcode=IBV_WR_ATOMIC_CMP_AND_SWP, sg_list=[{addr=0x1000, length=8, lkey=0x2a}], "
          "remote_addr=0x0, rkey=0x3, compare_add=1, swap=2}");
    value_send_requests(&line, NULL, false);
    reads("NULL");
}

/* The union has an address of the peer's memory where a datagram has its address handle. */
static void only_a_send_names_the_receiver_of_a_datagram(void **unused)
{
    struct ibv_ah ah = {.handle = 5};
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {.remote_addr = 1, .rkey = 2}};
    struct ibv_send_wr send = {.next = &write, .opcode = IBV_WR_SEND, .wr.ud = {&ah, 0x12, 0x11}};
    value_send_requests(&line, &send, true);
    reads("{wr_id=0, opcode=IBV_WR_SEND, sg_list=[], ah=ah 5, remote_qpn=0x12, remote_qkey=0x11}, "
          "{wr_id=0, opcode=IBV_WR_RDMA_WRITE, sg_list=[], remote_addr=0x1, rkey=0x2}");
}

static void a_type_of_a_driver_has_its_names(void **unused)
{
    struct ibv_qp_init_attr init = {.qp_type = (enum ibv_qp_type)QP_KIND_OF_DRIVERS};
    struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD,
                                     .flags = EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV | EFADV_QP_FLAGS_INLINE_WRITE,
                                     .sl = 8};
    value_ibv_qp_init_attr(&line, "attr", (uintptr_t)&init);
    reads("{qp_type=DRIVER, send_cq=NULL, recv_cq=NULL, max_send_wr=0, max_recv_wr=0, max_send_sge=0, max_recv_sge=0, "
          "max_inline_data=0, sq_sig_all=0}");
    value_efadv_qp_init_attr(&line, "efa", (uintptr_t)&efa);
    reads("{driver_qp_type=EFADV_QP_DRIVER_TYPE_SRD, "
          "flags=EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV|EFADV_QP_FLAGS_INLINE_WRITE, sl=8}");
    value_unsigned(&line, "driver_qp_type", 1);
    reads("1");
}

/* The struct of rdma-core 26 ends before the capabilities. */
static void a_shorter_struct_is_not_read_after_its_end(void **unused)
{
    struct efadv_device_attr attr = {.max_sq_wr = 1, .max_rq_wr = 2, .device_caps = EFADV_DEVICE_ATTR_CAPS_RDMA_READ};
    value_efa_device(&line, &attr, offsetof(struct efadv_device_attr, device_caps));
    reads("{max_sq_wr=1, max_rq_wr=2, max_sq_sge=0, max_rq_sge=0, inline_buf_size=0}");
    value_efa_device(&line, &attr, sizeof attr);
    reads("{max_sq_wr=1, max_rq_wr=2, max_sq_sge=0, max_rq_sge=0, inline_buf_size=0, "
          "device_caps=EFADV_DEVICE_ATTR_CAPS_RDMA_READ, max_rdma_size=0}");
}

static void long_lists_end_after_four(void **unused)
{
    struct ibv_sge sges[5] = {{0, 0, 0}};
    struct ibv_recv_wr wr[5] = {{.wr_id = 0}};
    for (unsigned i = 0; i < 4; i++)
        wr[i].next = &wr[i + 1];
    value_ibv_recv_wr(&line, "wr", (uintptr_t)wr);
    reads("{wr_id=0, sg_list=[]}, {wr_id=0, sg_list=[]}, {wr_id=0, sg_list=[]}, {wr_id=0, sg_list=[]}, ...");
    struct ibv_recv_wr wide = {.sg_list = sges, .num_sge = 5};
    value_ibv_recv_wr(&line, "wr", (uintptr_t)&wide);
#define ELEMENT "{addr=0x0, length=0, lkey=0x0}, "
    reads("{wr_id=0, sg_list=[" ELEMENT ELEMENT ELEMENT ELEMENT "{...}]}");
}

static void attributes_are_those_of_the_mask(void **unused)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .port_num = 1, .qkey = 0x11, .timeout = 14, .path_mtu = IBV_MTU_1024};
    value_qp_attributes(&line, &attr, IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_PATH_MTU);
    reads("{qp_state=RTS, path_mtu=1024, qkey=0x11}");
    value_qp_attributes(&line, NULL, IBV_QP_STATE);
    reads("NULL");
}

static void a_completion_has_what_its_status_leaves_valid(void **unused)
{
    static const struct ibv_wc list[] = {
        {.wr_id = 1, .opcode = IBV_WC_RECV, .byte_len = 9, .qp_num = 0x12, .wc_flags = IBV_WC_GRH},
        {.wr_id = 2, .status = IBV_WC_RETRY_EXC_ERR, .opcode = IBV_WC_RECV, .vendor_err = 116, .qp_num = 0x12},
    };
    value_completions(&line, list, 2);
    reads(" [{wr_id=1, status=IBV_WC_SUCCESS, opcode=IBV_WC_RECV, byte_len=9, wc_flags=IBV_WC_GRH, qp_num=0x12}, "
          "{wr_id=2, status=IBV_WC_RETRY_EXC_ERR, vendor_err=116, qp_num=0x12}]");
    value_completions(&line, list, 0);
    reads(" []");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, begin_test)
    const struct CMUnitTest tests[] = {
        TEST(numbers_have_the_form_of_their_argument),
        TEST(an_object_has_its_kind_and_number),
        TEST(an_error_has_its_name_or_its_number),
        TEST(a_text_without_room_ends_in_dots),
        TEST(a_send_has_the_members_of_its_opcode),
        TEST(long_lists_end_after_four),
        TEST(attributes_are_those_of_the_mask),
        TEST(only_a_send_names_the_receiver_of_a_datagram),
        TEST(a_type_of_a_driver_has_its_names),
        TEST(a_shorter_struct_is_not_read_after_its_end),
        TEST(a_completion_has_what_its_status_leaves_valid),
    };
    return cmocka_run_group_tests_name("trace value", tests, NULL, NULL);
}
