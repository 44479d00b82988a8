/* Requests to process 1 of a lab, which change its links or list them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { LAB_REQUEST_MOST = 512, LAB_REPLY_MOST = 1 << 16 };

/* The socket where process 1 waits for requests; -1 and errno. */
int lab_control_listen(void);

/* Takes one request; `answer` writes the reply, and false is a refusal. */
void lab_control_serve(int listener, bool (*answer)(void *context, const char *request, char *reply, size_t size),
                       void *context);

/* Asks from a host of the lab. -1: no process 1 answers (errno); 0: refused, and the reply says why; 1: done. */
int lab_control_ask(const char *request, char *reply, size_t size);
