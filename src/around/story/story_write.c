#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "around/story/story_record.h"
#include "base/read_clock.h"
#include "base/settings.h"
#include "calls/qp_types.h"
#include "check/findings/place_of_post.h"
#include "check/findings/symbol.h"
#include "diag/last_lines.h"
#include "diag/log.h"
#include "diag/shared_file.h"
#include "events/words.h"
#include "facts/fill.h"

/* A story and the epoch of its times. */
struct writing {
    const struct story_told *told;
    int64_t epoch;
    struct port_counters now;
};

static uint64_t time_of(const struct writing *writing, nanos time)
{
    return time + (uint64_t)writing->epoch;
}

/* The queues of an adapter have no facts. */
static void write_nothing(FILE *out, const void *of)
{
    (void)of;
    fputs("[]", out);
}

static void write_region(FILE *out, const struct writing *writing, const struct story_region *region)
{
    struct facts_mr facts = {.device = region->device};
    fact_put(&facts.key, true, region->rkey);
    fact_put(&facts.address, true, region->address);
    fact_put(&facts.length, true, region->length);
    fact_put(&facts.access, true, (uint64_t)region->access);
    fact_put(&facts.pd, true, region->pd);
    fact_put(&facts.gone, region->gone, time_of(writing, region->gone));
    facts_write(out, &facts_of_mr, &facts);
}

static void write_regions(FILE *out, const void *of)
{
    const struct writing *writing = of;
    const struct story_regions *regions = &writing->told->regions;
    fputs("[", out);
    for (unsigned at = 0; at < STORY_REGIONS && at < regions->made; at++) {
        fputs(at ? "," : "", out);
        write_region(out, writing, &regions->list[at]);
    }
    fputs("]", out);
}

static void write_memory(FILE *out, const void *of)
{
    const struct writing *writing = of;
    const struct story_memory *from = &writing->told->qp.failure.memory;
    char access[WORDS_SIZE], has[WORDS_SIZE];
    struct facts_refused facts = {.access = words_access(from->access, access),
                                  .has = from->known ? words_access(from->has, has) : NULL};
    fact_put(&facts.key, true, from->key);
    fact_put(&facts.address, true, from->address);
    fact_put(&facts.length, true, from->length);
    fact_put(&facts.base, from->known, from->base);
    fact_put(&facts.size, from->known, from->size);
    fact_put(&facts.pd, from->pd, from->pd);
    fact_put(&facts.gone, from->gone, time_of(writing, from->gone));
    facts_write(out, &facts_of_refused, &facts);
}

static void write_receive(FILE *out, const void *of)
{
    const struct story_failure *from = &((const struct writing *)of)->told->qp.failure;
    struct facts_receive facts = {.status = words_status(from->status)};
    fact_put(&facts.wr_id, true, from->wr_id);
    fact_put(&facts.room, true, from->length);
    facts_write(out, &facts_of_receive, &facts);
}

static void put_place(const char **place, const struct story_failure *from, char text[SYMBOL_SIZE])
{
    struct symbol symbol;
    if (!from->place || !from->place->count)
        return;
    symbol_find(from->place->frames[0], &symbol);
    symbol_describe(&symbol, text);
    *place = text;
}

static void fill_send(struct facts_error *facts, const struct story_failure *from, const struct writing *writing)
{
    facts->opcode = words_opcode(from->opcode);
    facts->status = words_status(from->status);
    fact_put(&facts->wr_id, true, from->wr_id);
    fact_put(&facts->posted, from->posted, time_of(writing, from->posted));
    fact_put(&facts->length, true, from->length);
    fact_put(&facts->address, true, from->remote);
    fact_put(&facts->key, true, from->rkey);
}

static void write_error(FILE *out, const void *of)
{
    const struct writing *writing = of;
    const struct story_failure *from = &writing->told->qp.failure;
    char place[SYMBOL_SIZE];
    struct facts_error facts = {.name = reason_name(from->reason), .subject = from->receive ? "receive" : "send"};
    fact_put(&facts.reason, true, from->reason);
    fact_put(&facts.time, true, time_of(writing, from->time));
    fact_put(&facts.vendor_err, true, from->vendor_err);
    put_place(&facts.place, from, place);
    if (from->receive)
        fact_put_inner(&facts.receive, write_receive, of);
    else
        fill_send(&facts, from, writing);
    if (from->memory.refused)
        fact_put_inner(&facts.memory, write_memory, of);
    facts_write(out, &facts_of_error, &facts);
}

static void write_events(FILE *out, const void *of)
{
    const struct writing *writing = of;
    last_events_report(out, &writing->told->events, writing->epoch);
}

static void write_moved(FILE *out, const void *of)
{
    const struct writing *writing = of;
    port_write_moved(out, &writing->told->qp.port->before, &writing->now);
}

static void fill_attributes(struct facts_story *facts, const struct story_qp *qp)
{
    int given = qp->given;
    const struct ibv_qp_attr *attr = &qp->attr;
    fact_put(&facts->peer_qp, given & IBV_QP_DEST_QPN, attr->dest_qp_num);
    fact_put(&facts->timeout, given & IBV_QP_TIMEOUT, attr->timeout);
    fact_put(&facts->retry_cnt, given & IBV_QP_RETRY_CNT, attr->retry_cnt);
    fact_put(&facts->rnr_retry, given & IBV_QP_RNR_RETRY, attr->rnr_retry);
    fact_put(&facts->sq_psn, given & IBV_QP_SQ_PSN, attr->sq_psn);
    fact_put(&facts->rq_psn, given & IBV_QP_RQ_PSN, attr->rq_psn);
    fact_put(&facts->access, given & IBV_QP_ACCESS_FLAGS, attr->qp_access_flags);
    fact_put(&facts->flushed_sends, true, qp->flushed_sends);
    fact_put(&facts->flushed_receives, true, qp->flushed_receives);
    fact_put(&facts->send_posted, true, qp->send_posted);
    fact_put(&facts->recv_posted, true, qp->recv_posted);
    fact_put(&facts->max_dest_rd_atomic, given & IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic);
    fact_put_flag(&facts->moved, true, qp->moved);
}

