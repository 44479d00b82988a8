#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/settings.h"
#include "calls/questions.h"
#include "check/destroyed/callers.h"
#include "check/destroyed/guards.h"
#include "check/destroyed/kept_handles.h"
#include "check/findings/finding_file.h"
#include "check/findings/symbol.h"
#include "check/hooks_call.h"
#include "check/layer.h"
#include "check/outside/commands.h"
#include "check/outside/connections.h"
#include "check/outside/frees.h"
#include "check/outside/pages.h"
#include "check/outside/sanitizers.h"
#include "check/outside/truncates.h"
#include "check/outside/unmaps.h"
#include "diag/log.h"

/* atexit(3) of the C library for a function that belongs to no library: it is called when the process ends, not when a
 * library does. */
extern int __cxa_atexit(void (*)(void *), void *, void *);

/* Runs last in exit(3), after the program's destructors have destroyed their objects. A handler may call exit again:
 * the remaining handlers run then, and the status is the new one. */
static void report_at_exit(void *unused)
{
    const char *text = setting_environment(SETTING_ERROR_EXITCODE);
    shadow_lock();
    HOOKS_CALL(ended, NULL);
    shadow_unlock();
    int wanted = text ? atoi(text) : 0;
    if (finding_end() && wanted)
        exit(wanted);
}

/* Writes where the program deregistered the region that had the key. False: the place is not known. */
static bool describe_end(uint32_t key, char text[CALLS_WORDS_OF_PLACE])
{
    struct symbol symbol;
    char words[SYMBOL_SIZE];
    shadow_lock();
    struct shadow *region = shadow_find_gone_key(key);
    const void *place = region && region->destroyed.count ? region->destroyed.frames[0] : NULL;
    shadow_unlock();
    if (!place)
        return false;
    symbol_find(place, &symbol);
    symbol_describe(&symbol, words);
    snprintf(text, CALLS_WORDS_OF_PLACE, "%.95s", words);
    return true;
}

/* Leaves out pages if the device is not softverbs', which writes to memory past their protection. */
static void leave_pages_out(void)
{
    if (rule_chosen.pages && settings_around)
        log_write(LOG_WARN,
                  "SOFTVERBS_CHECK: pages are not protected around another libibverbs, whose device writes to "
                  "them past the processor: touched-early is left out");
    rule_chosen.pages = rule_chosen.pages && !settings_around;
}

void check_begin(void)
{
    const char *words = setting_environment(SETTING_CHECK);
    bool followed = hooks_are_followed(), checked = words && *words;
    if (!checked && !followed)
        return;
    log_start();
    if (checked && !finding_begin(words) && !followed)
        return;
    leave_pages_out();
    place_begin();
    shadow_begin();
    hooks_begin();
    kept_handles_begin();
    callers_begin();
    symbol_begin();
    finding_file_begin();
    calls_questions->name_ends(describe_end);
    calls_form_mistaken = hooks_see_form;
    bool given_up = rule_chosen.rules[RULE_REGION_GIVEN_UP];
    if (given_up || rule_chosen.rules[RULE_BUFFER_FREED])
        frees_begin();
    if (given_up || rule_chosen.rules[RULE_BUFFER_UNMAPPED] || rule_chosen.pages)
        unmaps_begin();
    if (given_up)
        truncates_begin();
    connections_begin();
    sanitizers_begin();
    if (rule_chosen.pages)
        pages_begin();
    if (rule_chosen.pages || sanitizers_poison())
        /* data arrives in packets, as the kernel may not write it there for the library */
        setting_put(SETTING_NO_PULL, "1");
    objects_fill(&layer_check.calls);
    queue_pairs_fill(&layer_check.calls);
    posts_fill(&layer_check.calls);
    builders_fill(&layer_check.calls);
    polls_fill(&layer_check.calls);
    events_fill(&layer_check.calls);
    commands_fill(&layer_check.calls);
    calls_put_around(&layer_check);
    guards_begin();
    __cxa_atexit(report_at_exit, NULL, NULL);
}
