/* libFuzzer: what a user writes into the environment or a configuration file. The first byte says where, the rest is
 * the text. Whatever it is, the devices and limits that come of it are possible ones. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.c" /* what reads it is not public, and runs once in a process */
#include "tap/fault.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const char *const variables[] = {"SOFTVERBS_CONFIG", "SOFTVERBS_DEVICES", "SOFTVERBS_LIMITS", "SOFTVERBS_NET",
                                        "SOFTVERBS_FAULT"};
enum { CONFIG, DEVICES, LIMITS, NET, FAULT, VARIABLES };

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* In the place of config_net.c, which asks the kernel: every name that fits is an interface. */
bool config_network(struct device *device, const char *interface)
{
    if (strlen(interface) >= sizeof device->interface)
        return false;
    strcpy(device->interface, interface);
    return true;
}

static void fuzz_faults(const char *text)
{
    struct fault_plan plan;
    char why[128] = "", words[48];
    bool read = fault_parse(text, &plan, why, sizeof why);
    require(read == !*why);
    if (!read)
        return;
    require(plan.drop <= FAULT_ALWAYS && plan.duplicate <= FAULT_ALWAYS && plan.reorder <= FAULT_ALWAYS);
    require(plan.corrupt <= FAULT_ALWAYS && plan.jitter <= plan.delay && plan.delay <= 10 * NANOS_SECOND);
    for (uint64_t number = 0; number < 4; number++) {
        struct fault fault = fault_draw(&plan, plan.seed, number);
        const char *shown = fault_describe(&fault, words, sizeof words);
        require(fault.delay <= plan.delay + plan.jitter && fault.behind >= 1);
        require(!shown || (shown == words && strlen(words) < sizeof words));
    }
}

static void check_limits(const struct limits *limits)
{
    for (size_t i = 0; i < sizeof limit_names / sizeof *limit_names; i++) {
        uint32_t value;
        memcpy(&value, (const char *)limits + limit_names[i].offset, sizeof value);
        require(value >= limit_names[i].least && value <= limit_names[i].most);
    }
}

static void check_devices(void)
{
    require(device_count <= DEVICES_MAX);
    for (unsigned i = 0; i < device_count; i++) {
        require(devices[i].index == i && memchr(devices[i].name, 0, sizeof devices[i].name) && *devices[i].name);
        require(devices[i].start.gid_count <= GIDS && memchr(devices[i].interface, 0, sizeof devices[i].interface));
        check_limits(&devices[i].limits);
    }
}

/* A file without a name. */
static const char *make_file(const char *text)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("settings", MFD_CLOEXEC);
    require(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* So that what is logged is made, though nobody reads it. */
static void begin_log(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    setenv("SOFTVERBS_LOG", "error", 1);
    setenv("SOFTVERBS_LOG_FILE", "/dev/null", 1);
    log_start();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = length ? malloc(length) : NULL;
    if (!text)
        return 0;
    memcpy(text, bytes + 1, length - 1);
    text[length - 1] = 0;
    begin_log();
    unsigned where = *bytes % VARIABLES;
    for (unsigned i = 0; i < VARIABLES; i++)
        unsetenv(variables[i]);
    setenv(variables[where], where == CONFIG ? make_file(text) : text, 1);
    read_configuration();
    check_devices();
    if (where == FAULT)
        fuzz_faults(text);
    free(text);
    return 0;
}
