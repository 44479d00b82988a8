#include "trace/call_layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nanos.h"
#include "base/read_clock.h"
#include "base/result.h"
#include "base/text/text.h"
#include "calls/calls.h"
#include "calls/qp_types.h"
#include "events/words.h"
#include "script/answers.h"
#include "trace/call_names.h"
#include "trace/command.h"
#include "trace/value.h"

enum { ROOM_OF_RESULT = 160 };

static struct calls_layer layer;

enum { NO_COUNT = -1, QUEUES_SHOWN = 4 };

/* A queue that was polled, and the argument `count`; NO_COUNT: the call has no such argument. */
struct polled {
    uintptr_t cq;
    uint32_t number;
    int count;
};

/* A thread's consecutive polls that found nothing are one line, whatever queues they are of, once in a second and
 * before the next call. So each of these polls costs only a look at the clock. */
static _Thread_local struct {
    struct polled queues[QUEUES_SHOWN];
    uint32_t shown, others; /* how many of `queues` are used; polls of further queues */
    const char *call, *result;
    uint32_t trace;  /* trace_ring_now at the first poll */
    uint32_t number; /* polls that are in no line yet */
    int64_t since;   /* when the first of these polls began */
} empty __attribute__((tls_model("initial-exec")));

static int64_t read_real_time(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME);
}

/* Returns the time since then, rounded up. */
static uint32_t microseconds_since(int64_t when)
{
    return (uint32_t)((read_real_time() - when + 999) / 1000);
}

static void begin_clock(struct trace_line *line)
{
    line->trace = trace_ring_now();
    line->when = read_real_time();
}

static void begin_line(struct trace_line *line, const char *call)
{
    begin_clock(line);
    text_begin(line, call, TRACE_TEXT - ROOM_OF_RESULT);
}

static void begin_result(struct trace_line *line)
{
    line->limit = TRACE_TEXT;
    text_add_character(line, TRACE_RESULT);
}

static void end_line(struct trace_line *line)
{
    line->took = microseconds_since(line->when);
    trace_ring_write(line);
}

/* --- results, in the ways to fail of base/result.h; errno is kept */

static void add_failure(struct trace_line *line, int64_t value, int error)
{
    text_add_signed(line, value);
    text_add_character(line, ' ');
    text_add_error(line, error);
}

static void answer_code(struct trace_line *line, int64_t value)
{
    if (value)
        text_add_error(line, (int)value);
    else
        text_add(line, "0");
}

static void answer_minus(struct trace_line *line, int64_t value)
{
    if (value < 0)
        add_failure(line, value, errno);
    else
        text_add_signed(line, value);
}

static void answer_negative(struct trace_line *line, int64_t value)
{
    if (value < 0)
        text_add_error(line, (int)-value);
    else
        text_add_signed(line, value);
}

static void answer_plain(struct trace_line *line, int64_t value)
{
    text_add_signed(line, value);
}

#define ANSWER_code(result) answer_code(&line, result)
#define ANSWER_minus(result) answer_minus(&line, result)
#define ANSWER_event(result) answer_minus(&line, result)
#define ANSWER_negative(result) answer_negative(&line, result)
#define ANSWER_plain(result) answer_plain(&line, (int64_t)(uintptr_t)(result))
#define ANSWER_pointer(result)                                                                                         \
    do {                                                                                                               \
        if (result)                                                                                                    \
            value_add(&line, "", CALLS_SUBJECT_IF(result), value_pointer, (uint64_t)(uintptr_t)(result));              \
        else                                                                                                           \
            text_add(&line, "NULL "), text_add_error(&line, errno);                                                    \
    } while (0)

/* --- polls that find nothing */

static bool counts_are_equal(void)
{
    for (uint32_t i = 1; i < empty.shown; i++)
        if (empty.queues[i].count != empty.queues[0].count)
            return false;
    return true;
}

/* "cq 3, cq 5, ..." */
static void add_queues(struct trace_line *line)
{
    text_add_name(line, "cq");
    for (uint32_t i = 0; i < empty.shown; i++) {
        text_add(line, i ? ", cq " : "cq ");
        text_add_number(line, empty.queues[i].number);
    }
    if (empty.others)
        text_add(line, ", ...");
}

/* Adds one number if all queues have the same, or else a number for each queue. */
static void add_counts(struct trace_line *line)
{
    uint32_t numbers = counts_are_equal() ? 1 : empty.shown;
    if (empty.queues[0].count == NO_COUNT)
        return;
    text_add_name(line, "count");
    for (uint32_t i = 0; i < numbers; i++) {
        if (i)
            text_add(line, ", ");
        text_add_signed(line, empty.queues[i].count);
    }
}

