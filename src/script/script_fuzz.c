/* libFuzzer: a text as a user's script. Either it is valid, and its rules are possible, or the fault is within the
 * text. The rules decide on some calls. */
#include <stdlib.h>
#include <string.h>

#include "script/decide.h"
#include "script/names.h"
#include "script/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_rule(const struct script_rule *rule)
{
    bool any = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        any = any || rule->calls[call];
    require(any && rule->line && rule->turns.first && rule->turns.last && rule->turns.step && rule->turns.most);
    require(rule->draw.share <= SCRIPT_ALWAYS && rule->delay <= 1000 * NANOS_SECOND &&
            rule->after <= 1000 * NANOS_SECOND);
    require(rule->process.stop || rule->process.freeze || *rule->hidden || rule->packet.cut || rule->packet.forged ||
            rule->packet.bandwidth || rule->error || rule->delay || rule->signal || rule->end.wanted || rule->fates ||
            rule->changes.count || rule->rejection.wanted || rule->raised || *rule->caller.counts);
    require(rule->draw.spread <= rule->delay);
    require(rule->changes.count <= SCRIPT_CHANGES_MOST);
    require(!rule->end.wanted || names_name(NAMES_STATUSES, rule->end.status));
    require(!rule->error || names_name(NAMES_ERRORS, rule->error));
    require(memchr(rule->program, 0, sizeof rule->program) && memchr(rule->on.kind, 0, sizeof rule->on.kind) &&
            memchr(rule->caller.counts, 0, sizeof rule->caller.counts));
}

static void check_fault(const char *text, const struct script_fault *fault)
{
    unsigned lines = 1;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    require(*fault->why && memchr(fault->why, 0, sizeof fault->why));
    require(fault->line && fault->line <= lines && fault->column && fault->column <= strlen(text) + 1);
}

static void decide(struct script *script)
{
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++) {
        struct script_event event = {.call = call,
                                     .subject = {"qp", 1},
                                     .is_work = call % 2,
                                     .bytes = call,
                                     .age = 2000 * NANOS_SECOND,
                                     .seed = call};
        struct script_verdict verdict = script_decide(script, &event);
        require(!verdict.error || (verdict.rule && script_names[call].answer < SCRIPT_ANSWER_nothing));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct script script;
    struct script_fault fault = {0};
    char *text = malloc(length + 1);
    require(text);
    memcpy(text, bytes, length);
    text[length] = 0;
    script.count = 0;
    if (script_parse(text, &script, &fault)) {
        require(script.count <= SCRIPT_RULES_MOST);
        for (unsigned i = 0; i < script.count; i++)
            check_rule(&script.rules[i]);
        decide(&script);
        script_choose(&script, "program");
    } else {
        check_fault(text, &fault);
    }
    free(text);
    return 0;
}
