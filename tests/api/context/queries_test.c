/* Functions that ask a device, or only compute: with what they are for, and with what they must refuse. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "local_fixture.h"

/* Exported, but in no public header. In parentheses, since each name also is a macro here (declared.py). */
const char *(ibv_get_sysfs_path)(void);
int(ibv_read_sysfs_file)(const char *directory, const char *file, char *buffer, size_t size);
int(ibv_dontfork_range)(void *base, size_t size);
int(ibv_dofork_range)(void *base, size_t size);
void(ibv_copy_ah_attr_from_kern)(struct ibv_ah_attr *, struct ib_uverbs_ah_attr *);
void(ibv_copy_qp_attr_from_kern)(struct ibv_qp_attr *, struct ib_uverbs_qp_attr *);
void(ibv_copy_path_rec_from_kern)(struct ibv_sa_path_rec *, struct ib_user_path_rec *);
void(ibv_copy_path_rec_to_kern)(struct ib_user_path_rec *, struct ibv_sa_path_rec *);

enum { PORT = 1, NO_PORT = 2 };

static void ibv_get_device_list_ends_with_NULL_and_counts_if_asked(const void *row)
{
    int count = -1;
    struct ibv_device **list = ibv_get_device_list(&count), **again = ibv_get_device_list(NULL);
    EXPECT_TRUE(list && again);
    EXPECT(count, >, 0);
    EXPECT_TRUE(!list[count] && !again[count]);
    EXPECT_TRUE(list[0] == again[0]);
    ibv_free_device_list(again);
    EXPECT_TRUE(*ibv_get_device_name(list[0]));
    ibv_free_device_list(list);
}

static void ibv_open_device_gives_a_context_and_ibv_close_device_takes_it(const void *row)
{
    struct ibv_device **list = ibv_get_device_list(NULL), stranger = {.name = "stranger"};
    struct ibv_context *context = ibv_open_device(list[0]);
    EXPECT_TRUE(context && context->device == list[0]);
    EXPECT_ERRNO(ibv_open_device(&stranger), ENODEV);
    ibv_free_device_list(list); /* the device stays while it is open */
    EXPECT_TRUE(*ibv_get_device_name(context->device));
    EXPECT(ibv_close_device(context), ==, 0);
}

static void ibv_get_device_guid_is_what_ibv_query_device_says(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_device_attr attr;
    EXPECT(ibv_query_device(context, &attr), ==, 0);
    EXPECT_TRUE(attr.node_guid == ibv_get_device_guid(context->device) && attr.node_guid);
    EXPECT(attr.phys_port_cnt, ==, 1);
    EXPECT_TRUE(memchr(attr.fw_ver, 0, sizeof attr.fw_ver));
    EXPECT_TRUE(!ibv_get_device_guid(&(struct ibv_device){.name = "stranger"}));
    ibv_close_device(context);
}

static void ibv_get_device_index_is_none_without_a_kernel(const void *row)
{
    struct ibv_context *context = local_open();
    EXPECT(ibv_get_device_index(context->device), ==, -1);
    ibv_close_device(context);
}

static void ibv_query_device_ex_says_the_same_and_more(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_device_attr plain;
    struct ibv_device_attr_ex attr;
    struct ibv_query_device_ex_input input = {.comp_mask = 1};
    memset(&plain, 0, sizeof plain); /* its padding, which clang leaves as it is */
    EXPECT(ibv_query_device(context, &plain), ==, 0);
    EXPECT(ibv_query_device_ex(context, NULL, &attr), ==, 0);
    EXPECT(memcmp(&attr.orig_attr, &plain, sizeof plain), ==, 0);
    EXPECT_TRUE(attr.hca_core_clock && attr.completion_timestamp_mask);
    EXPECT_TRUE(attr.odp_caps.general_caps & IBV_ODP_SUPPORT);
    EXPECT(ibv_query_device_ex(context, &input, &attr), ==, EINVAL);
    input.comp_mask = 0;
    EXPECT(ibv_query_device_ex(context, &input, &attr), ==, 0);
    ibv_close_device(context);
}

/* Sizes of a queue pair stay, and no call asks for an event after a number of entries. */
static void ibv_query_device_says_nothing_that_no_call_does(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_device_attr device;
    struct ibv_qp_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    EXPECT(ibv_query_device(fixture.context, &device), ==, 0);
    EXPECT(ibv_modify_qp(local_loop(fixture.pd, fixture.cq), &attr, IBV_QP_CAP), ==, EINVAL);
    EXPECT(device.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR, ==, 0);
    EXPECT(device.device_cap_flags & IBV_DEVICE_N_NOTIFY_CQ, ==, 0);
    EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
    fixture_close(&fixture);
}