static void write_empty(void)
{
    struct trace_line line = {
        .trace = empty.trace, .when = empty.since, .further = empty.number - 1, .limit = TRACE_TEXT};
    text_add(&line, empty.call);
    add_queues(&line);
    add_counts(&line);
    text_add_character(&line, TRACE_RESULT);
    text_add(&line, empty.result);
    end_line(&line);
}

/* Writes the line of polls that found nothing, as another call begins. */
static void end_empty(void)
{
    if (empty.number && empty.trace == trace_ring_now() && trace_ring_has_room())
        write_empty();
    empty.number = 0;
}

static bool is_polled(const struct ibv_cq *cq, int count)
{
    for (uint32_t i = 0; i < empty.shown; i++)
        if (empty.queues[i].cq == (uintptr_t)cq && empty.queues[i].count == count)
            return true;
    return false;
}

static void note_queue(const struct ibv_cq *cq, int count)
{
    if (is_polled(cq, count))
        return;
    if (empty.shown < QUEUES_SHOWN)
        empty.queues[empty.shown++] = (struct polled){(uintptr_t)cq, cq->handle, count};
    else
        empty.others++;
}

/* Notes a poll that found nothing; `when` it began. */
static void add_empty(const char *call, const struct ibv_cq *cq, int count, const char *result, int64_t when)
{
    if (empty.call != call || empty.trace != trace_ring_now() || when - empty.since > (int64_t)NANOS_SECOND)
        end_empty();
    if (!empty.number++) {
        empty.trace = trace_ring_now();
        empty.call = call;
        empty.shown = empty.others = 0;
        empty.result = result;
        empty.since = when;
    }
    note_queue(cq, count);
}

/* Returns true if the call that begins gets a line. Without room the line counts as lost. */
static bool begins_line(void)
{
    if (!trace_ring_now())
        return false;
    end_empty();
    return trace_ring_has_room();
}

/* --- all calls */

/* Returns true if the call answers in the memory that its arguments point to. Such arguments are shown as they are
 * after the call, or as pointers if the call failed. */
static bool fills_arguments(const char *title)
{
    static const char *const beginnings[] = {"ibv_query_", "efadv_query_", "mlx5dv_query_"};
    for (unsigned i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(title, beginnings[i], strlen(beginnings[i])))
            return true;
    return false;
}

/* Writes the line of a call that is about to wait; the call gets another line when it has ended. */
static void show_wait(struct trace_line *line)
{
    line->took = UINT32_MAX;
    trace_ring_write(line);
}

