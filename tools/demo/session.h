/* The programs that `softverbs demo` starts: two processes that meet at a TCP port, and commands that end by
 * themselves. */
#pragma once

#include <stdbool.h>

#include "place.h"

enum { SESSION_WORDS = 32, SESSION_WHY = 512 };

struct session {
    char directory[PLACE_PATH_MAX];    /* of this demonstration alone: outputs, captures, and where processes meet */
    char own_pingpong[PLACE_PATH_MAX]; /* softverbs' own program (pingpong.c) */
    char pingpong[PLACE_PATH_MAX];     /* ibv_rc_pingpong, or else own_pingpong */
    bool installed;                    /* `pingpong` is ibv_rc_pingpong */
    char why[SESSION_WHY];             /* the sentence of the call that failed last */
};

/* Finds the program, makes the directory below $TMPDIR or /tmp, and makes it the working directory, so that each file
 * is known by its name alone; or returns false with `why`. A session that began has to be ended. */
bool session_begin(struct session *);

/* Removes the directory; the working directory is / then. */
void session_end(struct session *);

/* Runs the command of the words (NULL after the last; the first, "softverbs", means this executable), shows it, and
 * writes its output to the file `name`. Returns its exit status (128 and the signal, as shells do), or -1 with `why`:
 * it was not started, or did not end within half a minute and was killed. */
int session_run(struct session *, const char *name, const char *const *words);

/* Runs `softverbs run OPTIONS -- PROGRAM ARGUMENTS` twice, as the server and, once the server listens, as the client,
 * which has the address of this host after its arguments, and shows both commands. Their outputs are the files
 * "server" and "client". Returns whether both ended with the status that the pair names, or false with `why`. */
struct session_pair {
    const char *program;
    const char *const *options;        /* of both `softverbs run`, NULL after the last */
    const char *const *arguments;      /* of both programs, besides the port */
    const char *const *client_options; /* of the client alone */
    const char *const *client_arguments;
    int status;
};
bool session_pair(struct session *, const struct session_pair *);
