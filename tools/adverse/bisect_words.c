#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "adverse/bisect.h"
#include "print/emit.h"
#include "print/screen.h"

static const struct {
    unsigned number;
    const char *word, *meaning, *shows;
} behaviours[ADVERSE_BEHAVIOURS] = {
#define ADVERSE(number, name, word, standard, meaning, bound, shows) {number, word, meaning, shows},
#include "adverse/adverse.def"
};

const char *bisect_word(enum adverse behaviour)
{
    return behaviours[behaviour].word;
}

/* --- for people */

__attribute__((format(printf, 2, 3))) static void print_wrapped(size_t indent, const char *format, ...)
{
    char text[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    printf("%*s", (int)indent, "");
    screen_wrap(stdout, screen_width(stdout), indent, 2, text);
}

/* "7 of the seeds 1 to 20: 3, 5, ..." */
static void write_seeds(const struct bisect *bisect, const struct failing *failing, char *text, size_t size)
{
    enum { SHOWN = 12 };
    int used = snprintf(text, size, "%u of the seeds %" PRIu64 " to %" PRIu64, failing->count, bisect->trials.first,
                        bisect->trials.last);
    for (unsigned i = 0; i < failing->count && i < SHOWN; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%" PRIu64, i ? ", " : ": ", failing->seeds[i]);
    if (failing->count > SHOWN)
        snprintf(text + used, size - (size_t)used, " and more");
}

static void print_command(const struct bisect *bisect, const char *list)
{
    printf("  softverbs run --adverse=%s --", list);
    for (char **word = bisect->trials.program; *word; word++)
        printf(" %s", *word);
    puts("");
}

static void print_again(const struct bisect *bisect, const struct proof *proof)
{
    char list[TRIALS_LIST];
    int used = snprintf(list, sizeof list, "seed=%" PRIu64, proof->seed);
    if (bisect->trials.plan.scale != 100)
        used += snprintf(list + used, sizeof list - (size_t)used, ",scale=%u%%", bisect->trials.plan.scale);
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (proof->on >> i & 1)
            used += snprintf(list + used, sizeof list - (size_t)used, ",only=%s", bisect_word((enum adverse)i));
    print_command(bisect, list);
}

/* "ends with an error (status 1)" */
static const char *describe(enum sweep_outcome outcome, int value)
{
    static char text[96];
    const char *what = outcome == SWEEP_CRASHES ? "signal" : "status";
    if (outcome == SWEEP_CRASHES || outcome == SWEEP_ENDS_BADLY)
        snprintf(text, sizeof text, "%s (%s %d)", sweep_outcomes[outcome], what, value);
    else
        snprintf(text, sizeof text, "%s", sweep_outcomes[outcome]);
    return text;
}

static void write_words(uint32_t on, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (on >> i & 1)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? " with " : "", bisect_word((enum adverse)i));
}

static void print_proof(const struct bisect *bisect, const struct proof *proof)
{
    char words[512], seeds[256];
    write_words(proof->on, words, sizeof words);
    print_wrapped(0, "The program does not bear %s: it %s.", words, describe(proof->outcome, proof->value));
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (proof->on >> i & 1) {
            print_wrapped(2, "%s", behaviours[i].meaning);
            print_wrapped(2, "What it shows: %s.", behaviours[i].shows);
        }
    write_seeds(bisect, &proof->failing, seeds, sizeof seeds);
    print_wrapped(2, "It fails under %s.", seeds);
    print_again(bisect, proof);
}

static void print_found(const struct bisect *bisect)
{
    char seeds[256];
    const char *these = bisect->count > 1 ? "these" : "this";
    if (bisect->scan_only) {
        write_seeds(bisect, &bisect->all, seeds, sizeof seeds);
        print_wrapped(0, "The program fails under %s.", seeds);
        return;
    }
    for (unsigned i = 0; i < bisect->count; i++)
        print_proof(bisect, &bisect->proofs[i]);
    write_seeds(bisect, &bisect->rest, seeds, sizeof seeds);
    if (bisect->rest.count)
        print_wrapped(0, "Without %s it fails still under %s.", these, seeds);
    else
        print_wrapped(0, "Without %s it bears all others under the seeds %" PRIu64 " to %" PRIu64 ".", these,
                      bisect->trials.first, bisect->trials.last);
}

static void print_lost(const struct bisect *bisect)
{
    const struct trials *trials = &bisect->trials;
    print_wrapped(0,
                  "The program failed under %u of %" PRIu64 " seeds, first %" PRIu64
                  ", but not again in %u runs; --tries makes more.",
                  bisect->all.count, trials->last - trials->first + 1, bisect->all.seeds[0], trials->tries);
}

static void print_always(const struct bisect *bisect)
{
    print_wrapped(0, "The program fails without the adverse adapter, too: in %u of %u runs. First find out why: it %s.",
                  bisect->without_failed, bisect->without, describe(bisect->outcome, bisect->value));
}

static void print_bare(const struct bisect *bisect)
{
    char list[TRIALS_LIST];
    const struct proof *bare = &bisect->bare;
    print_wrapped(0,
                  "The program fails with no behaviour on, too: it %s. A process under the adverse adapter accesses no "
                  "memory directly, and all data comes in packets; that is enough. First find out why.",
                  describe(bare->outcome, bare->value));
    trials_write_list(&bisect->trials, 0, bare->seed, list);
    print_command(bisect, list);
}

static void print_never(const struct bisect *bisect)
{
    print_wrapped(0, "The program never failed under the seeds %" PRIu64 " to %" PRIu64 ".", bisect->trials.first,
                  bisect->trials.last);
}

void bisect_print(const struct bisect *bisect)
{
    static void (*const prints[BISECT_ENDS])(const struct bisect *) = {
        [BISECT_NEVER] = print_never, [BISECT_ALWAYS] = print_always, [BISECT_BARE] = print_bare,
        [BISECT_LOST] = print_lost,   [BISECT_FOUND] = print_found,
    };
    if (prints[bisect->end])
        prints[bisect->end](bisect);
    printf("%u runs.\n", bisect->trials.runs);
}

/* --- for programs */

static json_t *seeds_json(const struct failing *failing)
{
    json_t *seeds = json_array();
    for (unsigned i = 0; i < failing->count; i++)
        json_array_append_new(seeds, json_integer((json_int_t)failing->seeds[i]));
    return seeds;
}

static json_t *words_json(uint32_t on)
{
    json_t *words = json_array();
    for (unsigned i = 0; i < ADVERSE_BEHAVIOURS; i++)
        if (on >> i & 1)
            json_array_append_new(words, json_string(bisect_word((enum adverse)i)));
    return words;
}

static json_t *proof_json(const struct bisect *bisect, const struct proof *proof)
{
    char list[TRIALS_LIST];
    trials_write_list(&bisect->trials, proof->on, proof->seed, list);
    return json_pack("{s:o, s:s, s:I, s:s, s:i, s:o}", "behaviours", words_json(proof->on), "list", list, "seed",
                     (json_int_t)proof->seed, "outcome", sweep_outcomes[proof->outcome], "value", proof->value, "seeds",
                     seeds_json(&proof->failing));
}

void bisect_print_json(const struct bisect *bisect)
{
    static const char *const ends[BISECT_ENDS] = {
        [BISECT_NEVER] = "never", [BISECT_ALWAYS] = "always", [BISECT_BARE] = "bare",
        [BISECT_LOST] = "lost",   [BISECT_FOUND] = "found",   [BISECT_BROKEN] = "broken"};
    json_t *proofs = json_array();
    for (unsigned i = 0; i < bisect->count; i++)
        json_array_append_new(proofs, proof_json(bisect, &bisect->proofs[i]));
    emit(json_pack("{s:s, s:i, s:I, s:I, s:i, s:i, s:o, s:o, s:o}", "end", ends[bisect->end], "runs",
                   (int)bisect->trials.runs, "first", (json_int_t)bisect->trials.first, "last",
                   (json_int_t)bisect->trials.last, "without", (int)bisect->without, "without_failed",
                   (int)bisect->without_failed, "seeds", seeds_json(&bisect->all), "found", proofs, "rest",
                   seeds_json(&bisect->rest)));
}