#define TRACED(answer, type, name, title, parameters, arguments)                                                       \
    static type traced_##name parameters                                                                               \
    {                                                                                                                  \
        if (!begins_line())                                                                                            \
            return calls_get(&layer.below, name) arguments;                                                            \
        struct trace_line line;                                                                                        \
        bool late = fills_arguments(title);                                                                            \
        begin_line(&line, title);                                                                                      \
        if (!late) {                                                                                                   \
            WITH_LINE arguments;                                                                                       \
        }                                                                                                              \
        if (SCRIPT_ANSWER_##answer == SCRIPT_ANSWER_event)                                                             \
            show_wait(&line);                                                                                          \
        type result = calls_get(&layer.below, name) arguments;                                                         \
        if (late) {                                                                                                    \
            line.shallow = RESULT_FAILED_##answer(result);                                                             \
            WITH_LINE arguments;                                                                                       \
        }                                                                                                              \
        begin_result(&line);                                                                                           \
        ANSWER_##answer(result);                                                                                       \
        end_line(&line);                                                                                               \
        return result;                                                                                                 \
    }
#define TRACED_nothing(answer, type, name, title, parameters, arguments)                                               \
    static void traced_##name parameters                                                                               \
    {                                                                                                                  \
        struct trace_line line;                                                                                        \
        bool shown = begins_line();                                                                                    \
        if (shown) {                                                                                                   \
            begin_line(&line, title);                                                                                  \
            WITH_LINE arguments;                                                                                       \
        }                                                                                                              \
        calls_get(&layer.below, name) arguments;                                                                       \
        if (shown)                                                                                                     \
            end_line(&line);                                                                                           \
    }
#define WITH_LINE(...) VALUE_ARGUMENTS(&line, __VA_ARGS__)

#define TRACED_code TRACED
#define TRACED_minus TRACED
#define TRACED_negative TRACED
#define TRACED_pointer TRACED
#define TRACED_event TRACED
#define TRACED_plain TRACED
#define CALL(answer, ...) TRACED_##answer(answer, __VA_ARGS__)
#define CALL_COMMAND(...)
#define HELD CALL
#define HELD_READER(...)
#include "calls/each.def"

/* The commands of librdmacm. The command that takes an event waits. */
#define BEFORE_told(line)
#define BEFORE_quiet(line)
#define BEFORE_waits(line) show_wait(line);
#define COMMAND(number, page, how, serve, layout, least, answer, object)                                               \
    static int traced_##serve(struct ucma_call *call)                                                                  \
    {                                                                                                                  \
        if (!begins_line())                                                                                            \
            return calls_get(&layer.below, serve)(call);                                                               \
        struct trace_line line;                                                                                        \
        begin_line(&line, #page);                                                                                      \
        command_arguments(&line, call, UCMA_##number);                                                                 \
        BEFORE_##how(&line) int result = calls_get(&layer.below, serve)(call);                                         \
        begin_result(&line);                                                                                           \
        answer_code(&line, result);                                                                                    \
        if (!result)                                                                                                   \
            command_answer(&line, call, UCMA_##number);                                                                \
        end_line(&line);                                                                                               \
        return result;                                                                                                 \
    }
#include "calls/ucma.def"

/* --- calls with longer results */

/* Begins the line of a poll that has found something, which is known only after the call. False: it gets no line. */
static bool begin_found(struct trace_line *line, const char *call)
{
    line->took = microseconds_since(line->when);
    if (!begins_line())
        return false;
    text_begin(line, call, TRACE_TEXT - ROOM_OF_RESULT);
    return true;
}

/* Begins the line of such a poll. It also has the number of polls with the same arguments that found nothing before:
 * the reader makes another line of them. */
static bool begin_found_after_empty(struct trace_line *line, const char *call, const struct ibv_cq *cq, int count)
{
    uint32_t number = empty.number;
    bool same = number && empty.call == call && empty.shown == 1 && is_polled(cq, count) && empty.trace == line->trace;
    if (same)
        empty.number = 0;
    if (!begin_found(line, call))
        return false;
    line->empty = same ? number : 0;
    line->empty_since = empty.since;
    return true;
}

static int traced_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *list)
{
    static const char call[] = "ibv_poll_cq";
    if (!trace_ring_now())
        return calls_get(&layer.below, ibv_poll_cq)(cq, count, list);
    struct trace_line line;
    begin_clock(&line);
    int result = calls_get(&layer.below, ibv_poll_cq)(cq, count, list);
    if (!result)
        add_empty(call, cq, count, "0", line.when);
    if (!result || !begin_found_after_empty(&line, call, cq, count))
        return result;
    VALUE_ARGUMENTS(&line, cq, count)
    begin_result(&line);
    answer_negative(&line, result);
    if (result > 0)
        value_completions(&line, list, result);
    trace_ring_write(&line);
    return result;
}

static void add_entry(struct trace_line *line, const struct ibv_cq_ex *cq)
{
    text_add(line, " {wr_id=");
    text_add_number(line, cq->wr_id);
    text_add(line, ", status=");
    text_add(line, words_status(cq->status));
    text_add_character(line, '}');
}

static int traced_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    static const char call[] = "ibv_start_poll";
    if (!trace_ring_now())
        return calls_get(&layer.below, ibv_start_poll)(cq, attr);
    struct trace_line line;
    begin_clock(&line);
    int result = calls_get(&layer.below, ibv_start_poll)(cq, attr);
    if (result == ENOENT)
        add_empty(call, ibv_cq_ex_to_cq(cq), NO_COUNT, "ENOENT", line.when);
    if (result == ENOENT || !begin_found(&line, call))
        return result;
    VALUE_ARGUMENT(&line, cq)
    begin_result(&line);
    answer_code(&line, result);
    if (!result)
        add_entry(&line, cq);
    trace_ring_write(&line);
    return result;
}

static int traced_next_poll(struct ibv_cq_ex *cq)
{
    if (!begins_line())
        return calls_get(&layer.below, ibv_next_poll)(cq);
    struct trace_line line;
    begin_line(&line, "ibv_next_poll");
    VALUE_ARGUMENT(&line, cq)
    int result = calls_get(&layer.below, ibv_next_poll)(cq);
    begin_result(&line);
    answer_code(&line, result);
    if (!result)
        add_entry(&line, cq);
    end_line(&line);
    return result;
}

/* Of the types that drivers make, only EFA's SRD has work that this call posts (mlx5's has builders alone), and each
 * request of it names a receiver. */
static bool names_receivers(enum ibv_qp_type type)
{
    return qp_type_is_of_driver(type) || qp_type_traits(type) & QP_DATAGRAM;
}

/* Makes the text before the call: during it another thread may get the completion, and free the request. */
static int traced_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (!begins_line())
        return calls_get(&layer.below, ibv_post_send)(qp, wr, bad);
    struct trace_line line;
    text_begin(&line, "ibv_post_send", TRACE_TEXT - ROOM_OF_RESULT);
    VALUE_ARGUMENT(&line, qp)
    text_add_name(&line, "wr");
    value_send_requests(&line, wr, names_receivers(qp->qp_type));
    begin_clock(&line);
    int result = calls_get(&layer.below, ibv_post_send)(qp, wr, bad);
    begin_result(&line);
    answer_code(&line, result);
    end_line(&line);
    return result;
}

/* Shows the attributes as they are after the call. */
static int traced_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    if (!begins_line())
        return calls_get(&layer.below, ibv_query_qp)(qp, attr, mask, init);
    struct trace_line line;
    begin_line(&line, "ibv_query_qp");
    int result = calls_get(&layer.below, ibv_query_qp)(qp, attr, mask, init);
    line.shallow = result;
    VALUE_ARGUMENT(&line, qp)
    text_add_name(&line, "attr");
    value_qp_attributes(&line, attr, (unsigned)mask);
    VALUE_ARGUMENTS(&line, mask, init)
    begin_result(&line);
    answer_code(&line, result);
    end_line(&line);
    return result;
}