static void ibv_query_port_knows_one_port(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_port_attr attr;
    memset(&attr, 0xff, sizeof attr);
    EXPECT(ibv_query_port(context, PORT, &attr), ==, 0);
    EXPECT(attr.state, ==, IBV_PORT_ACTIVE);
    EXPECT(attr.link_layer, ==, IBV_LINK_LAYER_ETHERNET);
    EXPECT(attr.lid, ==, 0);
    EXPECT(attr.port_cap_flags2, ==, 0); /* the last field: all was written */
    EXPECT(ibv_query_port(context, 0, &attr), ==, EINVAL);
    EXPECT(ibv_query_port(context, NO_PORT, &attr), ==, EINVAL);
    ibv_close_device(context);
}

static int gid_count(struct ibv_context *context)
{
    struct ibv_port_attr attr;
    EXPECT(ibv_query_port(context, PORT, &attr), ==, 0);
    return attr.gid_tbl_len;
}

static void ibv_query_gid_answers_for_the_whole_table(const void *row)
{
    struct ibv_context *context = local_open();
    union ibv_gid gid, none = {{0}};
    int count = gid_count(context);
    for (int i = count - 1; i >= 0; i--)
        EXPECT(ibv_query_gid(context, PORT, i, &gid), ==, 0);
    EXPECT_TRUE(memcmp(&gid, &none, sizeof gid));
    EXPECT(ibv_query_gid(context, PORT, count, &gid), ==, -1);
    EXPECT(ibv_query_gid(context, PORT, -1, &gid), ==, -1);
    EXPECT(ibv_query_gid(context, NO_PORT, 0, &gid), ==, -1);
    ibv_close_device(context);
}

static void ibv_query_gid_ex_says_of_what_type_a_GID_is(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    EXPECT(ibv_query_gid(context, PORT, 0, &gid), ==, 0);
    EXPECT(ibv_query_gid_ex(context, PORT, 0, &entry, 0), ==, 0);
    EXPECT(memcmp(&gid, &entry.gid, sizeof gid), ==, 0);
    EXPECT(entry.gid_type, ==, IBV_GID_TYPE_ROCE_V2);
    EXPECT(entry.port_num, ==, PORT);
    EXPECT(ibv_query_gid_ex(context, PORT, (uint32_t)gid_count(context) - 1, &entry, 0), ==, ENODATA);
    EXPECT(ibv_query_gid_ex(context, PORT, (uint32_t)gid_count(context), &entry, 0), ==, EINVAL);
    EXPECT(ibv_query_gid_ex(context, NO_PORT, 0, &entry, 0), ==, EINVAL);
    EXPECT(ibv_query_gid_ex(context, PORT, 0, &entry, 1), ==, EOPNOTSUPP);
    ibv_close_device(context);
}

static void ibv_query_gid_table_gives_the_valid_ones(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_gid_entry entries[256], entry;
    ssize_t count = ibv_query_gid_table(context, entries, COUNT(entries), 0);
    EXPECT(count, >, 0);
    for (ssize_t i = 0; i < count; i++) {
        EXPECT(ibv_query_gid_ex(context, PORT, entries[i].gid_index, &entry, 0), ==, 0);
        EXPECT(memcmp(&entry.gid, &entries[i].gid, sizeof entry.gid), ==, 0);
    }
    EXPECT(ibv_query_gid_table(context, entries, (size_t)count - 1, 0), ==, -EINVAL);
    EXPECT(ibv_query_gid_table(context, entries, COUNT(entries), 1), ==, -EOPNOTSUPP);
    ibv_close_device(context);
}

/* A release that makes the entry longer passes its own size; the bytes after ours are 0, and nothing after its size is
 * touched. */
