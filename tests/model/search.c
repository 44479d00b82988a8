#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROBE = 61 }; /* one execution in this number shows that it meets the same states again */

struct question {
    uint64_t key;
    uint16_t options, answer;
};

struct seen {
    uint64_t key; /* 0: empty */
    uint32_t left;
};

static struct question asked[SEARCH_DEPTH];
static unsigned known, at; /* questions whose answer is given; where the execution is */
static struct search_limits limits;
static struct search_result result;
static struct timespec started;
static struct seen *table;
static uint64_t capacity;
static bool replaying;

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

void search_begin(const struct search_limits *given)
{
    limits = *given;
    result = (struct search_result){0};
    known = at = 0;
    replaying = false;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &started);
    free(table);
    capacity = 1 << 16;
    table = calloc(capacity, sizeof *table);
}

static bool is_over(void)
{
    bool much = limits.executions && result.executions >= limits.executions;
    bool long_ago = limits.seconds > 0 && result.executions % 64 == 0 && seconds_since(&started) > limits.seconds;
    return much || long_ago;
}

bool search_next(void)
{
    result.executions++;
    known = at;
    while (known && asked[known - 1].answer + 1 >= asked[known - 1].options)
        known--;
    at = 0;
    if (!known || replaying) {
        result.complete = !replaying;
        return false;
    }
    asked[known - 1].answer++;
    return !is_over();
}

void search_result(struct search_result *to)
{
    result.seconds = seconds_since(&started);
    *to = result;
}

static struct seen *place(struct seen *in, uint64_t size, uint64_t key)
{
    uint64_t i = key & (size - 1);
    while (in[i].key && in[i].key != key)
        i = (i + 1) & (size - 1);
    return &in[i];
}

static void grow(void)
{
    struct seen *wider = calloc(capacity * 2, sizeof *wider);
    if (!wider) {
        fprintf(stderr, "model: no memory for %llu states\n", (unsigned long long)capacity);
        exit(2);
    }
    for (uint64_t i = 0; i < capacity; i++)
        if (table[i].key)
            *place(wider, capacity * 2, table[i].key) = table[i];
    free(table);
    table = wider;
    capacity *= 2;
}

/* True: the state was seen with at least as much left. */
static bool is_known(uint64_t key, unsigned left)
{
    struct seen *seen = place(table, capacity, key);
    if (seen->key && seen->left >= left)
        return true;
    if (!seen->key && ++result.states * 2 > capacity) {
        grow();
        seen = place(table, capacity, key);
    }
    *seen = (struct seen){key, left};
    return false;
}

static int ask(unsigned options, uint64_t key, unsigned left)
{
    if (at == SEARCH_DEPTH) {
        fprintf(stderr, "model: an execution asks more than %d questions\n", SEARCH_DEPTH);
        exit(2);
    }
    if (!replaying && is_known(key, left))
        return -1;
    asked[at] = (struct question){key, (uint16_t)options, 0};
    result.questions++;
    if (at + 1 > result.deepest)
        result.deepest = at + 1;
    known = at + 1;
    return asked[at++].answer;
}

static bool is_another(const struct question *question, unsigned options, uint64_t (*key)(unsigned), unsigned context)
{
    return question->options != options || (result.executions % PROBE == 0 && question->key != (key(context) | 1));
}

int search_choose(unsigned options, uint64_t (*key)(unsigned), unsigned context, unsigned left)
{
    if (at >= known)
        return ask(options, key(context) | 1, left);
    if (!replaying && is_another(&asked[at], options, key, context)) {
        fprintf(stderr, "model: question %u is another one than at the last time: the code isn't deterministic\n", at);
        exit(2);
    }
    if (asked[at].answer >= options) {
        fprintf(stderr, "model: question %u has only %u answers: this schedule is of another program\n", at, options);
        exit(2);
    }
    return asked[at++].answer;
}

void search_write_schedule(char *to, unsigned size)
{
    unsigned length = 0;
    *to = 0;
    for (unsigned i = 0; i < at && length + 16 < size; i++)
        if (asked[i].answer)
            length += (unsigned)snprintf(to + length, size - length, "%s%u:%u", length ? "," : "", i, asked[i].answer);
}

bool search_replay(const char *schedule)
{
    known = at = 0;
    replaying = true;
    while (*schedule) {
        unsigned question, answer;
        int length = 0;
        if (sscanf(schedule, "%u:%u%n", &question, &answer, &length) != 2 || question < known ||
            question >= SEARCH_DEPTH || answer > UINT16_MAX)
            return false;
        while (known < question)
            asked[known++] = (struct question){0};
        asked[known++] = (struct question){.answer = (uint16_t)answer};
        schedule += length + (schedule[length] == ',');
    }
    return true;
}
