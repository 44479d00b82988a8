#include "script/live/requests.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/clean.h"
#include "script/parse.h"
#include "script/rules.h"

void requests_refuse(FILE *out, const char *why)
{
    fputs("{\"wrong\":", out);
    clean_json(out, why);
    fputs("}\n", out);
}

void requests_list(FILE *out)
{
    const struct script *script = rules_all();
    const char *separator = "";
    fputs("{\"rules\":[", out);
    for (unsigned i = 0; script && i < script->count; i++) {
        const struct script_rule *rule = &script->rules[i];
        if (atomic_load(&rule->so_far.ended))
            continue;
        fprintf(out, "%s{\"rule\":", separator);
        clean_json(out, rule->text);
        fprintf(out, ",\"met\":%llu,\"done\":%llu}", atomic_load(&rule->so_far.met), script_done(rule));
        separator = ",";
    }
    fputs("]}\n", out);
}

static const char no_memory[] = "There is no memory for the rules.";

void requests_answer(FILE *out, int error)
{
    if (!error)
        requests_list(out);
    else if (error == EBUSY)
        fputs("{\"busy\":true}\n", out);
    else
        requests_refuse(out, error == ENOMEM ? no_memory : "There is no room for so many rules.");
}

struct script *requests_read(const char *text, FILE *out)
{
    struct script_fault fault;
    char why[320];
    struct script *script = calloc(1, sizeof *script);
    if (!script) {
        requests_refuse(out, no_memory);
    } else if (!script_parse(text, script, &fault)) {
        snprintf(why, sizeof why, "line %u, column %u: %s", fault.line, fault.column, fault.why);
        requests_refuse(out, why);
        free(script);
        script = NULL;
    }
    return script;
}
