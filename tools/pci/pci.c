#include "pci/pci.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text/text.h"
#include "config/settings.h"
#include "profile/profile.h"

struct reader {
    struct pci_layout *layout;
    struct pci_function *function; /* the last one; NULL: no function yet */
    char *why;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static bool fail(const struct reader *reader, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(reader->why, reader->size, format, values);
    va_end(values);
    return false;
}

/* --- values */

static const struct key_line {
    const char *name;
    bool (*read)(const struct key_line *, struct pci_function *, enum pci_key, const char *);
    int64_t least, most;
    const char *words;
} key_lines[PCI_KEYS];

static bool read_number(const struct key_line *line, struct pci_function *function, enum pci_key key, const char *text)
{
    uint64_t number;
    bool negative = *text == '-', read = text_number_or_hex(text + negative, 0, INT64_MAX, &number);
    function->values[key] = !read ? 0 : negative ? -(int64_t)number : (int64_t)number;
    return read && function->values[key] >= line->least && function->values[key] <= line->most;
}

/* Accepts a speed with or without its unit, which follows without the blank that a kernel writes. */
static bool read_speed(const struct key_line *line, struct pci_function *function, enum pci_key key, const char *text)
{
    static const struct {
        const char *text;
        int tenths;
    } speeds[] = {{"2.5", 25}, {"5", 50}, {"8", 80}, {"16", 160}, {"32", 320}, {"64", 640}};
    size_t length = strspn(text, "0123456789.");
    if (text[length] && strcmp(text + length, "GT/s"))
        return false;
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (strlen(speeds[i].text) == length && !strncmp(speeds[i].text, text, length)) {
            function->values[key] = speeds[i].tenths;
            return true;
        }
    return false;
}

static bool is_range_of_processors(const char **text)
{
    uint64_t first, last;
    return text_range(*text, &first, &last, text) && last < 8192;
}

static bool read_processors(const struct key_line *line, struct pci_function *function, enum pci_key key,
                            const char *text)
{
    const char *at = text;
    bool right = strlen(text) < sizeof function->cpus && is_range_of_processors(&at);
    while (right && *at == '+') {
        at++;
        right = is_range_of_processors(&at);
    }
    if (!right || *at)
        return false;
    strcpy(function->cpus, text);
    for (char *plus = function->cpus; (plus = strchr(plus, '+'));)
        *plus = ',';
    return true;
}

static const struct key_line key_lines[PCI_KEYS] = {
#define PCI_KEY(key, read, least, most, words) {#key, read_##read, least, most, words},
#include "pci/pci.def"
};

/* "numa, cpus, speed" */
static void list_keys(char *names, size_t size)
{
    size_t used = 0;
    for (enum pci_key key = 0; key < PCI_KEYS && used < size; key++)
        used += (size_t)snprintf(names + used, size - used, "%s%s", key ? ", " : "", key_lines[key].name);
}

static bool read_value(const struct reader *reader, const char *item)
{
    char names[128];
    size_t length = strcspn(item, "=");
    if (!reader->function)
        return fail(reader,
                    "\"%s\" is before the first PCI address. Write the address first, as in "
                    "0000:18:00.0,numa=0",
                    item);
    for (enum pci_key key = 0; key < PCI_KEYS; key++) {
        if (strlen(key_lines[key].name) != length || strncmp(key_lines[key].name, item, length))
            continue;
        if (reader->function->set[key])
            return fail(reader, "%s is given twice for %s", key_lines[key].name, pci_address(reader->function->path));
        reader->function->set[key] = true;
        return key_lines[key].read(&key_lines[key], reader->function, key, item + length + 1) ||
               fail(reader, "\"%s\" can't be of %s: %s is %s", item, pci_address(reader->function->path),
                    key_lines[key].name, key_lines[key].words);
    }
    list_keys(names, sizeof names);
    return fail(reader, "There is no key \"%.*s\" of a PCI function; the keys are %s", (int)length, item, names);
}

/* --- addresses */

/* Returns whether the text has the form, in the digits that a kernel writes. */
static bool has_form(const char *text, const char *form)
{
    for (; *form; text++, form++)
        if (*form == 'x' ? !isxdigit((unsigned char)*text) || isupper((unsigned char)*text) : *text != *form)
            return false;
    return !*text || *text == '/';
}

static bool is_address(const char *text)
{
    return has_form(text, "xxxx:xx:xx.x") && text[8] < '2' && text[PCI_ADDRESS - 1] < '8';
}

static bool is_root(const char *text)
{
    return has_form(text, "pcixxxx:xx");
}

/* The part after the next slash, or NULL. */
static const char *next_part(const char *part)
{
    const char *slash = strchr(part, '/');
    return slash ? slash + 1 : NULL;
}

static bool is_path(const char *text)
{
    const char *part = is_root(text) ? next_part(text) : NULL;
    while (part && is_address(part)) {
        const char *next = next_part(part);
        if (!next)
            return strlen(text) < PCI_PATH_MAX;
        part = next;
    }
    return false;
}

const char *pci_address(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The length of the path's part that leads to this bus (dddd:bb), without the slash; 0: it does not cross the bus. */
static size_t find_bus(const char *path, const char *bus)
{
    const char *part = next_part(path);
    for (; part; part = next_part(part))
        if (!strncmp(part, bus, strlen("0000:00")))
            return (size_t)(part - 1 - path);
    return 0;
}

/* --- functions */

/* Gives an address without a path the path of its bus, or a root bus. */
static void place_address(struct pci_layout *layout, struct pci_function *function)
{
    char address[PCI_ADDRESS + 1], path[PCI_PATH_MAX] = "";
    size_t length = 0;
    const char *with = NULL;
    if (!*function->path || is_root(function->path))
        return;
    memcpy(address, function->path, sizeof address);
    for (unsigned i = 0; i < layout->count && !length; i++) {
        with = layout->functions[i].path;
        length = is_root(with) ? find_bus(with, address) : 0;
    }
    if (length && length + 1 + sizeof address <= PCI_PATH_MAX)
        snprintf(path, sizeof path, "%.*s/%s", (int)length, with, address);
    else
        snprintf(path, sizeof path, "pci%.7s/%s", address, address);
    memcpy(function->path, path, sizeof path);
}

/* A bus is below one bridge or is a root, and no function is a bridge of another's path. */
static bool agree(const struct reader *reader, const char *one, const char *other)
{
    size_t length = strlen(one);
    if (!strcmp(one, other))
        return fail(reader, "%s is given twice", pci_address(one));
    if (!strncmp(one, other, length) && other[length] == '/')
        return fail(reader, "%s can't be a bridge in the path of %s, as it is a device", pci_address(one),
                    pci_address(other));
    for (const char *part = next_part(one); part; part = next_part(part)) {
        size_t here = (size_t)(part - 1 - one), there = find_bus(other, part);
        if (there && (here != there || strncmp(one, other, here)))
            return fail(reader, "bus %.7s is at two places, %.*s and %.*s", part, (int)here, one, (int)there, other);
    }
    return true;
}

static bool all_agree(const struct reader *reader)
{
    const struct pci_layout *layout = reader->layout;
    for (unsigned i = 0; i < layout->count; i++)
        for (unsigned j = 0; j < layout->count; j++)
            if (i != j && *layout->functions[i].path && *layout->functions[j].path &&
                !agree(reader, layout->functions[i].path, layout->functions[j].path))
                return false;
    return true;
}

static bool begin_function(struct reader *reader, const char *path, bool gpu)
{
    struct pci_layout *layout = reader->layout;
    if (layout->count == PCI_FUNCTIONS_MAX || (!gpu && layout->device_count == DEVICES_MAX))
        return fail(reader, "%s is one too many: there are at most %d devices and %d functions", path, DEVICES_MAX,
                    PCI_FUNCTIONS_MAX);
    reader->function = &layout->functions[layout->count];
    *reader->function = (struct pci_function){.gpu = gpu};
    strcpy(reader->function->path, path);
    if (!gpu)
        layout->device[layout->device_count++] = (uint8_t)layout->count;
    layout->count++;
    return true;
}

static bool read_item(struct reader *reader, const char *item)
{
    bool gpu = !strncmp(item, "gpu=", 4);
    const char *path = item + (gpu ? 4 : 0);
    if (is_path(path) || (is_address(path) && !path[PCI_ADDRESS]))
        return begin_function(reader, path, gpu);
    if (!strcmp(item, "none"))
        return begin_function(reader, "", false);
    if (strchr(item, '=') && !gpu)
        return read_value(reader, item);
    return fail(reader,
                "\"%s\" is not a PCI address. One is 0000:18:00.0, or a path such as "
                "pci0000:17/0000:17:01.0/0000:18:00.0 with at most %d functions",
                path, (PCI_PATH_MAX - (int)sizeof "pci0000:00") / (PCI_ADDRESS + 1));
}

bool pci_parse(const char *list, struct pci_layout *layout, char *why, size_t size)
{
    struct reader reader = {.layout = layout, .why = why, .size = size};
    char copy[PCI_LIST_MAX], *rest = copy, *item;
    *layout = (struct pci_layout){0};
    if (strlen(list) >= sizeof copy)
        return fail(&reader, "the list has more than %d letters", PCI_LIST_MAX - 1);
    strcpy(copy, list);
    while ((item = strsep(&rest, ",")))
        if (*item && !read_item(&reader, item))
            return false;
    for (unsigned i = 0; i < layout->count; i++)
        place_address(layout, &layout->functions[i]);
    return all_agree(&reader);
}

/* --- of this process */

static struct pci_layout chosen;

static void choose(void)
{
    char why[256];
    const char *list = setting_text(SETTING_PCI);
    const struct profile *profile = setting_profile();
    if (!list && profile)
        list = profile->pci;
    if (list && !pci_parse(list, &chosen, why, sizeof why))
        chosen = (struct pci_layout){0};
}

const struct pci_layout *pci_layout(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return &chosen;
}

const struct pci_function *pci_of_device(const struct pci_layout *layout, unsigned device)
{
    if (device >= layout->device_count)
        return NULL;
    const struct pci_function *function = &layout->functions[layout->device[device]];
    return *function->path ? function : NULL;
}

bool pci_is_of_machine(const char *path)
{
    return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

bool pci_fits(const struct pci_layout *layout, unsigned devices, char *why, size_t size)
{
    const struct reader reader = {.why = why, .size = size};
    char path[64];
    if (layout->device_count > devices)
        return fail(&reader, "There are %u PCI addresses for %u device%s; --devices %u makes as many",
                    layout->device_count, devices, devices == 1 ? "" : "s", layout->device_count);
    for (unsigned i = 0; i < layout->count; i++) {
        const char *address = pci_address(layout->functions[i].path);
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", address);
        if (*address && pci_is_of_machine(path))
            return fail(&reader, "%s is a device of this machine; ls /sys/bus/pci/devices lists all of them", address);
    }
    return true;
}
