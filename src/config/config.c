#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/complaint.h"
#include "config/config_net.h"
#include "config/device_state.h"
#include "config/identify.h"
#include "diag/log.h"

/* Generous, because nothing in software is scarce but memory, which is taken only when objects are made:
 * queue depths as the deepest adapters have them (programs size their queues by what the device says), 32 SGEs because
 * a packet is sent with one sendmsg or one process_vm_readv of a short list, 1 KiB inline because it is copied twice,
 * 128 READs and atomics at a time because the kernel's rxe has as many and some programs ask for what the other side
 * could answer (64 bytes each, for queue pairs that do so), and 1 GiB messages because verbs promise at least that
 * (IBA 9.7.1: 2^31 bytes at most). */
static const struct limits default_limits = {
    .max_qp = 65536,
    .max_qp_wr = 32768,
    .max_sge = 32,
    .max_cq = 131072,
    .max_cqe = 4194303,
    .max_mr = 1048576,
    .max_mw = 1048576,
    .max_dm = 64u << 20,
    .max_pd = 65536,
    .max_ah = 1048576,
    .max_srq = 65536,
    .max_srq_wr = 65536,
    .max_srq_sge = 32,
    .max_rd_atomic = 128,
    .max_inline = 1024,
    .max_message = 1u << 30,
    .max_groups = 1024,
    .max_mtu = 4096,
};

enum { NUMBERS = 1 << 24 }; /* of queue pairs and keys; less those that mean something else */

/* `most` is what nothing but memory stands against: the rest is as large as it can be. */
static const struct {
    const char *name;
    size_t offset;
    uint32_t least, most;
} limit_names[] = {
#define LIMIT(name, least, most)                                                                                       \
    {                                                                                                                  \
#name, offsetof(struct limits, name), least, most                                                              \
    }
    LIMIT(max_qp, 1, NUMBERS - 256), LIMIT(max_qp_wr, 1, 1 << 20),   LIMIT(max_sge, 1, 32),
    LIMIT(max_cq, 1, NUMBERS),       LIMIT(max_cqe, 1, NUMBERS - 1), LIMIT(max_mr, 1, NUMBERS - 1),
    LIMIT(max_pd, 1, NUMBERS),       LIMIT(max_ah, 1, NUMBERS),      LIMIT(max_srq, 0, NUMBERS - 256),
    LIMIT(max_srq_wr, 0, 1 << 20),   LIMIT(max_srq_sge, 0, 32),      LIMIT(max_rd_atomic, 0, UINT8_MAX),
    LIMIT(max_inline, 0, 16384),     LIMIT(max_message, 1, 1 << 30), LIMIT(max_groups, 0, 1024),
    LIMIT(max_mw, 0, NUMBERS - 1),   LIMIT(max_dm, 0, 1u << 31),
#undef LIMIT
};

enum { LINE_SIZE = 8192, PARTS_MOST = 4096 }; /* of a file with settings */

static char *capture_path, *fault_list, *counters_path, *networks;
static bool infiniband;                        /* the devices' link layer */
static unsigned long capture_mebibytes = 4096; /* what a stranger may fill of a disk */
static struct device devices[DEVICES_MAX];
static unsigned device_count;

const char *config_problem(void)
{
    unsigned count;
    config_devices(&count);
    return complaint_get(0);
}

void config_warn(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!config_problem() || atomic_flag_test_and_set(&warned))
        return;
    const char *each;
    for (unsigned i = 0; (each = complaint_get(i)); i++)
        log_always("%s", each);
}

bool config_local_gid(const union ibv_gid *gid)
{
    static const uint8_t mapped_loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    unsigned count;
    const struct device *device = config_devices(&count);
    struct device other = {0};
    if (!infiniband && !memcmp(gid->raw, mapped_loopback, sizeof mapped_loopback))
        return true;
    for (unsigned i = 0; i < count; i++)
        if (device_state_find(device_now(&device[i]), gid) >= 0)
            return true;
    /* another process may have configured more devices: their link-local GIDs differ in the last octet only */
    identify_device(&other, 0, infiniband);
    return !memcmp(gid->raw, other.start.gids[0].raw, 15) && gid->raw[15] < DEVICES_MAX;
}

/* Names of files are made of it, and it stands in JSON and on screens. */
static bool is_device_name(const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return length && length < sizeof devices->name && *name != '.' && strspn(name, letters) >= length;
}

/* Tools and /sys know devices by their names. */
static bool is_named_twice(const char *name, size_t length)
{
    for (unsigned i = 0; i < device_count; i++)
        if (!strncmp(devices[i].name, name, length) && !devices[i].name[length])
            return true;
    return false;
}