static void ibv_query_gid_table_keeps_to_the_size_of_the_caller(const void *row)
{
    struct longer {
        struct ibv_gid_entry entry;
        uint64_t later[2];
    } entries[16], one[2];
    struct ibv_context *context = local_open();
    struct ibv_gid_entry known;
    memset(entries, 0xff, sizeof entries);
    memset(one, 0xff, sizeof one);
    ssize_t count = _ibv_query_gid_table(context, &entries[0].entry, COUNT(entries) - 1, 0, sizeof entries[0]);
    EXPECT(count, >, 1);
    for (ssize_t i = 0; i < count; i++) {
        EXPECT(ibv_query_gid_ex(context, PORT, entries[i].entry.gid_index, &known, 0), ==, 0);
        EXPECT(memcmp(&known, &entries[i].entry, sizeof known), ==, 0);
        EXPECT(entries[i].later[0] | entries[i].later[1], ==, 0);
    }
    EXPECT(entries[count].entry.gid_index, ==, UINT32_MAX);
    EXPECT(_ibv_query_gid_ex(context, PORT, 0, &one[0].entry, 0, sizeof one[0]), ==, 0);
    EXPECT(one[0].later[0] | one[0].later[1], ==, 0);
    EXPECT(one[1].entry.gid_index, ==, UINT32_MAX);
    EXPECT(_ibv_query_gid_ex(context, PORT, 0, &known, 0, sizeof known - 1), ==, EINVAL);
    EXPECT(_ibv_query_gid_table(context, &known, 1, 0, sizeof known - 1), ==, -EINVAL);
    ibv_close_device(context);
}

static void ibv_query_pkey_has_the_one_key_of_RoCE(const void *row)
{
    struct ibv_context *context = local_open();
    __be16 key = 0;
    EXPECT(ibv_query_pkey(context, PORT, 0, &key), ==, 0);
    EXPECT(ntohs(key), ==, 0xffff);
    EXPECT(ibv_query_pkey(context, PORT, 1, &key), ==, -1);
    EXPECT(ibv_query_pkey(context, PORT, -1, &key), ==, -1);
    EXPECT(ibv_query_pkey(context, NO_PORT, 0, &key), ==, -1);
    ibv_close_device(context);
}

static void ibv_get_pkey_index_finds_it(const void *row)
{
    struct ibv_context *context = local_open();
    EXPECT(ibv_get_pkey_index(context, PORT, htons(0xffff)), ==, 0);
    EXPECT(ibv_get_pkey_index(context, PORT, htons(0x8001)), ==, -1);
    EXPECT(ibv_get_pkey_index(context, NO_PORT, htons(0xffff)), ==, -1);
    ibv_close_device(context);
}

/* By a clock of the machine: the time of the processor counts the helper thread, too. */
static void wait_two_milliseconds(void)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000000ll + now.tv_nsec - begun.tv_nsec < 2000000);
}

static void ibv_query_rt_values_ex_reads_the_clock_of_completions(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_values_ex first = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, second = first, unknown = {.comp_mask = 2};
    EXPECT(ibv_query_rt_values_ex(context, &first), ==, 0);
    wait_two_milliseconds();
    EXPECT(ibv_query_rt_values_ex(context, &second), ==, 0);
    EXPECT(second.comp_mask, ==, IBV_VALUES_MASK_RAW_CLOCK);
    EXPECT((second.raw_clock.tv_sec - first.raw_clock.tv_sec) * 1000000000ll + second.raw_clock.tv_nsec -
               first.raw_clock.tv_nsec,
           >=, 1000000);
    EXPECT(ibv_query_rt_values_ex(context, &unknown), ==, EINVAL);
    ibv_close_device(context);
}

static void ibv_resolve_eth_l2_from_gid_knows_this_host(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = PORT};
    uint8_t mac[6], none[6] = {0};
    uint16_t vlan = 0;
    EXPECT(ibv_query_gid(context, PORT, 0, &attr.grh.dgid), ==, 0);
    EXPECT(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan), ==, 0);
    EXPECT_TRUE(memcmp(mac, none, sizeof mac));
    EXPECT(vlan, ==, 0xffff);
    attr.grh.dgid = (union ibv_gid){{0x20, 1, 0xd, 0xb8, [15] = 9}};
    errno = 0;
    EXPECT_TRUE(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan) != 0);
    EXPECT(errno, ==, EHOSTUNREACH);
    ibv_close_device(context);
}

/* -- what only computes */

