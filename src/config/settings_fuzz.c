/* libFuzzer: text that a user writes into the environment or a configuration file. The first byte chooses the place,
 * the rest is the text. For any text, the resulting devices and limits are possible ones. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adverse/plan.h"
#include "config/config.c" /* the functions that read them are not public, and run once in a process */
#include "config/settings.c"
#include "tap/scripted.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Replaces config_net.c, which asks the kernel: every name that fits is an interface. */
void config_network(struct device *device, const char *interface)
{
    if (strlen(interface) < sizeof device->interface)
        strcpy(device->interface, interface);
}

static void fuzz_faults(const char *text)
{
    static struct script script;
    char why[128] = "", words[48];
    script.count = 0;
    bool read = fault_parse(text, &script, why, sizeof why);
    require(read == !*why);
    for (unsigned i = 0; read && i < script.count; i++) {
        const struct script_rule *rule = &script.rules[i];
        require(!rule->line && rule->draw.seeded && rule->draw.share <= SCRIPT_ALWAYS &&
                rule->draw.spread <= rule->delay && rule->delay <= 10 * NANOS_SECOND);
    }
    for (uint64_t number = 1; read && number < 5; number++) {
        struct script_verdict verdict = script_decide(
            &script, &(struct script_event){.call = SCRIPT_packet, .opcode = -1, .stream = 1, .number = number});
        struct fault fault = fault_draw(1, number);
        scripted_add(&verdict, &fault);
        const char *shown = fault_describe(&fault, words, sizeof words);
        require(fault.delay <= 20 * NANOS_SECOND && fault.behind >= 1);
        require(!shown || (shown == words && strlen(words) < sizeof words));
    }
}

static void fuzz_adverse(const char *text)
{
    struct adverse_plan plan;
    char why[768] = "";
    bool read = adverse_parse(text, &plan, why, sizeof why);
    require(read == !*why && (!read || !(plan.on >> ADVERSE_BEHAVIOURS)) &&
            (!read || (plan.scale && plan.scale <= 1000)));
}

static void fuzz_schedule(const char *text)
{
    uint64_t seed;
    char why[128] = "";
    require(adverse_parse_schedule(text, &seed, why, sizeof why) == !*why);
}

static void check_devices(void)
{
    require(device_count <= DEVICES_MAX);
    for (unsigned i = 0; i < device_count; i++) {
        require(devices[i].index == i && memchr(devices[i].name, 0, sizeof devices[i].name) && *devices[i].name);
        require(devices[i].start.gid_count <= GIDS && memchr(devices[i].interface, 0, sizeof devices[i].interface));
#define LIMIT(name, standard, least, most)                                                                             \
    require(devices[i].limits.name - (uint64_t)(least) <= (uint64_t)(most) - (least));
#include "config/limits.def"
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

/* Makes the log write its lines, though no reader takes them. */
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
    enum setting where = *bytes % SETTINGS;
    for (enum setting i = 0; i < SETTINGS; i++)
        if (i != SETTING_LOG && i != SETTING_LOG_FILE)
            unsetenv(setting_lines[i].variable);
    setenv(setting_lines[where].variable, where == SETTING_CONFIG ? make_file(text) : text, 1);
    settings_read();
    read_configuration();
    check_devices();
    if (where == SETTING_FAULT)
        fuzz_faults(text);
    if (where == SETTING_ADVERSE)
        fuzz_adverse(text);
    if (where == SETTING_SCHEDULE)
        fuzz_schedule(text);
    free(text);
    return 0;
}
