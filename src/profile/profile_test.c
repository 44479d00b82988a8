/* Texts that are a profile, and the places where mistakes are found. */
#include "profile/profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"

static struct profile profile;

static void expect(const char *text)
{
    struct profile_fault fault;
    profile = (struct profile){0};
    if (!profile_parse(text, &profile, &fault))
        fail_msg("line %u: %s", fault.line, fault.why);
}

static void expect_fault(const char *text, unsigned line, const char *why)
{
    struct profile_fault fault;
    profile = (struct profile){0};
    assert_false(profile_parse(text, &profile, &fault));
    assert_string_equal(fault.why, why);
    assert_int_equal(fault.line, line);
}

static void the_list_of_pci_functions_may_be_long(void **state)
{
    char text[640];
    expect("pci = pci0000:17/0000:17:01.0/0000:18:00.0,vendor=0x15b3,device=0x1021,speed=32GT/s,width=16\n");
    assert_string_equal(profile.pci,
                        "pci0000:17/0000:17:01.0/0000:18:00.0,vendor=0x15b3,device=0x1021,speed=32GT/s,width=16");
    snprintf(text, sizeof text, "pci = %0512d\n", 0);
    expect_fault(text, 1, "a text has at most 511 letters");
}

static void values_are_numbers_words_and_texts(void **state)
{
    expect("# a device\n\n  max_qp = 0x100 # comment\nmax_mtu = 1024\nqp_types = RC  UD\nfw_ver = 1.2 # x\r\n"
           "errno_qp_size = ENOMEM\nwithout ibv_create_srq = ENOSYS\nopcodes=none");
    assert_int_equal(profile_value(&profile, PROFILE_max_qp, 7), 256);
    assert_int_equal(profile_value(&profile, PROFILE_max_cq, 7), 7);
    assert_int_equal(profile_value(&profile, PROFILE_max_mtu, 0), IBV_MTU_1024);
    assert_int_equal(profile_value(&profile, PROFILE_qp_types, 0), 1 << 2 | 1 << 4);
    assert_int_equal(profile_value(&profile, PROFILE_opcodes, 7), 0);
    assert_string_equal(profile.fw_ver, "1.2");
    assert_int_equal(profile.values[PROFILE_errno_qp_size], ENOMEM);
    assert_int_equal(profile.values[PROFILE_errno_inline], EINVAL);
    assert_int_equal(profile.without[PROFILE_CALL_ibv_create_srq], ENOSYS);
    assert_int_equal(profile.without[PROFILE_CALL_ibv_create_qp], 0);
}

static void a_profile_may_be_that_of_an_efa(void **state)
{
    expect("max_qp = 1\n");
    assert_false(profile_is_efa(&profile));
    assert_false(profile_is_efa(NULL));
    expect("driver = none\n");
    assert_false(profile_is_efa(&profile));
    expect("driver = efa\nefa_caps = RDMA_READ UNSOLICITED_WRITE_RECV\nqpn_bits = 9\n");
    assert_true(profile_is_efa(&profile));
    assert_int_equal(profile_value(&profile, PROFILE_efa_caps, 0), 1 << 0 | 1 << 4);
}

static void expect_behind(const char *words, const char *why)
{
    struct profile_fault fault;
    bool fine = profile_override(words, &profile, &fault);
    assert_int_equal(fine, !why);
    if (why)
        assert_string_equal(fault.why, why);
}

static void words_behind_the_file_go_before_it(void **state)
{
    expect("max_qp = 1\nmlx5_ooo_recv_wr = 7\n");
    expect_behind("max_qp=9,max_cq=3", NULL);
    assert_int_equal(profile.values[PROFILE_max_qp], 9);
    assert_int_equal(profile.values[PROFILE_max_cq], 3);
    assert_false(profile_is_mlx5(&profile));
    expect_behind("max_qp", "\"max_qp\" is not of the form KEY=VALUE");
    expect_behind("max_pq=3", "there is no key \"max_pq\"; max_cq may be meant");
    expect_behind("max_qp=x", "\"x\" is not a number");
}

static void a_word_makes_the_device_one_of_mlx5(void **state)
{
    expect("vendor_id = 0x119f\nvendor_part_id = 4123\n");
    assert_false(profile_is_mlx5(NULL));
    expect_behind("mlx5=devx", "\"devx\" is not one of none calls queues");
    expect_behind("mlx5", NULL);
    assert_true(profile_is_mlx5(&profile) && profile_has_queues(&profile));
    assert_int_equal(profile.values[PROFILE_vendor_id], 0x02c9);
    assert_string_equal(profile.pci, "0000:17:00.0,vendor=0x15b3,device=0x101b");
    expect_behind("mlx5=none", NULL);
    assert_false(profile_is_mlx5(&profile));
    expect("pci = 0000:18:00.0\n");
    expect_behind("mlx5=calls", NULL);
    assert_true(profile_is_mlx5(&profile) && !profile_has_queues(&profile));
    assert_int_equal(profile.values[PROFILE_vendor_part_id], 4129);
    assert_string_equal(profile.pci, "0000:18:00.0");
}

