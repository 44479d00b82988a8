/* The device refuses the features that its profile lacks, with the error that the profile says, and has the rest. Run
 * by profiles_test.py under `softverbs run --profile`, with the profile as argument and a log in $SOFTVERBS_LOG_FILE.
 * Prints TAP: a case for each feature that this profile lacks or bounds. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "diag/diag.h"
#include "profile/profile.h"

/* Declarations of releases after 44. */
struct newer_dmah;
struct newer_dmah_init_attr;
struct newer_dmah *ibv_alloc_dmah(struct ibv_context *, const struct newer_dmah_init_attr *);
struct newer_comp_cntr_caps;
struct newer_comp_cntr;
struct newer_comp_cntr_init_attr;
int _ibv_query_comp_cntr_caps(struct ibv_context *, struct newer_comp_cntr_caps *, size_t);
struct newer_comp_cntr *ibv_create_comp_cntr(struct ibv_context *, const struct newer_comp_cntr_init_attr *);

static struct profile profile;
static unsigned cases, failures;
static int log_file = -1;

static struct ibv_context *context;
static struct ibv_device_attr device;
static struct ibv_port_attr port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static _Alignas(4096) char memory[4096];

/* --- what is checked */

static void report(bool holds, const char *what, const char *why)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++cases, what);
    if (!holds)
        printf("# %s\n", why);
    failures += !holds;
}