static void add_device(const char *name, size_t length)
{
    if (is_named_twice(name, length)) {
        complaint_add("device \"%.*s\" ignored: there is one of this name already", (int)length, name);
        return;
    }
    if (device_count == DEVICES_MAX || !is_device_name(name, length)) {
        complaint_add(
            "device \"%.*s\" ignored: at most %d devices, names of 1 to %d letters, digits and any of _ . - but no "
            "dot at the beginning",
            (int)length, name, DEVICES_MAX, IBV_SYSFS_NAME_MAX - 1);
        return;
    }
    struct device *device = &devices[device_count];
    memset(device, 0, sizeof *device);
    memcpy(device->name, name, length);
    device->start.mtu = default_limits.max_mtu;
    identify_device(device, device_count++, infiniband);
}

/* "3" means soft0 to soft2; nothing, what there is already; anything else is a list of names, separated by commas or
 * spaces. */
static void set_devices(const char *value)
{
    char *end;
    if (!*value)
        return;
    unsigned long number = strtoul(value, &end, 10);
    device_count = 0;
    if (end != value && !*end) {
        if (number > DEVICES_MAX)
            complaint_add("there are at most %d devices, not %s", DEVICES_MAX, value);
        char name[16];
        for (unsigned long i = 0; i < number && i < DEVICES_MAX; i++)
            add_device(name, (size_t)snprintf(name, sizeof name, "soft%lu", i));
        return;
    }
    for (const char *name = value; *name;) {
        size_t length = strcspn(name, ", ");
        if (length)
            add_device(name, length);
        name += length + strspn(name + length, ", ");
    }
}

/* By its number, or the first behind it that no device has; returns the name's length. */
static size_t make_name(char name[16], unsigned number)
{
    unsigned last = number + DEVICES_MAX;
    size_t length;
    do
        length = (size_t)snprintf(name, 16, "soft%u", number % (2 * DEVICES_MAX));
    while (is_named_twice(name, length) && number++ < last);
    return length;
}

/* The interfaces of the devices in order, separated by commas: "eth0,eth1" puts the first two on the network. There are
 * as many devices as interfaces at least. */
static void set_networks(const char *list)
{
    char *copy = *list ? strdup(list) : NULL, *rest = copy, name[16];
    unsigned index = 0;
    for (char *interface; copy && (interface = strsep(&rest, ",")); index++) {
        if (index == device_count)
            add_device(name, make_name(name, index));
        if (*interface && infiniband)
            complaint_add("device soft%u stays off the network \"%s\": RoCE is Ethernet, and the link layer is to be "
                          "InfiniBand (SOFTVERBS_LINK_LAYER=ib)",
                          index, interface);
        else if (*interface && index < device_count)
            config_network(&devices[index], interface);
    }
    free(copy);
}

static void set_limit(struct limits *limits, const char *name, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 0);
    for (size_t i = 0; i < sizeof limit_names / sizeof *limit_names; i++) {
        uint32_t *field = (uint32_t *)((char *)limits + limit_names[i].offset);
        uint32_t most = limit_names[i].most;
        if (strcmp(name, limit_names[i].name))
            continue;
        if (end == value || *end || errno || number < limit_names[i].least || number > most)
            complaint_add("limit %s=%s ignored: must be from %u to %u", name, value, limit_names[i].least, most);
        else
            *field = (uint32_t)number;
        return;
    }
    complaint_add("limit \"%s\" ignored: there is no such limit", name);
}

static void set_capture_max(const char *value)
{
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || number > ULONG_MAX >> 20)
        complaint_add("SOFTVERBS_CAPTURE_MAX=%s ignored: not a number of MiB", value);
    else
        capture_mebibytes = number;
}

static void set_link_layer(const char *value)
{
    if (strcmp(value, "ib") && strcmp(value, "ethernet"))
        complaint_add("SOFTVERBS_LINK_LAYER=%s ignored: neither \"ib\" nor \"ethernet\"", value);
    else
        infiniband = !strcmp(value, "ib");
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
}

/* One "name = value"; blanks around both are ignored, and what follows a '#'. */
static void set_line(struct limits *limits, char *line)
{
    line[strcspn(line, "#\n")] = 0;
    char *value = strchr(line, '=');
    char *name = line + strspn(line, " \t");
    if (!*name)
        return;
    if (!value) {
        complaint_add("configuration \"%s\" ignored: not of the form name = value", name);
        return;
    }
    *value++ = 0;
    value += strspn(value, " \t");
    for (char *end = name + strlen(name); end > name && isspace((unsigned char)end[-1]);)
        *--end = 0;
    for (char *end = value + strlen(value); end > value && isspace((unsigned char)end[-1]);)
        *--end = 0;
    if (!strcmp(name, "devices"))
        set_devices(value);
    else if (!strcmp(name, "capture"))
        set_text(&capture_path, value);
    else if (!strcmp(name, "capture_max"))
        set_capture_max(value);
    else if (!strcmp(name, "fault"))
        set_text(&fault_list, value);
    else if (!strcmp(name, "counters"))
        set_text(&counters_path, value);
    else if (!strcmp(name, "net"))
        set_text(&networks, value);
    else if (!strcmp(name, "link_layer"))
        set_link_layer(value);
    else
        set_limit(limits, name, value);
}

