#include "gsi/cleanup/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/mapping.h"
#include "base/uncancelled.h"
#include "cm/connect.h"
#include "config/config.h"
#include "config/gid.h"
#include "config/local_gid.h"
#include "diag/log.h"
#include "gsi/cleanup/cleanup_layout.h"
#include "gsi/cleanup/cleanup_start.h"
#include "process/port.h"

static const nanos retry_after = 10 * NANOS_SECOND; /* a start that failed may succeed later */

struct cleanup {
    struct cleanup_shared *shared;   /* NULL: no memory */
    int held;                        /* the pipe that closes with the program; -1: there is no cleanup process */
    ino_t held_inode;                /* the pipe's: the program may have closed it, and have another file there */
    uint32_t free_count;             /* number of free records */
    uint16_t free[CLEANUP_SESSIONS]; /* the places of these */
    int told;                        /* the errno that was logged last */
    nanos retry_at;                  /* after a failure */
};

/* --- the shared memory */

static int make_memory(int *fd)
{
    if (file_limit_forbids(sizeof(struct cleanup_shared)))
        return EFBIG;
    *fd = memfd_create("softverbs-cleanup", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return errno;
    if (!ftruncate(*fd, sizeof(struct cleanup_shared)) &&
        !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return 0;
    int error = errno;
    close(*fd);
    return error;
}

static int map_memory(struct cleanup_shared **to, int *fd)
{
    int error = make_memory(fd);
    if (error)
        return error;
    void *memory = mapping_make(sizeof(struct cleanup_shared), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (memory == MAP_FAILED) {
        error = errno;
        close(*fd);
        return error;
    }
    *to = memory;
    (*to)->size = sizeof **to;
    (*to)->layout = CLEANUP_LAYOUT;
    (*to)->magic = CLEANUP_MAGIC;
    return 0;
}

/* Moves the records into new memory for a new cleanup process; each keeps its place. */
static int renew_memory(struct cleanup *cleanup, int *fd)
{
    uint32_t used = CLEANUP_SESSIONS - cleanup->free_count;
    struct cleanup_shared *fresh = NULL;
    int error = map_memory(&fresh, fd);
    if (error)
        return error;
    atomic_store(&fresh->count, used);
    if (used)
        memcpy(fresh->records, cleanup->shared->records, sizeof fresh->records);
    if (cleanup->shared)
        munmap(cleanup->shared, sizeof *cleanup->shared);
    cleanup->shared = fresh;
    return 0;
}

/* --- the cleanup process */

static bool holds(const struct cleanup *cleanup)
{
    struct stat status;
    return cleanup->held >= 0 && !fstat(cleanup->held, &status) && S_ISFIFO(status.st_mode) &&
           status.st_ino == cleanup->held_inode;
}

static void let_go(struct cleanup *cleanup)
{
    if (holds(cleanup))
        close(cleanup->held);
    cleanup->held = -1;
}

static void hold(struct cleanup *cleanup, int fd)
{
    struct stat status = {.st_ino = 0};
    fstat(fd, &status);
    cleanup->held = fd;
    cleanup->held_inode = status.st_ino;
}

/* Returns true if there is no cleanup process: a user may have killed it, and the program may have closed the pipe. */
static bool is_gone(const struct cleanup *cleanup)
{
    struct pollfd end = {.fd = cleanup->held};
    return !holds(cleanup) || (poll(&end, 1, 0) > 0 && end.revents & (POLLERR | POLLNVAL));
}

/* Logs a cause once, until a failure has another cause. */
static void log_failure(struct cleanup *cleanup, int error, const char *why, nanos now)
{
    if (cleanup->told != error)
        log_reason(LOG_WARN, REASON_CM_NO_CLEANUP, "%s: %s", why, strerror(error));
    cleanup->told = error;
    cleanup->retry_at = now + retry_after;
}

static void start_process(struct cleanup *cleanup, nanos now)
{
    int memory, held;
    const char *why = "memory for a cleanup process";
    let_go(cleanup);
    int before = uncancelled_begin(), error = renew_memory(cleanup, &memory);
    if (!error) {
        error = cleanup_start(memory, &held, &why);
        close(memory);
    }
    uncancelled_end(before);
    if (error)
        log_failure(cleanup, error, why, now);
    else
        hold(cleanup, held);
}

/* Returns true if the cleanup process ended before it was ready. Another one would, too. */
static bool has_failed(const struct cleanup *cleanup)
{
    return holds(cleanup) && !atomic_load(&cleanup->shared->lives);
}

static void see_to_process(struct cleanup *cleanup, nanos now)
{
    if (!is_gone(cleanup))
        return;
    if (has_failed(cleanup)) {
        let_go(cleanup);
        log_failure(cleanup, ENOEXEC, "the library's file, when it was run as a program", now);
    }
    if (now >= cleanup->retry_at)
        start_process(cleanup, now);
}

/* --- records */

static struct cleanup *make(void)
{
    struct cleanup *cleanup = calloc(1, sizeof *cleanup);
    if (!cleanup)
        return NULL;
    cleanup->held = -1;
    cleanup->free_count = CLEANUP_SESSIONS;
    for (unsigned i = 0; i < CLEANUP_SESSIONS; i++)
        cleanup->free[i] = (uint16_t)(CLEANUP_SESSIONS - 1 - i);
    return cleanup;
}

/* Counts the record first: a cleanup process that had no sessions for a while ends, and sets CLEANUP_OVER in the
 * count. */
static void take_record(struct cleanup *cleanup, struct session *session, nanos now)
{
    see_to_process(cleanup, now);
    if (!cleanup->shared || !cleanup->free_count)
        return;
    if (atomic_fetch_add(&cleanup->shared->count, 1) & CLEANUP_OVER) {
        start_process(cleanup, now);
        atomic_fetch_add(&cleanup->shared->count, 1);
    }
    session->record = 1u + cleanup->free[--cleanup->free_count];
}

static struct cleanup_record *record_of(const struct cleanup *cleanup, const struct session *session)
{
    return &cleanup->shared->records[session->record - 1];
}

static bool ends_in_zeros(const uint8_t mad[MAD_BYTES])
{
    for (unsigned i = CLEANUP_GOODBYE; i < MAD_BYTES; i++)
        if (mad[i])
            return false;
    return true;
}

/* Writes the message that the peer needs at the program's end, as it is sent; false: the peer needs no message. */
static bool read_goodbye(const struct session *session, uint8_t mad[MAD_BYTES])
{
    struct cm_message message;
    if (!session->operations->goodbye(session, &message))
        return false;
    cm_encode(&message, mad);
    return ends_in_zeros(mad);
}

/* Returns true if the peer may still send a DREQ: also to a connection in timewait, if it has not answered ours. */
static bool may_be_asked(const struct session *session)
{
    const struct connection *connection = connect_of(session);
    return connection && connection->state != CONNECTION_IDLE && connection->remote.communication_id &&
           !(connection->parting & CONNECTION_DREP_CAME);
}

/* A program that is killed within this function leaves a record without a message. */
static void write_record(struct cleanup_record *record, const struct session *session, const uint8_t *goodbye)
{
    const struct connection *connection = connect_of(session);
    atomic_store(&record->state, CLEANUP_FREE);
    record->local_id = connection ? connection->local.communication_id : 0;
    record->remote_id = connection ? connection->remote.communication_id : 0;
    memcpy(record->source, session->route.from.gid, 16);
    memcpy(record->destination, session->route.gid, 16);
    if (goodbye)
        memcpy(record->goodbye, goodbye, sizeof record->goodbye);
    atomic_store(&record->state, goodbye ? CLEANUP_GOODBYES : CLEANUP_SILENT);
}

/* The index of the interface that leads to the peer; 0: the session stays within this host. */
static unsigned find_interface(const struct process *process, const struct session *session)
{
    const struct device *device = config_device(session->route.from.device);
    union ibv_gid peer;
    memcpy(peer.raw, session->route.gid, 16);
    unsigned interface = device ? port_interface(process, device) : 0;
    return interface && !config_local_gid(&peer) ? interface : 0;
}

void cleanup_note(struct cleanup **to, const struct process *process, struct session *session, nanos now)
{
    uint8_t mad[MAD_BYTES];
    unsigned interface = find_interface(process, session);
    if (!interface)
        return;
    bool owes = read_goodbye(session, mad);
    if (!owes && !may_be_asked(session)) {
        cleanup_forget(*to, session);
        return;
    }
    if (!*to && !(*to = make()))
        return;
    if (!session->record)
        take_record(*to, session, now);
    if (!session->record)
        return;
    record_of(*to, session)->interface = interface;
    write_record(record_of(*to, session), session, owes ? mad : NULL);
}

void cleanup_forget(struct cleanup *cleanup, struct session *session)
{
    if (!cleanup || !session->record)
        return;
    atomic_store(&record_of(cleanup, session)->state, CLEANUP_FREE);
    cleanup->free[cleanup->free_count++] = (uint16_t)(session->record - 1);
    atomic_fetch_sub(&cleanup->shared->count, 1);
    session->record = 0;
}

void cleanup_end(struct cleanup **cleanup)
{
    if (!*cleanup)
        return;
    let_go(*cleanup);
    if ((*cleanup)->shared)
        munmap((*cleanup)->shared, sizeof *(*cleanup)->shared);
    free(*cleanup);
    *cleanup = NULL;
}