/* The lines that the log got since the last call. */
static const char *news(void)
{
    static char text[1 << 16];
    ssize_t length = read(log_file, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    return text;
}

/* A call was refused with this errno, and its line names the profile and has this reason; an answer of 0 is success. */
static void expect_refusal(const char *what, int answer, int error, enum reason reason)
{
    char why[512], named[PROFILE_NAME_SIZE + 16], number[32];
    const char *line = news();
    snprintf(named, sizeof named, "profile %s: ", profile.name);
    snprintf(number, sizeof number, "(reason %u)", (unsigned)reason);
    snprintf(why, sizeof why, "errno %d in place of %d; the log: %.300s", answer, error, line);
    report(answer == error && strstr(line, named) && strstr(line, number), what, why);
}

static void expect_success(const char *what, int answer)
{
    char why[512];
    snprintf(why, sizeof why, "errno %d; the log: %.300s", answer, news());
    report(!answer, what, why);
}

/* The error number of a call that returns a pointer, or 0. */
#define MADE(call)                                                                                                     \
    __extension__({                                                                                                    \
        errno = 0;                                                                                                     \
        (call) ? 0 : errno;                                                                                            \
    })

static bool has(enum profile_key key, unsigned bit)
{
    return !profile.set[key] || (profile.values[key] >> bit & 1);
}

static int error_of(enum profile_key key)
{
    return (int)profile.values[key];
}

/* --- attributes */

/* Where an adapter has more than softverbs, the device says its own number. */
#define AT_MOST(described, told) ((described) = (described) > (told) ? (told) : (described))

static void check_device(void)
{
    struct ibv_device_attr described = device;
    profile_describe(&profile, &described);
    AT_MOST(described.max_sge, device.max_sge);
    AT_MOST(described.max_srq_sge, device.max_srq_sge);
    report(!memcmp(&described, &device, sizeof device), "the attributes of the device",
           "are others than the profile's");
}

static void check_extended(void)
{
    struct ibv_device_attr_ex told = {.comp_mask = 0}, described;
    if (profile.without[PROFILE_CALL_ibv_query_device_ex] || ibv_query_device_ex(context, NULL, &told))
        return;
    described = told;
    profile_describe_extended(&profile, &described);
    described.orig_attr = told.orig_attr;
    report(!memcmp(&described, &told, sizeof told), "the extended attributes", "are others than the profile's");
}

static void check_port(void)
{
    struct ibv_port_attr described = port;
    profile_describe_port(&profile, &described);
    AT_MOST(described.max_msg_sz, port.max_msg_sz);
    report(!memcmp(&described, &port, sizeof port), "the attributes of the port", "are others than the profile's");
}

static void check_kind(void)
{
    struct ibv_device *kind = context->device;
    report(profile_value(&profile, PROFILE_node_type, (uint64_t)kind->node_type) == (uint64_t)kind->node_type,
           "node_type", "is another than the profile's");
    report(profile_value(&profile, PROFILE_transport, (uint64_t)kind->transport_type) == (uint64_t)kind->transport_type,
           "transport", "is another than the profile's");
}

static void check_gid_type(void)
{
    struct ibv_gid_entry entry;
    if (!profile.set[PROFILE_gid_type] || profile.without[PROFILE_CALL__ibv_query_gid_ex])
        return;
    report(!ibv_query_gid_ex(context, 1, 0, &entry, 0) && entry.gid_type == profile.values[PROFILE_gid_type],
           "gid_type", "is another than the profile's");
}

/* Programs give as much room as the port says that its table has. */
static void check_gid_table(void)
{
    struct ibv_gid_entry entries[256];
    size_t room = (size_t)port.gid_tbl_len;
    if (!profile.set[PROFILE_gid_tbl_len] || room > 256 || profile.without[PROFILE_CALL__ibv_query_gid_table])
        return;
    ssize_t count = ibv_query_gid_table(context, entries, room, 0);
    bool holds = count > 0 && (size_t)count <= room;
    for (ssize_t i = 0; holds && i < count; i++)
        holds = entries[i].gid_index < room;
    report(holds && ibv_query_gid_table(context, entries, (size_t)count - 1, 0) == -EINVAL,
           "the table of GIDs has as many as gid_tbl_len", "its length is another");
    news();
}

/* --- queue pairs */

static const struct {
    enum ibv_qp_type type;
    const char *name;
} types[] = {{IBV_QPT_RC, "RC"},
             {IBV_QPT_UC, "UC"},
             {IBV_QPT_UD, "UD"},
             {IBV_QPT_RAW_PACKET, "RAW_PACKET"},
             {IBV_QPT_XRC_SEND, "XRC_SEND"},
             {IBV_QPT_XRC_RECV, "XRC_RECV"}};

static struct ibv_qp_init_attr plain(void)
{
    enum ibv_qp_type type = has(PROFILE_qp_types, IBV_QPT_RC)   ? IBV_QPT_RC
                            : has(PROFILE_qp_types, IBV_QPT_UD) ? IBV_QPT_UD
                                                                : IBV_QPT_UC;
    return (struct ibv_qp_init_attr){.send_cq = cq,
                                     .recv_cq = cq,
                                     .qp_type = type,
                                     .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
}

static int create(struct ibv_qp_init_attr attr)
{
    errno = 0;
    struct ibv_qp *made = ibv_create_qp(pd, &attr);
    int error = made ? 0 : errno;
    if (made)
        ibv_destroy_qp(made);
    return error;
}

static void check_types(void)
{
    char what[64];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct ibv_qp_init_attr attr = plain();
        attr.qp_type = types[i].type;
        snprintf(what, sizeof what, "ibv_create_qp of %s", types[i].name);
        if (!has(PROFILE_qp_types, types[i].type))
            expect_refusal(what, create(attr), error_of(PROFILE_errno_qp_type), REASON_PROFILE_QP_TYPE);
        else if (types[i].type <= IBV_QPT_UD)
            expect_success(what, create(attr));
    }
}

/* The most of one queue: by the key of the queue, or else what ibv_query_device says. */
static uint32_t most_of(enum profile_key key, int both)
{
    return (uint32_t)profile_value(&profile, key, (uint64_t)both);
}

/* One more than the most of a queue, whose place in the capabilities is `at`. */
static void check_size(const char *what, size_t at, uint32_t most)
{
    struct ibv_qp_init_attr attr = plain();
    *(uint32_t *)((char *)&attr.cap + at) = most + 1;
    expect_refusal(what, create(attr), error_of(PROFILE_errno_qp_size), REASON_PROFILE_QP_SIZE);
}

#define SIZE_OF_QUEUE(name, both)                                                                                      \
    check_size("one above the most of " #name, offsetof(struct ibv_qp_cap, name), most_of(PROFILE_##name, device.both))

static void check_sizes(void)
{
    struct ibv_qp_init_attr most = plain(), over;
    most.cap.max_send_sge = most_of(PROFILE_max_send_sge, device.max_sge);
    most.cap.max_recv_sge = most_of(PROFILE_max_recv_sge, device.max_sge);
    expect_success("as many elements as there may be", create(most));
    SIZE_OF_QUEUE(max_send_sge, max_sge);
    SIZE_OF_QUEUE(max_recv_sge, max_sge);
    SIZE_OF_QUEUE(max_send_wr, max_qp_wr);
    SIZE_OF_QUEUE(max_recv_wr, max_qp_wr);
    if (profile.set[PROFILE_max_recv_wr]) {
        most.cap.max_recv_wr = (uint32_t)profile.values[PROFILE_max_recv_wr];
        expect_success("max_recv_wr receives", create(most));
    }
    if (!profile.set[PROFILE_max_inline])
        return;
    over = plain(), over.cap.max_inline_data = (uint32_t)profile.values[PROFILE_max_inline];
    expect_success("max_inline bytes inline", create(over));
    over.cap.max_inline_data++;
    expect_refusal("one byte more inline", create(over), error_of(PROFILE_errno_inline), REASON_PROFILE_INLINE);
}

static void check_rounding(uint32_t asked)
{
    char what[64], why[128];
    struct ibv_qp_init_attr attr = plain();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = asked;
    struct ibv_qp *made = ibv_create_qp(pd, &attr);
    uint32_t send = profile_round(&profile, PROFILE_round_send_wr, asked);
    uint32_t receive = profile_round(&profile, PROFILE_round_recv_wr, asked);
    snprintf(what, sizeof what, "sizes of queues are rounded, of %u", asked);
    snprintf(why, sizeof why, "they became %u and %u, not %u and %u", attr.cap.max_send_wr, attr.cap.max_recv_wr, send,
             receive);
    report(made && attr.cap.max_send_wr == send && attr.cap.max_recv_wr == receive, what, why);
    if (made)
        ibv_destroy_qp(made);
}

static void check_rounding_of_srqs(void)
{
    char why[128];
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 9, .max_sge = 1}};
    struct ibv_srq *made = profile.set[PROFILE_round_srq_wr] ? ibv_create_srq(pd, &attr) : NULL;
    uint32_t wanted = profile_round(&profile, PROFILE_round_srq_wr, 9);
    if (!made)
        return;
    snprintf(why, sizeof why, "9 became %u, not %u", attr.attr.max_wr, wanted);
    report(attr.attr.max_wr == wanted, "sizes of SRQs are rounded", why);
    ibv_destroy_srq(made);
}

