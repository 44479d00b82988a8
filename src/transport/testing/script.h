/* Scripts for tests: the inputs of a rig's engine and its proper actions, step by step. Every step reports the
 * script's own line when it fails. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/testing/rig.h"
#include "wire/psn.h"

const struct packet *script_sends(struct rig *, enum operation, uint32_t psn, const char *file, int line);
void script_answers(struct rig *, uint8_t syndrome, uint32_t psn, const char *file, int line);
void script_silent(struct rig *, const char *file, int line);
void script_ends(struct rig *, uint64_t id, enum ibv_wc_status, const char *file, int line);
void script_ends_nothing(struct rig *, const char *file, int line);
const struct recv_cqe *script_delivers(struct rig *, uint64_t id, enum ibv_wc_status, const char *file, int line);
void script_delivers_nothing(struct rig *, const char *file, int line);
void script_raises(struct rig *, enum ibv_event_type, const char *file, int line);
void script_raises_nothing(struct rig *, const char *file, int line);
void script_drops(struct rig *, enum reason, const char *file, int line);

/* Post and send a SEND of one byte; the first work, a READ into 0x1000 from 0x40. They return the work's id. */
uint64_t script_send(struct rig *, uint32_t psn, const char *file, int line);
uint64_t script_read(struct rig *, uint32_t length, const char *file, int line);

/* A SEND of 600 bytes: three packets. */
uint64_t script_message(struct rig *, const char *file, int line);

/* The steps of a script. */
#define post(rig, ...) rig_post(rig, (struct rig_work){__VA_ARGS__})
#define post_receive(rig, length) rig_post_receive(rig, 0x8000, length, KEY_ALL)
#define arrives(rig, operation, psn, ...) rig_arrive(rig, OPERATION_##operation, psn, (struct rig_packet){__VA_ARGS__})
#define is_acknowledged(rig, psn) arrives(rig, ACKNOWLEDGE, psn, .packet = {.syndrome = SYNDROME_ACK})
#define is_refused(rig, code, psn) arrives(rig, ACKNOWLEDGE, psn, .packet = {.syndrome = code})
#define waits(rig, time) rig_wait(rig, time)
#define sends(rig, operation, psn) script_sends(rig, OPERATION_##operation, psn, __FILE__, __LINE__)
#define acknowledges(rig, psn) script_answers(rig, SYNDROME_ACK, psn, __FILE__, __LINE__)
#define refuses(rig, code, psn) script_answers(rig, code, psn, __FILE__, __LINE__)
#define is_silent(rig) script_silent(rig, __FILE__, __LINE__)
#define ends(rig, id, status) script_ends(rig, id, status, __FILE__, __LINE__)
#define ends_nothing(rig) script_ends_nothing(rig, __FILE__, __LINE__)
#define delivers(rig, id, status) script_delivers(rig, id, status, __FILE__, __LINE__)
#define delivers_nothing(rig) script_delivers_nothing(rig, __FILE__, __LINE__)
#define raises(rig, event) script_raises(rig, event, __FILE__, __LINE__)
#define raises_nothing(rig) script_raises_nothing(rig, __FILE__, __LINE__)
#define drops(rig, why) script_drops(rig, why, __FILE__, __LINE__)
#define send_under_way(rig, psn) script_send(rig, psn, __FILE__, __LINE__)
#define read_under_way(rig, length) script_read(rig, length, __FILE__, __LINE__)
#define message_under_way(rig) script_message(rig, __FILE__, __LINE__)

/* RETH of a request, for `arrives`. */
#define RETH(where, bytes_in_all) .address = (where), .rkey = KEY_ALL, .length = (bytes_in_all)

/* Runs a test on a fresh rig. */
int script_set_up(void **state);
int script_set_up_uc(void **state);
int script_set_up_ud(void **state);
int script_tear_down(void **state);
#define script(test) cmocka_unit_test_setup_teardown(test, script_set_up, script_tear_down)
#define uc_script(test) cmocka_unit_test_setup_teardown(test, script_set_up_uc, script_tear_down)
#define ud_script(test) cmocka_unit_test_setup_teardown(test, script_set_up_ud, script_tear_down)
