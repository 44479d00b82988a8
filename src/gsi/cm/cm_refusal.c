#include "gsi/cm/cm_refusal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "events/refusal.h"

enum { TEXT_ROOM = 200 };

const char *cm_refusal_words(const uint8_t gid[16], char text[WORDS_GID])
{
    union ibv_gid copy;
    memcpy(&copy, gid, sizeof copy);
    return words_gid(&copy, text);
}

/* Appends the address, and what the errno says unless it is EINVAL. */
static void add_address(const struct manager_refusal *refusal, char text[TEXT_ROOM])
{
    char address[WORDS_GID];
    size_t length = strlen(text);
    bool known = refusal->error == EINVAL;
    snprintf(text + length, TEXT_ROOM - length, " is %s%s%s", cm_refusal_words(refusal->address->gid, address),
             known ? "" : ": ", known ? "" : strerror(refusal->error));
}

void cm_refusal_write(struct manager *manager, const struct manager_refusal *refusal, const char *format,
                      va_list values)
{
    int (*write)(int, enum reason, const char *, ...) = refusal->usual ? refuse_offer : refuse;
    char text[TEXT_ROOM];
    vsnprintf(text, sizeof text, format, values);
    if (refusal->address)
        add_address(refusal, text);
    if (refusal->identifier)
        write(refusal->error, refusal->reason, "identifier %u: %s", identifier_number(refusal->identifier), text);
    else
        write(refusal->error, refusal->reason, "%s", text);
}

int cm_refusal_of_address(int error, const struct cm_address *address)
{
    char text[WORDS_GID];
    cm_refusal_words(address->gid, text);
    if (error == EADDRNOTAVAIL)
        return refuse_offer(error, REASON_CM_NOT_LOCAL, "%s", text);
    if (error == ENODEV && !config_has_interfaces())
        return refuse(error, REASON_CM_NO_INTERFACE, "%s", text);
    return refuse_offer(error, REASON_SYSTEM_CALL, "%s: %s", text, strerror(error));
}

/* The reason of an error of the table of ports. A port that the program named conflicts with a claim of the same
 * address, or of all addresses. */
static enum reason reason_of(int error, uint16_t port)
{
    if (error == EADDRINUSE || (error == EADDRNOTAVAIL && port))
        return REASON_CM_PORT_TAKEN;
    if (error == EADDRNOTAVAIL)
        return REASON_CM_NO_PORT_FREE;
    return error == ENOSPC ? REASON_CM_PORTS_FULL : REASON_SYSTEM_CALL;
}

int cm_refusal_of_port(int error, const struct identifier *identifier)
{
    uint16_t port = identifier->source.port;
    return refuse_offer(error, reason_of(error, port), "identifier %u: port %u of port space 0x%x: %s",
                        identifier_number(identifier), port, identifier->port_space, strerror(error));
}