static void check_rounding_of_cqs(void)
{
    char why[128];
    if (!profile.set[PROFILE_round_cqe])
        return;
    struct ibv_cq *other = ibv_create_cq(context, 9, NULL, NULL, 0);
    uint32_t entries = profile_round(&profile, PROFILE_round_cqe, 9);
    snprintf(why, sizeof why, "9 became %d, not %u", other ? other->cqe : -1, entries);
    report(other && (uint32_t)other->cqe == entries, "sizes of CQs are rounded", why);
    if (other)
        ibv_destroy_cq(other);
}

/* Where creating them by ibv_create_qp_ex is possible at all. */
static void check_send_ops(void)
{
    if (profile.without[PROFILE_CALL_ibv_create_qp_ex] || !profile.set[PROFILE_send_ops])
        return;
    for (unsigned i = 0; i < 16; i++) {
        struct ibv_qp_init_attr from = plain();
        struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                           .recv_cq = cq,
                                           .qp_type = from.qp_type,
                                           .cap = from.cap,
                                           .pd = pd,
                                           .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                           .send_ops_flags = UINT64_C(1) << i};
        char what[64];
        if (has(PROFILE_send_ops, i))
            continue;
        snprintf(what, sizeof what, "ibv_create_qp_ex with builders of operation %u", i);
        expect_refusal(what, MADE(ibv_create_qp_ex(context, &attr)), EOPNOTSUPP, REASON_PROFILE_SEND_OPS);
    }
}

