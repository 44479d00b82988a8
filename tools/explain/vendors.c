#include "explain/vendors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "command.h"

enum { DOCUMENTED, OBSERVED };

static const struct vendor_error {
    const char *driver;
    uint32_t code;
    const char *status;
    int how;
    const char *words, *source;
} errors[] = {
#define VENDOR(driver, code, status, how, words, source) {driver, code, status, how, words, source},
#include "profile/vendors.def"
};

enum { ERRORS = sizeof errors / sizeof *errors };

static bool is_of(const struct vendor_error *error, const char *argument)
{
    size_t length = strlen(error->driver);
    return !strncmp(argument, error->driver, length) && argument[length] == ':';
}

bool vendors_mean(const char *argument)
{
    uint64_t code;
    const char *colon = strchr(argument, ':');
    return colon && colon > argument && text_number_or_hex(colon + 1, 0, UINT32_MAX, &code);
}

static void name_drivers(char *names, size_t size)
{
    size_t used = 0;
    for (unsigned at = 0; at < ERRORS; at++)
        if ((!at || strcmp(errors[at].driver, errors[at - 1].driver)) && used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", errors[at].driver);
}

static bool refuse(const char *argument)
{
    char names[128] = "";
    name_drivers(names, sizeof names);
    complain("What \"%s\" means is not known: no source is known for it. There are codes of %s "
             "(docs/reference/vendor-errors.md).",
             argument, names);
    return false;
}

static void add_row(const struct vendor_error *error, struct table *table)
{
    char status[64];
    snprintf(status, sizeof status, "%s%s", *error->status ? "IBV_WC_" : "any", error->status);
    table_add(table, "%5u", error->code);
    table_add(table, "%-24s", error->driver);
    table_add(table, "%s", error->words);
    table_add_row(table, "", "status", status);
    table_add_row(table, "", error->how == DOCUMENTED ? "documented" : "observed", error->source);
    table_add_row(table, "", "page", "docs/reference/vendor-errors.md");
}

static void explain_error(const struct vendor_error *error, struct table *table, json_t *list)
{
    if (list)
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:s, s:s, s:b}", "number", (int)error->code, "name",
                                              error->driver, "sentence", error->words, "status", error->status,
                                              "source", error->source, "documented", error->how == DOCUMENTED));
    else
        add_row(error, table);
}

bool vendors_explain(const char *argument, struct table *table, json_t *list)
{
    uint64_t code = 0;
    bool known = false;
    text_number_or_hex(strchr(argument, ':') + 1, 0, UINT32_MAX, &code);
    for (const struct vendor_error *error = errors; error < errors + ERRORS; error++)
        if (is_of(error, argument) && error->code == code) {
            explain_error(error, table, list);
            known = true;
        }
    return known || refuse(argument);
}