static void ibv_node_type_str_names_what_there_is(const void *row)
{
    EXPECT(strcmp(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter"), ==, 0);
    EXPECT(strcmp(ibv_node_type_str((enum ibv_node_type)99), "unknown"), ==, 0);
    EXPECT(strcmp(ibv_node_type_str((enum ibv_node_type) - 1), ibv_node_type_str(IBV_NODE_UNKNOWN)), ==, 0);
}

static void ibv_port_state_str_names_what_there_is(const void *row)
{
    EXPECT_TRUE(strstr(ibv_port_state_str(IBV_PORT_ACTIVE), "active"));
    EXPECT(strcmp(ibv_port_state_str((enum ibv_port_state)99), "unknown"), ==, 0);
}

static void ibv_event_type_str_names_what_there_is(const void *row)
{
    for (int type = IBV_EVENT_CQ_ERR; type <= (int)NEWER_EVENT_DEVICE_SPEED_CHANGE; type++)
        EXPECT_TRUE(strcmp(ibv_event_type_str((enum ibv_event_type)type), "unknown"));
    EXPECT(strcmp(ibv_event_type_str((int)NEWER_EVENT_DEVICE_SPEED_CHANGE + 1), "unknown"), ==, 0);
}

static void ibv_wc_status_str_names_what_there_is(const void *row)
{
    for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
        EXPECT_TRUE(strcmp(ibv_wc_status_str((enum ibv_wc_status)status), "unknown"));
    EXPECT(strcmp(ibv_wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE + 1), "unknown"), ==, 0);
    EXPECT(strcmp(ibv_wc_status_str((enum ibv_wc_status) - 1), "unknown"), ==, 0);
}

static void ibv_rate_to_mult_counts_in_lanes(const void *row)
{
    EXPECT(ibv_rate_to_mult(IBV_RATE_2_5_GBPS), ==, 1);
    EXPECT(ibv_rate_to_mult(IBV_RATE_120_GBPS), ==, 48);
    EXPECT(ibv_rate_to_mult((enum ibv_rate)99), ==, -1);
    EXPECT(mult_to_ibv_rate(48), ==, IBV_RATE_120_GBPS);
    EXPECT(mult_to_ibv_rate(0), ==, IBV_RATE_MAX);
    EXPECT(mult_to_ibv_rate(3), ==, IBV_RATE_MAX);
}

static void ibv_rate_to_mbps_and_back(const void *row)
{
    for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++)
        EXPECT(mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)rate)), ==, rate);
    EXPECT(ibv_rate_to_mbps((enum ibv_rate)99), ==, -1);
    EXPECT(mbps_to_ibv_rate(1), ==, IBV_RATE_MAX);
}

static void ibv_inc_rkey_changes_the_last_byte(const void *row)
{
    EXPECT(ibv_inc_rkey(0x12345678), ==, 0x12345679);
    EXPECT(ibv_inc_rkey(0x123456ff), ==, 0x12345600);
}

static void ibv_is_qpt_supported_reads_a_mask(const void *row)
{
    EXPECT_TRUE(ibv_is_qpt_supported(1u << IBV_QPT_RC, IBV_QPT_RC));
    EXPECT_TRUE(!ibv_is_qpt_supported(1u << IBV_QPT_RC, IBV_QPT_UD));
}

static void ibv_flow_label_to_udp_sport_gives_a_dynamic_port(const void *row)
{
    for (uint32_t label = 0; label < 1u << 20; label += 997) {
        EXPECT(ibv_flow_label_to_udp_sport(label), >=, 0xc000);
        EXPECT(ibv_flow_label_to_udp_sport(label), <=, 0xffff);
    }
}

static void ibv_fork_init_has_nothing_to_do(const void *row)
{
    char page[64];
    EXPECT(ibv_fork_init(), ==, 0);
    EXPECT(ibv_is_fork_initialized(), ==, IBV_FORK_UNNEEDED);
    EXPECT(ibv_dontfork_range(page, sizeof page), ==, 0);
    EXPECT(ibv_dofork_range(page, sizeof page), ==, 0);
}

static void ibv_get_sysfs_path_is_a_directory(const void *row)
{
    EXPECT(access(ibv_get_sysfs_path(), F_OK), ==, 0);
}