/* Of a queue pair with one element that asks for no inline data. */
static void check_unasked_inline_data(void)
{
    char why[128];
    struct ibv_qp_init_attr attr = plain();
    uint64_t most = profile_value(&profile, PROFILE_max_inline, UINT32_MAX);
    uint64_t room = profile_value(&profile, PROFILE_spare_inline, sizeof(struct ibv_sge));
    struct ibv_qp *made = ibv_create_qp(pd, &attr);
    room = room < most ? room : most;
    snprintf(why, sizeof why, "%u bytes, and not %u", attr.cap.max_inline_data, (unsigned)room);
    report(made && attr.cap.max_inline_data == room, "inline data that was not asked for", why);
    if (made)
        ibv_destroy_qp(made);
}

/* --- work */

static void check_opcodes(void)
{
    for (unsigned opcode = 0; opcode < 16; opcode++) {
        struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)opcode}, *bad = NULL;
        char what[64];
        if (has(PROFILE_opcodes, opcode))
            continue;
        snprintf(what, sizeof what, "ibv_post_send of opcode %u", opcode);
        int answer = ibv_post_send(qp, &wr, &bad);
        expect_refusal(what, bad == &wr ? answer : -1, error_of(PROFILE_errno_opcode), REASON_PROFILE_OPCODE);
    }
}

/* Posts a list that may not be written. */
static void check_constant_list(void)
{
    struct ibv_send_wr *list = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                       *bad = NULL;
    unsigned good = 0, lacking = 0;
    while (good < 16 && !has(PROFILE_opcodes, good))
        good++;
    while (lacking < 16 && has(PROFILE_opcodes, lacking))
        lacking++;
    if (list == MAP_FAILED || good == 16 || lacking == 16)
        return;
    list[0] = (struct ibv_send_wr){.opcode = (enum ibv_wr_opcode)good, .next = &list[1]};
    list[1] = (struct ibv_send_wr){.opcode = (enum ibv_wr_opcode)lacking};
    mprotect(list, 4096, PROT_READ);
    if (!ibv_post_send(qp, list, &bad) || (bad != list && bad != list + 1))
        printf("a constant list of work requests is not refused at one of them\n");
    munmap(list, 4096);
}

/* --- CQs and SRQs */

static bool has_event(struct ibv_comp_channel *channel)
{
    struct pollfd file = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *of;
    void *of_context;
    if (poll(&file, 1, 0) <= 0 || ibv_get_cq_event(channel, &of, &of_context))
        return false;
    ibv_ack_cq_events(of, 1);
    return true;
}

/* Adds an entry to the receive queue's CQ, as the queue pair is in the error state. */
static bool add_entry(struct ibv_qp *to)
{
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    return !ibv_post_recv(to, &wr, &bad);
}

/* An entry is there, then the queue is armed, then another entry comes. */
static void check_arming(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *armed = channel ? ibv_create_cq(context, 4, NULL, channel, 0) : NULL;
    struct ibv_qp_init_attr attr = plain();
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    attr.send_cq = attr.recv_cq = armed;
    attr.cap.max_recv_wr = 2;
    struct ibv_qp *made = armed ? ibv_create_qp(pd, &attr) : NULL;
    bool ready = made && !ibv_modify_qp(made, &error, IBV_QP_STATE) && add_entry(made) && !ibv_req_notify_cq(armed, 0);
    bool there = ready && has_event(channel), came = ready && add_entry(made) && has_event(channel);
    bool only_new = profile_value(&profile, PROFILE_arms, 0);
    report(ready && there == !only_new, "an event for an entry that was there before arming",
           only_new ? "is raised" : "is not raised");
    report(ready && (there || came), "an event for an entry that comes after arming", "is not raised");
    if (made)
        ibv_destroy_qp(made);
    if (armed)
        ibv_destroy_cq(armed);
    if (channel)
        ibv_destroy_comp_channel(channel);
}

