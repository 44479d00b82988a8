#include "script/answers.h"

const struct script_name script_names[SCRIPT_CALLS] = {
#define VERB(answer, type, name, ...) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer},
#define NEWER_VERB(answer, type, name, ...) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer},
#define MEMBER(table, answer, type, member, name, ...) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer},
#define FAST(table, type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_FAST_##name},
#define ON_OBJECT(object, type, member, name, ...) [SCRIPT_##name] = {#name, SCRIPT_TYPE_##type},
#define BUILDER(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type},
#define NEWER_BUILDER(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type},
#define ITERATOR(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type},
#define FIRST_READER(type, name, ...) [SCRIPT_ibv_wc_##name] = {"ibv_wc_" #name, SCRIPT_ANSWER_plain},
#define READER(type, name, ...) [SCRIPT_ibv_wc_##name] = {"ibv_wc_" #name, SCRIPT_ANSWER_plain},
#include "calls/verbs.def"
#define COMMAND(number, page, how, serve, ...) [SCRIPT_##serve] = {#page, SCRIPT_ANSWER_code},
#include "calls/ucma.def"
};