enum { GID_TEXT = 41 };

/* As the kernel writes them. */
static void fill_gids(struct facts_story *facts, const struct story_qp *qp, char own[GID_TEXT], char peer[GID_TEXT])
{
    enum { GROUP = 5 };
    const struct ibv_ah_attr *way = &qp->attr.ah_attr;
    const uint8_t *raw = way->grh.dgid.raw;
    if (!(qp->given & IBV_QP_AV) || !way->is_global || !qp->port)
        return;
    for (unsigned at = 0; at < sizeof way->grh.dgid.raw / 2; at++)
        snprintf(peer + at * GROUP, GROUP + 1, "%02x%02x:", raw[2 * at], raw[2 * at + 1]);
    peer[GID_TEXT - 2] = 0; /* the last colon */
    facts->peer_gid = peer;
    if (port_gid(qp->port->path, qp->port->number, way->grh.sgid_index, own, GID_TEXT))
        facts->gid = own;
}

/* Reading takes milliseconds, or longer. What a quiet queue pair has may help the other end, and holds its process up
 * for a fifth of a second at most, in all. Returns whether there are counters. */
static bool read_counters(const struct story_port *port, bool quiet, struct port_counters *counters)
{
    static const nanos most = NANOS_SECOND / 5;
    static _Atomic nanos spent;
    if (quiet && atomic_load(&spent) > most)
        return false;
    nanos begun = read_clock(CLOCK_MONOTONIC);
    port_read(port->path, port->number, counters);
    if (quiet)
        atomic_fetch_add(&spent, read_clock(CLOCK_MONOTONIC) - begun);
    return true;
}

static void fill_port(struct facts_story *facts, struct writing *writing)
{
    const struct story_qp *qp = &writing->told->qp;
    const struct story_port *port = qp->port;
    facts->device = port ? port->device : "";
    facts->driver = port ? port->driver : "";
    if (port)
        fact_put_flag(&facts->port_down, port_is_down(port->path, port->number), true);
    if (!port || !port->since || !read_counters(port, qp->state != IBV_QPS_ERR, &writing->now))
        return;
    fact_put(&facts->port_since, true, time_of(writing, port->since));
    fact_put_inner(&facts->port_counters, write_moved, writing);
}

static void write_story(FILE *out, struct writing *writing)
{
    const struct story_qp *qp = &writing->told->qp;
    char host[HOST_NAME_MAX + 1] = "", own[GID_TEXT], peer[GID_TEXT];
    gethostname(host, sizeof host - 1);
    struct facts_story facts = {.host = host,
                                .program = program_invocation_short_name,
                                .type = qp_type_word(qp->type),
                                .state = words_state(qp->state),
                                .fatal = qp->event};
    fact_put(&facts.pid, true, (uint64_t)getpid());
    fact_put(&facts.qp, true, qp->number);
    fact_put(&facts.time, true, read_clock(CLOCK_REALTIME));
    fact_put(&facts.over, qp->over, time_of(writing, qp->over));
    fill_attributes(&facts, qp);
    fill_gids(&facts, qp, own, peer);
    fill_port(&facts, writing);
    fact_put_inner(&facts.counts, last_events_write_counts, &(struct counts){0});
    fact_put_inner(&facts.cqs, write_nothing, NULL);
    fact_put_inner(&facts.regions, write_regions, writing);
    fact_put_inner(&facts.events, write_events, writing);
    if (qp->failure.status)
        fact_put_inner(&facts.error, write_error, writing);
    fact_put_flag(&facts.other_keys, writing->told->regions.others, true);
    facts_write(out, &facts_of_story, &facts);
}

/* The first process that can't write says so, once. */
static void append(const char *text, size_t size)
{
    static atomic_bool said;
    const char *file = setting_environment(SETTING_STORY);
    int error = file ? shared_file_append(file, true, text, size) : 0;
    if (error && !atomic_exchange(&said, true))
        log_write(LOG_ERROR, "a story of a queue pair can't be written to \"%s\": %s", file, strerror(error));
}

/* A line for `softverbs why --last`, in the form of those of the log. */
static void keep_line(const struct story_qp *story)
{
    char line[LAST_LINES_TEXT];
    const struct story_failure *failure = &story->failure;
    if (!failure->status)
        return;
    snprintf(line, sizeof line, "softverbs: %.32s[%d] qp 0x%x: %s with wr_id %llu ended with %s, vendor_err 0x%x",
             program_invocation_short_name, (int)getpid(), story->number,
             failure->receive ? "a receive" : "work of the send queue", (unsigned long long)failure->wr_id,
             words_status(failure->status), failure->vendor_err);
    last_lines_add(line);
}

void story_append(const struct story_told *told)
{
    keep_line(&told->qp);
    struct writing *writing = calloc(1, sizeof *writing);
    char *text = NULL;
    size_t size = 0;
    FILE *out = writing ? open_memstream(&text, &size) : NULL;
    if (out) {
        *writing = (struct writing){.told = told, .epoch = read_clock_epoch()};
        write_story(out, writing);
        fputs("\n", out);
        if (!fclose(out))
            append(text, size);
    }
    free(text);
    free(writing);
}