static void check_readers(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
    if (profile.without[PROFILE_CALL_ibv_create_cq_ex])
        return;
    struct ibv_cq_ex *made = ibv_create_cq_ex(context, &attr);
    report(made && made->read_opcode && made->read_byte_len, "a reader that wc_flags asked for", "is missing");
    report(made && !made->read_imm_data && !made->read_completion_ts, "a reader that wc_flags did not ask for",
           "is there");
    if (made)
        ibv_destroy_cq(ibv_cq_ex_to_cq(made));
}

static void check_completion_queues(void)
{
    if (device.max_cqe > 0 && device.max_cqe < 1 << 24)
        expect_refusal("ibv_create_cq above max_cqe", MADE(ibv_create_cq(context, device.max_cqe + 1, NULL, NULL, 0)),
                       error_of(PROFILE_errno_cq_size), REASON_PROFILE_CQ_SIZE);
    if (profile.without[PROFILE_CALL_ibv_create_cq_ex] || !profile.set[PROFILE_wc_flags])
        return;
    for (unsigned i = 0; i < 12; i++) {
        struct ibv_cq_init_attr_ex attr = {.cqe = 1, .wc_flags = UINT64_C(1) << i};
        char what[64];
        if (has(PROFILE_wc_flags, i))
            continue;
        snprintf(what, sizeof what, "ibv_create_cq_ex with wc_flags 0x%x", 1u << i);
        expect_refusal(what, MADE(ibv_create_cq_ex(context, &attr)), EOPNOTSUPP, REASON_PROFILE_CQ_FLAGS);
    }
}

static void check_shared_receive_queues(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = (uint32_t)device.max_srq_wr + 1, .max_sge = 1}};
    if (profile.without[PROFILE_CALL_ibv_create_srq])
        return;
    if (profile.set[PROFILE_max_srq] && !device.max_srq) {
        attr.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = 1};
        expect_refusal("ibv_create_srq where there are none", MADE(ibv_create_srq(pd, &attr)),
                       error_of(PROFILE_errno_count), REASON_PROFILE_COUNT);
        return;
    }
    expect_refusal("max_wr above max_srq_wr", MADE(ibv_create_srq(pd, &attr)), error_of(PROFILE_errno_srq_size),
                   REASON_PROFILE_SRQ_SIZE);
    attr.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)device.max_srq_sge + 1};
    expect_refusal("max_sge above max_srq_sge", MADE(ibv_create_srq(pd, &attr)), error_of(PROFILE_errno_srq_size),
                   REASON_PROFILE_SRQ_SIZE);
}

/* --- memory */