/* Each process reads it, and waits for nobody: so it is no pipe. NULL: errno says why. */
static FILE *open_configuration(const char *path)
{
    struct stat status = {0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    bool file = !fstat(descriptor, &status) && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
    FILE *stream = file ? fdopen(descriptor, "r") : NULL;
    if (stream)
        return stream;
    close(descriptor);
    errno = S_ISDIR(status.st_mode) ? EISDIR : file ? ENOMEM : EINVAL;
    return NULL;
}

/* What begins a line, and perhaps ends it. */
static void read_part(struct limits *limits, char *part, bool whole)
{
    if (whole || strchr(part, '#'))
        set_line(limits, part);
    else if (*part)
        complaint_add("a line of more than %d bytes ignored", LINE_SIZE - 2);
}

/* It ends although the file may not, as devices do. */
static void read_lines(struct limits *limits, FILE *file, const char *path)
{
    static char part[LINE_SIZE]; /* the configuration is read once, by one thread */
    bool ended = true;
    unsigned line = 1;
    for (unsigned parts = 0; parts < PARTS_MOST && fgets(part, sizeof part, file); parts++) {
        bool begins = ended;
        ended = strchr(part, '\n');
        complaint_place(path, line);
        if (begins)
            read_part(limits, part, ended || feof(file));
        line += ended;
    }
    complaint_place(NULL, 0);
}

static void read_file(struct limits *limits, const char *path)
{
    FILE *file = open_configuration(path);
    if (!file) {
        complaint_add("SOFTVERBS_CONFIG=%s can't be read: %s", path, strerror(errno));
        return;
    }
    read_lines(limits, file, path);
    fclose(file);
}

/* The environment's word counts more than the file's. */
static void read_taps(void)
{
    const char *most = secure_getenv("SOFTVERBS_CAPTURE_MAX");
    const char *capture = secure_getenv("SOFTVERBS_CAPTURE"), *faults = secure_getenv("SOFTVERBS_FAULT"),
               *counters = secure_getenv("SOFTVERBS_COUNTERS");
    if (most && *most)
        set_capture_max(most);
    if (capture)
        set_text(&capture_path, capture);
    if (faults)
        set_text(&fault_list, faults);
    if (counters)
        set_text(&counters_path, counters);
}

static void read_configuration(void)
{
    struct limits limits = default_limits;
    const char *file = secure_getenv("SOFTVERBS_CONFIG"), *names = secure_getenv("SOFTVERBS_DEVICES"),
               *list = secure_getenv("SOFTVERBS_LIMITS"), *interfaces = secure_getenv("SOFTVERBS_NET"),
               *layer = secure_getenv("SOFTVERBS_LINK_LAYER");
    infiniband = false;
    set_devices("1");
    if (file && *file)
        read_file(&limits, file);
    read_taps();
    char *copy = list ? strdup(list) : NULL, *rest = copy;
    for (char *line; copy && (line = strsep(&rest, ","));)
        set_line(&limits, line);
    free(copy);
    if (layer && *layer)
        set_link_layer(layer);
    if (names)
        set_devices(names);
    if (interfaces || networks)
        set_networks(interfaces ? interfaces : networks);
    for (unsigned i = 0; i < device_count; i++) {
        devices[i].limits = limits;
        if (infiniband)
            identify_device(&devices[i], i, infiniband);
    }
}

const struct device *config_devices(unsigned *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    log_start();
    pthread_once(&once, read_configuration);
    *count = device_count;
    return devices;
}

bool config_publish(unsigned device, const struct device_state *state)
{
    return device < device_count && device_state_publish(&devices[device], state);
}

bool config_is_infiniband(void)
{
    unsigned count;
    config_devices(&count);
    return infiniband;
}

const char *config_capture(void)
{
    unsigned count;
    config_devices(&count);
    return capture_path;
}

uint64_t config_capture_max(void)
{
    unsigned count;
    config_devices(&count);
    return (uint64_t)capture_mebibytes << 20;
}

const char *config_fault(void)
{
    unsigned count;
    config_devices(&count);
    return fault_list;
}

const char *config_counters(void)
{
    unsigned count;
    config_devices(&count);
    return counters_path;
}
