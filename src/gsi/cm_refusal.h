/* Why commands of librdmacm are refused, as lines of events/refusal.h. */
#ifndef GSI_CM_REFUSAL_H
#define GSI_CM_REFUSAL_H

#include "cm/identifier.h"

/* As struct manager_operations has it. */
void cm_refusal_write(struct manager *, const struct manager_refusal *, const char *format, va_list);

/* `error`, for which find_port had no port of that address. */
int cm_refusal_of_address(int error, const struct cm_address *);

/* `error`, for which the host's table of ports had none for the identifier. */
int cm_refusal_of_port(int error, const struct identifier *);

#endif