/* A file beside this program, which may be on a disk. */
static char *map_file(char *name, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", name, size - 8);
    if (length <= 0 || (size_t)length >= size - 8)
        return MAP_FAILED;
    strcpy(name + length, ".XXXXXX");
    int file = mkstemp(name);
    char *mapped = file < 0 || ftruncate(file, sizeof memory)
                       ? MAP_FAILED
                       : mmap(NULL, sizeof memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return mapped;
}

/* ext4, XFS, F2FS and NFS; of others nothing is checked. */
static void check_file(void)
{
    char name[4096], what[] = "a shared mapping of a file for writing";
    struct statfs system;
    char *mapped = map_file(name, sizeof name);
    bool known = mapped != MAP_FAILED && !statfs(name, &system) &&
                 (system.f_type == 0xef53 || system.f_type == 0x58465342 ||
                  system.f_type == (typeof(system.f_type))0xf2f52010 || system.f_type == 0x6969);
    if (!known)
        printf("ok %u - %s # SKIP the build is on another file system\n", ++cases, what);
    else if (profile_value(&profile, PROFILE_files, 0))
        report(!MADE((ibv_reg_mr)(pd, mapped, sizeof memory, IBV_ACCESS_LOCAL_WRITE)), what, "is refused");
    else
        expect_refusal(what, MADE((ibv_reg_mr)(pd, mapped, sizeof memory, IBV_ACCESS_LOCAL_WRITE)), EFAULT,
                       REASON_PROFILE_FILE);
    if (known)
        report(!MADE((ibv_reg_mr)(pd, mapped, sizeof memory, 0)), "a shared mapping of a file for reading",
               "is refused");
    if (mapped != MAP_FAILED)
        unlink(name);
}

static void check_memory(void)
{
    check_file();
    for (unsigned i = 1; i < 20; i++) {
        char what[64];
        if (has(PROFILE_access, i))
            continue;
        snprintf(what, sizeof what, "ibv_reg_mr with access 0x%x", 1u << i);
        int answer = MADE((ibv_reg_mr)(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | 1 << i));
        expect_refusal(what, answer, error_of(PROFILE_errno_access), REASON_PROFILE_ACCESS);
    }
    if (profile.set[PROFILE_max_mr_size] && device.max_mr_size + 1 > device.max_mr_size)
        expect_refusal("ibv_reg_mr above max_mr_size",
                       MADE((ibv_reg_mr)(pd, memory, device.max_mr_size + 1, IBV_ACCESS_LOCAL_WRITE)),
                       error_of(PROFILE_errno_mr_size), REASON_PROFILE_MR_SIZE);
    for (unsigned type = 1; type <= 2 && !profile.without[PROFILE_CALL_ibv_alloc_mw]; type++)
        if (!has(PROFILE_mw_types, type))
            expect_refusal(type == 1 ? "memory windows of type 1" : "memory windows of type 2",
                           MADE(ibv_alloc_mw(pd, (enum ibv_mw_type)type)), EINVAL, REASON_PROFILE_MW_TYPE);
}

/* --- the port */

static void check_path(void)
{
    union ibv_gid gid;
    struct ibv_qp_attr attr = {.path_mtu = (enum ibv_mtu)(port.max_mtu + 1)};
    if (port.max_mtu < IBV_MTU_4096)
        expect_refusal("path_mtu above max_mtu", ibv_modify_qp(qp, &attr, IBV_QP_PATH_MTU), EINVAL, REASON_PROFILE_MTU);
    errno = 0;
    if (profile.set[PROFILE_gid_tbl_len])
        expect_refusal("ibv_query_gid behind the table", ibv_query_gid(context, 1, port.gid_tbl_len, &gid) ? errno : 0,
                       EINVAL, REASON_PROFILE_GID);
    struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh.sgid_index = (uint8_t)port.gid_tbl_len};
    bool looks = profile_value(&profile, PROFILE_transport, IBV_TRANSPORT_IB) != IBV_TRANSPORT_IWARP;
    if (profile.set[PROFILE_gid_tbl_len] && port.gid_tbl_len <= UINT8_MAX && looks &&
        !profile.without[PROFILE_CALL_ibv_create_ah])
        expect_refusal("ibv_create_ah with a GID behind the table", MADE(ibv_create_ah(pd, &address)), EINVAL,
                       REASON_PROFILE_GID);
    attr = (struct ibv_qp_attr){.max_rd_atomic = (uint8_t)(device.max_qp_init_rd_atom + 1)};
    if (profile.set[PROFILE_max_qp_init_rd_atom] && device.max_qp_init_rd_atom < 255)
        expect_refusal("max_rd_atomic above max_qp_init_rd_atom", ibv_modify_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC),
                       EINVAL, REASON_PROFILE_READS);
    attr = (struct ibv_qp_attr){.max_dest_rd_atomic = (uint8_t)(device.max_qp_rd_atom + 1)};
    if (profile.set[PROFILE_max_qp_rd_atom] && device.max_qp_rd_atom < 255)
        expect_refusal("max_dest_rd_atomic above max_qp_rd_atom", ibv_modify_qp(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC),
                       EINVAL, REASON_PROFILE_READS);
}

