#include "explain/vendors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "command.h"
#include "profile/vendors.h"

bool vendors_mean(const char *argument)
{
    uint64_t code;
    const char *colon = strchr(argument, ':');
    return colon && colon > argument && text_number_or_hex(colon + 1, 0, UINT32_MAX, &code);
}

static void name_drivers(char *names, size_t size)
{
    size_t used = 0;
    const struct vendor_error *error, *before = NULL;
    for (unsigned at = 0; (error = vendors_at(at)); before = error, at++)
        if ((!before || strcmp(error->driver, before->driver) != 0) && used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", error->driver);
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
    table_add_row(table, "", error->documented ? "documented" : "observed", error->source);
    table_add_row(table, "", "page", "docs/reference/vendor-errors.md");
}

static void explain_error(const struct vendor_error *error, struct table *table, json_t *list)
{
    if (list)
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:s, s:s, s:b}", "number", (int)error->code, "name",
                                              error->driver, "sentence", error->words, "status", error->status,
                                              "source", error->source, "documented", error->documented));
    else
        add_row(error, table);
}

bool vendors_explain(const char *argument, struct table *table, json_t *list)
{
    uint64_t code = 0;
    char driver[32];
    const char *colon = strchr(argument, ':');
    const struct vendor_error *error = NULL;
    bool known = false;
    snprintf(driver, sizeof driver, "%.*s", (int)(colon - argument), argument);
    text_number_or_hex(colon + 1, 0, UINT32_MAX, &code);
    while ((error = vendors_next(driver, (uint32_t)code, error))) {
        explain_error(error, table, list);
        known = true;
    }
    return known || refuse(argument);
}
