/* Wrong texts of scripts: where each is wrong, why, and what may have been meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "script/parse.h"

static struct script script;

struct text {
    const char *text;
    unsigned line, column;
    const char *why;
};

static const struct text wrong[] = {
    {"when", 1, 5, "The name of a call is missing."},
    {"\n  when ibv_reg_mrs: error EIO", 2, 8,
     "No call of libibverbs or librdmacm that softverbs sees is named \"ibv_reg_mrs\". Did you mean \"ibv_reg_mr\"?"},
    {"when ibv_reg_mr error EIO", 1, 17, "A comma and a condition, or a colon and an action, must follow here."},
    {"when ibv_reg_mr, third: error EIO", 1, 18, "\"third\" is not a condition."},
    {"when ibv_reg_mr, nth 0: error EIO", 1, 22, "Calls are counted from 1 on."},
    {"when ibv_reg_mr, nth -1: error EIO", 1, 22, "\"-1\" is not a number from 0 to 9223372036854775807."},
    {"when ibv_reg_mr, chance 101%: error EIO", 1, 25, "\"101%\" is not a percentage from 0% to 100%."},
    {"when ibv_reg_mr, after 5: error EIO", 1, 24, "\"5\" is not a time up to 1000s with its unit (ns, us, ms or s)."},
    {"when ibv_reg_mr, on qp: error EIO", 1, 23, "A number is missing."},
    {"when ibv_reg_mr: explode", 1, 18, "\"explode\" is not an action."},
    {"when ibv_reg_mr: error ENOTHING", 1, 24, "\"ENOTHING\" is no errno that scripts know, such as E2BIG."},
    {"when ibv_reg_mr: error EIO now", 1, 28, "The rule has ended here, and more follows."},
    {"when ibv_wr_send: error EIO", 1, 6, "The call can't fail: it has no way to report an error."},
    {"when ibv_reg_mr, program \"x: error EIO", 1, 26, "The quotation does not end in its line."},
    {"ibv_reg_mr", 1, 1, "The rule has no action, such as error or delay."},
    {"ibv_reg_mr:when=2", 1, 1, "The rule has no action, such as error or delay."},
    {"when work: vendor 3", 1, 1, "The rule has no action, such as error or delay."},
    {"ibv_reg_mr:retval=2", 1, 12, "\"retval\" is not one of error, delay_enter, signal, when and other actions."},
    {"when work: error EIO", 1, 12, "The action \"error\" is for a call, not for this."},
    {"when ibv_reg_mr: complete GENERAL_ERR", 1, 18, "The action \"complete\" is for work or receive, not for this."},
    {"when event: drop, complete GENERAL_ERR", 1, 19, "The action \"complete\" is for work or receive, not for this."},
    {"when packet, opcode FLY: drop", 1, 21, "\"FLY\" is not an operation of a packet, such as SEND_ONLY."},
    {"when message, opcode FLY: drop", 1, 22, "\"FLY\" is not a message of the connection manager, such as REQ."},
    {"when request: reject 65536", 1, 22, "\"65536\" is not a number from 0 to 65535."},
    {"when ibv_poll_cq: raise earthquake", 1, 25,
     "\"earthquake\" is not an event that can be raised, such as port-down."},
    {"when packet: raise port-down", 1, 14, "The action \"raise\" is for a call or open, not for this."},
    {"when packet: set psn 16777216", 1, 22, "\"16777216\" is not a value of psn."},
    {"when packet: set state DOWN", 1, 18, "\"state\" is not a field that can be set there."},
    {"when ibv_query_port: set state UP", 1, 32, "\"UP\" is not a value of state."},
    {"when ibv_query_gid: set gid nowhere", 1, 29, "\"nowhere\" is not a value of gid."},
    {"when ibv_query_port: set lid 1, set lid 1, set lid 1, set lid 1, set lid 1", 1, 70,
     "A rule sets at most 4 fields."},
    {"when ibv_reg_mr: set state DOWN", 1, 22, "\"state\" is not a field that can be set there."},
    {"when ibv_reg_mr: hide x", 1, 23, "Only ibv_get_device_list can hide a device, by its name."},
    {"fault drop", 1, 7, "\"drop\" needs a value: drop=..."},
    {"fault spill=1%", 1, 7, "\"spill\" is not one of drop, dup, reorder, delay, corrupt, and seed."},
    {"fault drop=1%,dup=1%,drop=2%", 1, 22, "\"drop\" is there twice."},
    {"fault delay=11s", 1, 13, "\"11s\" is not a time up to 10s with its unit (ns, us, ms or s)."},
    {"fault delay=1ms+-1", 1, 18, "\"1\" is not a time up to 10s with its unit (ns, us, ms or s)."},
    {"fault delay=0s", 1, 7, "A delay of 0 does nothing."},
    {"event earthquake soft0", 1, 7, "\"earthquake\" is not an event that can be raised, such as port-down."},
    {"event qp-fatal soft0", 1, 7, "\"qp-fatal\" is not an event of a device, such as port-down."},
    {"event port-down", 1, 16, "The name of a device is missing."},
    {"event port-down soft0 now", 1, 23, "The rule has ended here, and more follows."},
    {"fault drop=101%", 1, 12, "\"101%\" is not a percentage from 0% to 100%."},
    {"fault seed=1", 1, 6, "A seed alone is not a fault."},
    {"fault delay=1ms+-2ms", 1, 13, "A delay that varies by more than it lasts would be below 0."},
    {"when packet: cut -1", 1, 18, "\"-1\" is not a number from 0 to 4294967295."},
    {"when packet: forge ACK", 1, 20, "\"ACK\" is no packet that scripts know, such as CNP. Did you mean \"OLD_ACK\"?"},
    {"when packet: bandwidth 10MB", 1, 24, "\"10MB\" is not a rate from 1bit on, in bit, kbit, Mbit or Gbit."},
    {"when packet: freeze 1s", 1, 14, "The action \"freeze\" is for a call, not for this."},
    {"when completion: hold", 1, 18, "The action \"hold\" is for packet, not for this."},
    {"when timewait: drop", 1, 16,
     "The action \"drop\" is for completion, event, packet, message, request, address, route or group, not for this."},
    {"when address: error EIO", 1, 15, "The action \"error\" is for a call, not for this."},
    {"when work: complete WORSE", 1, 21, "\"WORSE\" is no status that scripts know, such as SUCCESS."},
    {"when work: complete GENERAL_ERR, vendor 65536", 1, 41, "\"65536\" is not a number from 0 to 65535."},
    {"ibv_reg_mr:error", 1, 17, "\"error\" needs a value: error=..."},
    {"ibv_reg_mr:error=EIO:when=0", 1, 27, "\"0\" is not one of N, N..M, N+ and N+STEP."},
    {"ibv_reg_mr:error=EIO:when=2+x", 1, 27, "\"2+x\" is not one of N, N..M, N+ and N+STEP."},
};

/* Typical texts of people who have read docs/reference/scripts.md once. */
static const struct text strangers[] = {};

static void check_texts(const struct text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct script_fault fault = {0};
        script.count = 0;
        if (script_parse(texts[i].text, &script, &fault))
            fail_msg("taken: %s", texts[i].text);
        if (strcmp(fault.why, texts[i].why) != 0 || fault.line != texts[i].line || fault.column != texts[i].column)
            fail_msg("%s: %u:%u %s", texts[i].text, fault.line, fault.column, fault.why);
    }
}

static void wrong_texts_say_where_and_why(void **state)
{
    check_texts(wrong, sizeof wrong / sizeof *wrong);
}

static void what_strangers_write_is_answered(void **state)
{
    check_texts(strangers, sizeof strangers / sizeof *strangers);
}

TESTS(wrong_texts_say_where_and_why, what_strangers_write_is_answered)