static void words_stand_behind_a_path(void **state)
{
    char path[] = "/tmp/softverbs-profile-XXXXXX.profile", name[128], why[256], wanted[256];
    close(mkstemps(path, sizeof PROFILE_END - 1));
    snprintf(name, sizeof name, "%s,max_qp=5,mlx5", path);
    assert_true(profile_read(name, &profile, why, sizeof why));
    assert_int_equal(profile.values[PROFILE_max_qp], 5);
    assert_true(profile_is_mlx5(&profile));
    assert_null(strchr(profile.name, ','));
    snprintf(name, sizeof name, "%s,max_qp", path);
    assert_false(profile_read(name, &profile, why, sizeof why));
    snprintf(wanted, sizeof wanted,
             "The words \"max_qp\" behind the profile %s: \"max_qp\" is not of the form KEY=VALUE.", profile.name);
    assert_string_equal(why, wanted);
    unlink(path);
}

static void mistakes_are_found_in_their_line(void **state)
{
    expect_fault("max_qp = 1\n\nmax_qp = 2\n", 3, "max_qp is in the profile already");
    expect_fault("max_qp\n", 1, "\"max_qp\" is not of the form KEY = VALUE");
    expect_fault("max_qp = # 3\n", 1, "max_qp has no value");
    expect_fault("max_qp = 3x\n", 1, "\"3x\" is not a number");
    expect_fault("max_qp = -1\n", 1, "\"-1\" is not a number");
    expect_fault("max_qp = 4294967296\n", 1, "4294967296 is more than 4294967295, the most that there can be");
    expect_fault("\nmax_pq = 3\n", 2, "there is no key \"max_pq\"; max_cq may be meant");
    expect_fault("beauty = 3\n", 1, "there is no key \"beauty\"");
    expect_fault("active_mtu = 4096\nmax_mtu = 1024\n", 2, "active_mtu is larger than max_mtu");
    expect_fault("max_mtu = 1500\n", 1, "\"1500\" is not one of 256 512 1024 2048 4096");
    expect_fault("qp_types = RC TCP\n", 1, "\"TCP\" is not one of RC UC UD RAW_PACKET XRC_SEND XRC_RECV");
    expect_fault("driver = mlx5\n", 1, "\"mlx5\" is not one of none efa");
    expect_fault("max_recv_sge = 33\n", 1, "33 is more than 32, the most that there can be");
    expect_fault("max_rdma_size = 0x40000001\n", 1, "0x40000001 is more than 1073741824, the most that there can be");
    expect_fault("max_qp = 1\nqpn_bits = 8\n", 2, "qpn_bits is less than 9");
    expect_fault("qpn_bits = 25\n", 1, "25 is more than 24, the most that there can be");
    expect_fault("errno_count = 12\n", 1,
                 "\"12\" is not an error number that a device answers with, such as EINVAL or EOPNOTSUPP");
    expect_fault("without ibv_create_sqr = EINVAL\n", 1, "\"ibv_create_sqr\" is not a call that a device may lack");
    expect_fault("without ibv_ack_cq_events = EINVAL\n", 1,
                 "\"ibv_ack_cq_events\" is not a call that a device may lack");
    expect_fault("without ibv_create_ah = EINVAL\nwithout ibv_create_ah = EINVAL\n", 2,
                 "\"without ibv_create_ah\" is in the profile already");
    expect_fault("fw_ver = \x01\n", 1, "a text has letters, digits and signs of ASCII only");
}

static void lines_and_texts_that_are_too_long_are_found(void **state)
{
    char text[2048];
    snprintf(text, sizeof text, "max_qp = 1\n#%*s\n", 1500, "");
    expect_fault(text, 2, "the line has more than 1023 bytes");
    snprintf(text, sizeof text, "fw_ver = %064d\n", 0);
    expect_fault(text, 1, "a text has at most 63 letters");
}

static void a_file_gives_the_profile_its_name(void **state)
{
    char path[] = "/tmp/softverbs-profile-XXXXXX.profile", why[256], wanted[256];
    int file = mkstemps(path, sizeof PROFILE_END - 1);
    assert_int_equal(write(file, "max_qp = 3\n", 11), 11);
    assert_true(profile_read(path, &profile, why, sizeof why));
    snprintf(wanted, sizeof wanted, "%.*s", (int)(strlen(path) - strlen("/tmp/") - strlen(PROFILE_END)), path + 5);
    assert_string_equal(profile.name, wanted);
    assert_int_equal(write(file, "max_pq = 3\n", 11), 11);
    assert_false(profile_read(path, &profile, why, sizeof why));
    snprintf(wanted, sizeof wanted, "The profile %s, line 2: there is no key \"max_pq\"; max_cq may be meant.", path);
    assert_string_equal(why, wanted);
    assert_int_equal(ftruncate(file, 0), 0); /* so the next byte makes it one with a hole */
    assert_int_equal(write(file, "x", 1), 1);
    assert_false(profile_read(path, &profile, why, sizeof why));
    snprintf(wanted, sizeof wanted, "The profile %s can't be read: it is not text, as it has a byte of 0.", path);
    assert_string_equal(why, wanted);
    close(file);
    unlink(path);
}

