#include "abi/ucma/ucma.h"

#include <errno.h>
#include <string.h>

#include "abi/bottom.h"
#include "abi/ucma/ucma_call.h"
#include "base/uncancelled.h"
#include "events/refusal.h"
#include "runtime/clock.h"

enum how { told, quiet, waits }; /* the words of ucma.def */

struct command {
    const char *name; /* the function of librdmacm that writes the command */
    int (*serve)(struct ucma_call *);
    uint16_t in;        /* bytes of the layout */
    uint16_t least_in;  /* bytes of its oldest form */
    uint16_t least_out; /* bytes of room for the answer */
    uint16_t object;    /* offset of the identifier's number in the layout, or UCMA_NO_OBJECT */
    enum how how;
};

static const struct command commands[UCMA_COMMANDS] = {
#define COMMAND(number, page, told_how, function, layout, least, reply, identifier)                                    \
    [UCMA_##number] = {.name = #page,                                                                                  \
                       .serve = (function),                                                                            \
                       .in = sizeof(struct layout),                                                                    \
                       .least_in = (least),                                                                            \
                       .least_out = (reply),                                                                           \
                       .object = (identifier),                                                                         \
                       .how = (told_how)},
#include "calls/ucma.def"
};

static int serve(struct ucma_call *call, const struct command *command)
{
    call->now = clock_now();
    if (command->how == waits)
        return not_refused(command->serve(call));
    int before = uncancelled_begin();
    if (command->serve == ucma_destroy_id)
        event_channel_let_fetch(call->channel, call->object);
    cm_begin(call->channel->cm);
    int error = command->serve(call);
    cm_end(call->channel->cm);
    uncancelled_end(before);
    return error;
}

#define COMMAND(number, page, how, function, layout, least, reply, object)                                             \
    static int bottom_##function(struct ucma_call *call)                                                               \
    {                                                                                                                  \
        return serve(call, &commands[UCMA_##number]);                                                                  \
    }                                                                                                                  \
    static int through_##function(struct ucma_call *call)                                                              \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return around ? calls_get(around, function)(call) : bottom_##function(call);                                   \
    }                                                                                                                  \
    _Static_assert(sizeof(struct layout) <= sizeof(struct ucma_write_event), "a larger command");
#include "calls/ucma.def"

void bottom_of_commands(struct calls *calls)
{
#define COMMAND(number, page, how, function, layout, least, reply, object) calls->function = bottom_##function;
#include "calls/ucma.def"
}

static int (*const through_layers[UCMA_COMMANDS])(struct ucma_call *) = {
#define COMMAND(number, page, how, function, layout, least, reply, object) [UCMA_##number] = through_##function,
#include "calls/ucma.def"
};

/* Another thread of the program may overwrite the command's bytes while the command is served, so a copy is taken. */
static int call_with_copy(struct ucma_call *call, const struct ucma_header *header, const uint8_t *bytes)
{
    const struct command *command = &commands[header->command];
    _Alignas(8) uint8_t copy[sizeof(struct ucma_write_event)] = {0};
    memcpy(copy, bytes, header->in < command->in ? header->in : command->in);
    call->in = copy;
    if (command->object != UCMA_NO_OBJECT)
        memcpy(&call->object, copy + command->object, sizeof call->object);
    return through_layers[header->command](call);
}

/* Programs disconnect connections that their peers have disconnected. */
static bool is_usual(const struct command *command)
{
    return command->how == quiet || command->serve == ucma_disconnect;
}

static int check_command(const struct ucma_call *call, const struct ucma_header *header)
{
    const struct command *command = &commands[header->command];
    const struct cm *cm = call->channel->cm;
    if (cm_is_over(cm) && command->how != waits) /* the process ends: nobody needs a line */
        return not_refused(EIO);
    if (cm_is_inherited(cm) && !cm_is_over(cm))
        return refuse(EIO, REASON_FORKED, "event channel of descriptor %d", call->fd);
    if (header->in < command->least_in)
        return refuse(EINVAL, REASON_CM_COMMAND_LENGTH, "command %u of %u bytes, at least %u", header->command,
                      header->in, command->least_in);
    if (header->out < command->least_out)
        return refuse(ENOSPC, REASON_CM_ANSWER_ROOM, "command %u with room for %u bytes, at least %u", header->command,
                      header->out, command->least_out);
    return 0;
}

static int ucma_name_and_call(struct ucma_call *call, const struct ucma_header *header, const uint8_t *bytes)
{
    const struct command *command = &commands[header->command];
    const struct refusal before = refusal_begin(command->name);
    if (is_usual(command))
        refusal_usual();
    int error = check_command(call, header);
    if (!error)
        error = call_with_copy(call, header, bytes);
    refusal_end(&before, error);
    return error;
}

int ucma_write(struct event_channel *channel, int fd, const void *bytes, size_t length)
{
    static const char device[] = "write to rdma_cm";
    struct ucma_header header;
    if (length < sizeof header)
        return refuse_in(device, EINVAL, REASON_CM_COMMAND_LENGTH, "%zu bytes, at least %zu", length, sizeof header);
    memcpy(&header, bytes, sizeof header);
    if (header.command >= UCMA_COMMANDS || !commands[header.command].serve)
        return refuse_in(device, header.command < UCMA_COMMANDS ? ENOSYS : EINVAL, REASON_CM_COMMAND, "command %u",
                         header.command);
    if (header.in + sizeof header > length)
        return refuse_in(device, EINVAL, REASON_CM_COMMAND_LENGTH, "command %u of %u bytes, and %zu were written",
                         header.command, header.in, length - sizeof header);
    struct ucma_call call = {.channel = channel, .fd = fd, .out = header.out};
    return ucma_name_and_call(&call, &header, (const uint8_t *)bytes + sizeof header);
}