static int traced_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (!begins_line())
        return calls_get(&layer.below, ibv_modify_qp)(qp, attr, mask);
    struct trace_line line;
    begin_line(&line, "ibv_modify_qp");
    VALUE_ARGUMENT(&line, qp)
    text_add_name(&line, "attr");
    value_qp_attributes(&line, attr, (unsigned)mask);
    int result = calls_get(&layer.below, ibv_modify_qp)(qp, attr, mask);
    begin_result(&line);
    answer_code(&line, result);
    end_line(&line);
    return result;
}

/* Shows the attributes as they are after the call, which fills as many bytes as the program has. */
static int traced_query_efa(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t inlen)
{
    if (!begins_line())
        return calls_get(&layer.below, efadv_query_device)(context, attr, inlen);
    struct trace_line line;
    begin_line(&line, "efadv_query_device");
    int result = calls_get(&layer.below, efadv_query_device)(context, attr, inlen);
    line.shallow = result;
    VALUE_ARGUMENT(&line, context)
    text_add_name(&line, "attr");
    value_efa_device(&line, attr, inlen);
    VALUE_ARGUMENT(&line, inlen)
    begin_result(&line);
    answer_code(&line, result);
    end_line(&line);
    return result;
}

/* Shows the CQ of the event with the result. */
static int traced_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    if (!begins_line())
        return calls_get(&layer.below, ibv_get_cq_event)(channel, cq, cq_context);
    struct trace_line line;
    begin_line(&line, "ibv_get_cq_event");
    VALUE_ARGUMENT(&line, channel)
    show_wait(&line);
    int result = calls_get(&layer.below, ibv_get_cq_event)(channel, cq, cq_context);
    begin_result(&line);
    answer_minus(&line, result);
    if (!result) {
        text_add_character(&line, ' ');
        value_add(&line, "cq", CALLS_SUBJECT_IF(*cq), value_pointer, (uintptr_t)*cq);
    }
    end_line(&line);
    return result;
}

/* --- which calls */

static struct calls_layer layer = {.name = "trace", .place = CALLS_PLACE_TRACE};

/* The traced calls, without the readers of an iterator: start_poll and next_poll show the completion. */
static const struct calls all = {
#define CALL(answer, type, name, ...) .name = traced_##name,
#define HELD CALL
#define HELD_READER(...)
#include "calls/each.def"
};

const char *call_layer_trace(const char *calls)
{
    static char why[128];
    calls_take_off(&layer);
    if (!calls)
        return NULL;
    struct text_part unknown = call_names_unknown(calls);
    if (unknown.at) {
        snprintf(why, sizeof why, "there is no call \"%.*s\"", unknown.length < 80 ? (int)unknown.length : 80,
                 unknown.at);
        return why;
    }
    struct calls wanted = all;
    wanted.ibv_poll_cq = traced_poll_cq;
    wanted.ibv_start_poll = traced_start_poll;
    wanted.ibv_next_poll = traced_next_poll;
    wanted.ibv_post_send = traced_post_send;
    wanted.ibv_modify_qp = traced_modify_qp;
    wanted.ibv_query_qp = traced_query_qp;
    wanted.efadv_query_device = traced_query_efa;
    wanted.ibv_get_cq_event = traced_get_cq_event;
#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    if (!call_names_list(calls, title))                                                                                \
        wanted.name = NULL;
#define HELD CALL
#include "calls/each.def"
    layer.calls = wanted;
    calls_put_around(&layer);
    return NULL;
}