static void what_is_no_file_is_no_profile(void **state)
{
    char why[256];
    assert_false(profile_read("/nowhere/x.profile", &profile, why, sizeof why));
    assert_string_equal(why, "The profile /nowhere/x.profile can't be read: No such file or directory.");
    assert_false(profile_read("/dev/zero", &profile, why, sizeof why));
    assert_string_equal(why, "The profile /dev/zero can't be read: it is not a regular file.");
}

static void what_is_not_named_stays_or_is_zero(void **state)
{
    struct ibv_device_attr attr = {.max_qp = 1, .max_cq = 2, .node_guid = 3, .phys_port_cnt = 1, .fw_ver = "a"};
    expect("max_qp = 5\n");
    profile_describe(&profile, &attr);
    assert_int_equal(attr.max_qp, 5);
    assert_int_equal(attr.max_cq, 2);
    expect("max_qp = 6\nothers = zero\nfw_ver = b\n");
    profile_describe(&profile, &attr);
    assert_int_equal(attr.max_qp, 6);
    assert_int_equal(attr.max_cq, 0);
    assert_int_equal(attr.node_guid, 3);
    assert_int_equal(attr.phys_port_cnt, 1);
    assert_string_equal(attr.fw_ver, "b");
}

static void members_of_each_size_are_written(void **state)
{
    struct ibv_device_attr_ex attr = {0};
    struct ibv_port_attr port = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_4096};
    expect("local_ca_ack_delay = 15\nmax_pkeys = 65535\nmax_mr_size = 0xffffffffffffffff\nmax_tso = 9\n"
           "bad_pkey_cntr = 4\npkey_tbl_len = 64\nactive_mtu = 1024\n");
    profile_describe_extended(&profile, &attr);
    profile_describe_port(&profile, &port);
    assert_int_equal(attr.orig_attr.local_ca_ack_delay, 15);
    assert_int_equal(attr.orig_attr.max_pkeys, 65535);
    assert_true(attr.orig_attr.max_mr_size == UINT64_MAX);
    assert_int_equal(attr.tso_caps.max_tso, 9);
    assert_int_equal(port.pkey_tbl_len, 64);
    assert_int_equal(port.active_mtu, IBV_MTU_1024);
}

static void a_port_is_no_faster_than_its_link(void **state)
{
    struct ibv_port_attr port = {.state = IBV_PORT_DOWN, .active_mtu = IBV_MTU_512, .phys_state = 3};
    expect("active_mtu = 1024\nphys_state = 5\n");
    profile_describe_port(&profile, &port);
    assert_int_equal(port.active_mtu, IBV_MTU_512);
    assert_int_equal(port.phys_state, 3);
}

static void a_link_has_a_speed_though_nothing_names_it(void **state)
{
    struct ibv_port_attr port = {.state = IBV_PORT_ACTIVE, .active_width = 2, .active_speed = 32, .sm_sl = 3};
    expect("others = zero\nactive_width = 1\n");
    profile_describe_port(&profile, &port);
    assert_int_equal(port.active_width, 1);
    assert_int_equal(port.active_speed, 32);
    assert_int_equal(port.sm_sl, 0);
}

static void sizes_are_rounded_as_the_device_does(void **state)
{
    expect("round_send_wr = power_of_two\nround_cqe = power_of_two_less_one\n");
    assert_int_equal(profile_round(&profile, PROFILE_round_recv_wr, 17), 17);
    assert_int_equal(profile_round(&profile, PROFILE_round_send_wr, 17), 32);
    assert_int_equal(profile_round(&profile, PROFILE_round_send_wr, 32), 32);
    assert_int_equal(profile_round(&profile, PROFILE_round_send_wr, 0), 0);
    assert_int_equal(profile_round(&profile, PROFILE_round_cqe, 32), 63);
    assert_int_equal(profile_round(&profile, PROFILE_round_cqe, 31), 31);
    assert_true(profile_round(&profile, PROFILE_round_send_wr, UINT32_MAX) == UINT32_MAX);
}

TESTS(values_are_numbers_words_and_texts, a_profile_may_be_that_of_an_efa, words_behind_the_file_go_before_it,
      a_word_makes_the_device_one_of_mlx5, words_stand_behind_a_path, the_list_of_pci_functions_may_be_long,
      mistakes_are_found_in_their_line, lines_and_texts_that_are_too_long_are_found, a_file_gives_the_profile_its_name,
      what_is_no_file_is_no_profile, what_is_not_named_stays_or_is_zero, members_of_each_size_are_written,
      a_port_is_no_faster_than_its_link, a_link_has_a_speed_though_nothing_names_it,
      sizes_are_rounded_as_the_device_does)