static void ibv_read_sysfs_file_reads_a_line(const void *row)
{
    char directory[] = "/tmp/softverbs-sysfs-XXXXXX", path[64], text[16];
    EXPECT_TRUE(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/file", directory);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    EXPECT(write(fd, "a line\n", 7), ==, 7);
    close(fd);
    int length = ibv_read_sysfs_file(directory, "file", text, sizeof text);
    int short_of_room = ibv_read_sysfs_file(directory, "file", text + 8, 4);
    unlink(path), rmdir(directory);
    EXPECT(length, ==, 6);
    EXPECT(strcmp(text, "a line"), ==, 0);
    EXPECT(short_of_room, ==, -1);
    EXPECT(ibv_read_sysfs_file(directory, "file", text, sizeof text), ==, -1);
}

/* -- between the kernel's layouts and the library's: src/abi/marshal_test.c compares each field with the distribution
 */

static void ibv_copy_ah_attr_from_kern_takes_its_fields(const void *row)
{
    struct ib_uverbs_ah_attr from = {.dlid = 7, .port_num = 1, .is_global = 1, .grh = {.dgid = {[15] = 9}}};
    struct ibv_ah_attr to;
    ibv_copy_ah_attr_from_kern(&to, &from);
    EXPECT(to.dlid, ==, 7);
    EXPECT(to.grh.dgid.raw[15], ==, 9);
}

static void ibv_copy_qp_attr_from_kern_takes_its_fields(const void *row)
{
    struct ib_uverbs_qp_attr from = {.dest_qp_num = 5, .timeout = 14, .ah_attr = {.dlid = 3}};
    struct ibv_qp_attr to;
    ibv_copy_qp_attr_from_kern(&to, &from);
    EXPECT(to.dest_qp_num, ==, 5);
    EXPECT(to.timeout, ==, 14);
    EXPECT(to.ah_attr.dlid, ==, 3);
}

static void ibv_copy_path_rec_from_kern_takes_its_fields(const void *row)
{
    struct ib_user_path_rec from = {.sl = 3, .pkey = htons(0xffff)};
    struct ibv_sa_path_rec to;
    ibv_copy_path_rec_from_kern(&to, &from);
    EXPECT(to.sl, ==, 3);
    EXPECT(ntohs(to.pkey), ==, 0xffff);
}

static void ibv_copy_path_rec_to_kern_gives_its_fields(const void *row)
{
    struct ibv_sa_path_rec from = {.sl = 3, .pkey = htons(0xffff)};
    struct ib_user_path_rec to;
    ibv_copy_path_rec_to_kern(&to, &from);
    EXPECT(to.sl, ==, 3);
    EXPECT(ntohs(to.pkey), ==, 0xffff);
}

static void of_devices(void)
{
    CASE(ibv_get_device_list_ends_with_NULL_and_counts_if_asked);
    CASE(ibv_open_device_gives_a_context_and_ibv_close_device_takes_it);
    CASE(ibv_get_device_guid_is_what_ibv_query_device_says);
    CASE(ibv_get_device_index_is_none_without_a_kernel);
    CASE(ibv_query_device_ex_says_the_same_and_more);
    CASE(ibv_query_device_says_nothing_that_no_call_does);
    CASE(ibv_query_port_knows_one_port);
    CASE(ibv_query_gid_answers_for_the_whole_table);
    CASE(ibv_query_gid_ex_says_of_what_type_a_GID_is);
    CASE(ibv_query_gid_table_gives_the_valid_ones);
    CASE(ibv_query_gid_table_keeps_to_the_size_of_the_caller);
    CASE(ibv_query_pkey_has_the_one_key_of_RoCE);
    CASE(ibv_get_pkey_index_finds_it);
    CASE(ibv_query_rt_values_ex_reads_the_clock_of_completions);
    CASE(ibv_resolve_eth_l2_from_gid_knows_this_host);
    CASE(ibv_get_sysfs_path_is_a_directory);
    CASE(ibv_read_sysfs_file_reads_a_line);
}

static void that_compute(void)
{
    CASE(ibv_node_type_str_names_what_there_is);
    CASE(ibv_port_state_str_names_what_there_is);
    CASE(ibv_event_type_str_names_what_there_is);
    CASE(ibv_wc_status_str_names_what_there_is);
    CASE(ibv_rate_to_mult_counts_in_lanes);
    CASE(ibv_rate_to_mbps_and_back);
    CASE(ibv_inc_rkey_changes_the_last_byte);
    CASE(ibv_is_qpt_supported_reads_a_mask);
    CASE(ibv_flow_label_to_udp_sport_gives_a_dynamic_port);
    CASE(ibv_fork_init_has_nothing_to_do);
    CASE(ibv_copy_ah_attr_from_kern_takes_its_fields);
    CASE(ibv_copy_qp_attr_from_kern_takes_its_fields);
    CASE(ibv_copy_path_rec_from_kern_takes_its_fields);
    CASE(ibv_copy_path_rec_to_kern_gives_its_fields);
}

static void all(void)
{
    of_devices();
    that_compute();
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
