/* The checker's layer around all calls (calls/calls.h), and the files that fill in its functions. */
#pragma once

#include "calls/calls.h"

extern struct calls_layer layer_check;

/* The function below the layer: layer_below(ibv_post_send)(qp, ...). */
#define layer_below(name) calls_get(&layer_check.below, name)

void objects_fill(struct calls *); /* create, change, destroy */
void queue_pairs_fill(struct calls *);
void posts_fill(struct calls *);    /* ibv_post_send, ibv_post_recv, ibv_post_srq_recv */
void builders_fill(struct calls *); /* ibv_wr_start to ibv_wr_complete */
void polls_fill(struct calls *);    /* ibv_poll_cq, ibv_start_poll, the readers */
void events_fill(struct calls *);   /* arming, fetching and acknowledging */

/* Lets the rules see what the queue pair, which is being destroyed, has refused of its peers. Under no lock. */
void queue_pairs_see_refused(struct ibv_qp *);
