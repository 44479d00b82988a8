/* The HTML file that `softverbs draw` writes: the page of tools/draw/page/ with the ladder as JSON in it. */
#pragma once

#include <stdio.h>

#include "draw/ladder.h"

/* The parts of a page. */
struct page {
    const struct records *records;
    const struct flows *flows;
    const struct ladder *ladder;
    const char *title;
    uint32_t qp; /* pairs with this queue pair only; LOOKUP_NONE: all */
};

/* Writes the page; the stream keeps errors. */
void page_write(FILE *, const struct page *);