/* Whatever the length of the tables, a port that the device does not have has no entry. */
static void check_no_port(uint8_t number, int index)
{
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    struct ibv_port_attr attr;
    __be16 pkey;
    char why[128];
    errno = 0;
    int of_gid = ibv_query_gid(context, number, index, &gid), error = errno;
    int of_entry = ibv_query_gid_ex(context, number, (uint32_t)index, &entry, 0);
    int of_port = ibv_query_port(context, number, &attr), of_pkey = ibv_query_pkey(context, number, index, &pkey);
    snprintf(why, sizeof why, "port %u, index %d: %d (errno %d), %d, %d, %d", number, index, of_gid, error, of_entry,
             of_port, of_pkey);
    report(of_gid == -1 && error == EINVAL && of_entry == EINVAL && of_port == EINVAL && of_pkey == -1,
           "a port that is not there", why);
}

static void check_no_ports(void)
{
    for (unsigned number = 0; number < 4; number += 2)
        for (int index = 0; index < 1 << 17; index = index * 4 + 1)
            check_no_port((uint8_t)number, index);
    news();
}

/* --- calls that it lacks */

static struct ibv_srq no_srq; /* where the library looks at the context alone before it refuses */
static struct ibv_dm no_dm;
static struct ibv_mr no_mr;

/* How each is called; whether it would succeed otherwise does not matter. */
/* clang-format off */
#define TRIALS(trial) \
    trial(ibv_query_device_ex, ibv_query_device_ex(context, NULL, &(struct ibv_device_attr_ex){0})) \
    trial(ibv_attach_mcast, ibv_attach_mcast(qp, &(union ibv_gid){0}, 0)) \
    trial(ibv_create_ah, MADE(ibv_create_ah(pd, &(struct ibv_ah_attr){0}))) \
    trial(ibv_alloc_dm, MADE(ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){.length = 8}))) \
    trial(ibv_alloc_dmah, MADE(ibv_alloc_dmah(context, NULL))) \
    trial(_ibv_query_comp_cntr_caps, _ibv_query_comp_cntr_caps(context, (struct newer_comp_cntr_caps *)(char[64]){0}, 0)) \
    trial(ibv_create_comp_cntr, MADE(ibv_create_comp_cntr(context, NULL))) \
    trial(ibv_alloc_mw, MADE(ibv_alloc_mw(pd, IBV_MW_TYPE_2))) \
    trial(ibv_alloc_null_mr, MADE(ibv_alloc_null_mr(pd))) \
    trial(ibv_alloc_td, MADE(ibv_alloc_td(context, &(struct ibv_td_init_attr){0}))) \
    trial(ibv_alloc_parent_domain, MADE(ibv_alloc_parent_domain(context, &(struct ibv_parent_domain_init_attr){.pd = pd}))) \
    trial(ibv_open_xrcd, MADE(ibv_open_xrcd(context, &(struct ibv_xrcd_init_attr){.comp_mask = 3, .fd = -1}))) \
    trial(ibv_advise_mr, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &(struct ibv_sge){0}, 1)) \
    trial(ibv_create_cq_ex, MADE(ibv_create_cq_ex(context, &(struct ibv_cq_init_attr_ex){.cqe = 1}))) \
    trial(ibv_modify_cq, ibv_modify_cq(cq, &(struct ibv_modify_cq_attr){.attr_mask = IBV_CQ_ATTR_MODERATE})) \
    trial(ibv_resize_cq, ibv_resize_cq(cq, 2)) \
    trial(ibv_create_srq, MADE(ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}}))) \
    trial(ibv_create_srq_ex, MADE(ibv_create_srq_ex(context, &(struct ibv_srq_init_attr_ex){.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_XRC, .pd = pd}))) \
    trial(ibv_modify_srq, ibv_modify_srq(&no_srq, &(struct ibv_srq_attr){0}, IBV_SRQ_LIMIT)) \
    trial(ibv_query_srq, ibv_query_srq(&no_srq, &(struct ibv_srq_attr){0})) \
    trial(ibv_get_srq_num, ibv_get_srq_num(&no_srq, &(uint32_t){0})) \
    trial(ibv_create_qp_ex, MADE(ibv_create_qp_ex(context, &(struct ibv_qp_init_attr_ex){.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, .pd = pd, .qp_type = plain().qp_type, .cap = plain().cap, .send_cq = cq, .recv_cq = cq}))) \
    trial(ibv_open_qp, MADE(ibv_open_qp(context, &(struct ibv_qp_open_attr){0}))) \
    trial(ibv_modify_qp_rate_limit, ibv_modify_qp_rate_limit(qp, &(struct ibv_qp_rate_limit_attr){0})) \
    trial(ibv_query_ece, ibv_query_ece(qp, &(struct ibv_ece){0})) \
    trial(ibv_set_ece, ibv_set_ece(qp, &(struct ibv_ece){0})) \
    trial(ibv_create_wq, MADE(ibv_create_wq(context, &(struct ibv_wq_init_attr){0}))) \
    trial(ibv_create_rwq_ind_table, MADE(ibv_create_rwq_ind_table(context, &(struct ibv_rwq_ind_table_init_attr){0}))) \
    trial(ibv_create_flow, MADE(ibv_create_flow(qp, &(struct ibv_flow_attr){0}))) \
    trial(ibv_create_counters, MADE(ibv_create_counters(context, &(struct ibv_counters_init_attr){0}))) \
    trial(ibv_query_rt_values_ex, ibv_query_rt_values_ex(context, &(struct ibv_values_ex){0})) \
    trial(ibv_reg_dm_mr, MADE(ibv_reg_dm_mr(pd, &no_dm, 0, 8, 0))) \
    trial(ibv_reg_dmabuf_mr, MADE(ibv_reg_dmabuf_mr(pd, 0, 8, 0, -1, 0))) \
    trial(ibv_rereg_mr, ibv_rereg_mr(&no_mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) ? errno : 0) \
    trial(ibv_import_mr, MADE(ibv_import_mr(pd, 1))) \
    trial(ibv_import_pd, MADE(ibv_import_pd(context, 1))) \
    trial(ibv_import_dm, MADE(ibv_import_dm(context, 1)))
/* clang-format on */

#define FUNCTION(name, call)                                                                                           \
    static int try_##name(void)                                                                                        \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
TRIALS(FUNCTION)

/* -1: this program does not know how to make it. */
static int lacks(enum profile_call call)
{
    static int (*const trials[PROFILE_CALLS])(void) = {
#define ENTRY(name, call) [PROFILE_CALL_##name] = try_##name,
        TRIALS(ENTRY)
#undef ENTRY
    };
    return trials[call] ? trials[call]() : -1;
}

static void check_calls(void)
{
    for (enum profile_call call = 0; call < PROFILE_CALLS; call++)
        if (profile.without[call]) {
            news();
            expect_refusal(profile_call_name(call), lacks(call), profile.without[call], REASON_PROFILE_CALL);
        }
}

static bool set_up(const char *path)
{
    char why[512];
    const char *log = getenv("SOFTVERBS_LOG_FILE");
    struct ibv_device **list = ibv_get_device_list(NULL);
    log_file = log ? open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    context = list && *list ? ibv_open_device(*list) : NULL;
    if (!profile_read(path, &profile, why, sizeof why) || !context || log_file < 0)
        return false;
    struct ibv_qp_init_attr attr;
    pd = ibv_alloc_pd(context);
    no_srq.context = no_dm.context = no_mr.context = context;
    no_mr.pd = pd;
    cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    attr = plain();
    qp = pd && cq ? ibv_create_qp(pd, &attr) : NULL;
    news();
    return qp && !ibv_query_device(context, &device) && !ibv_query_port(context, 1, &port);
}

int main(int count, char **arguments)
{
    if (count != 2 || !set_up(arguments[1])) {
        printf("Bail out! no device or no profile\n");
        return 1;
    }
    check_device();
    check_extended();
    check_port();
    check_kind();
    check_gid_type();
    check_gid_table();
    check_types();
    check_sizes();
    check_unasked_inline_data();
    check_rounding(1);
    check_rounding(9);
    check_rounding_of_srqs();
    check_rounding_of_cqs();
    check_send_ops();
    check_opcodes();
    check_constant_list();
    check_completion_queues();
    check_arming();
    check_readers();
    check_shared_receive_queues();
    check_memory();
    check_path();
    check_no_ports();
    check_calls();
    printf("1..%u\n", cases);
    return failures ? 1 : 0;
}
