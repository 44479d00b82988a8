#include "script/answers.h"

const struct script_name script_names[SCRIPT_EVENTS] = {
#define VERB(answer, type, name, ...) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer, SCRIPT_KIND_CALL},
#define NEWER_VERB(answer, type, name, ...) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer, SCRIPT_KIND_CALL},
#define MEMBER(table, answer, type, member, name, ...)                                                                 \
    [SCRIPT_##name] = {#name, SCRIPT_ANSWER_##answer, SCRIPT_KIND_CALL},
#define FAST(table, type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_FAST_##name, SCRIPT_KIND_CALL},
#define ON_OBJECT(object, type, member, name, ...) [SCRIPT_##name] = {#name, SCRIPT_TYPE_##type, SCRIPT_KIND_CALL},
#define BUILDER(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type, SCRIPT_KIND_CALL},
#define NEWER_BUILDER(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type, SCRIPT_KIND_CALL},
#define ITERATOR(type, name, ...) [SCRIPT_ibv_##name] = {"ibv_" #name, SCRIPT_TYPE_##type, SCRIPT_KIND_CALL},
#define FIRST_READER(type, name, ...) [SCRIPT_ibv_wc_##name] = {"ibv_wc_" #name, SCRIPT_ANSWER_plain, SCRIPT_KIND_CALL},
#define READER(type, name, ...) [SCRIPT_ibv_wc_##name] = {"ibv_wc_" #name, SCRIPT_ANSWER_plain, SCRIPT_KIND_CALL},
#include "calls/verbs.def"
#define COMMAND(number, page, how, serve, ...) [SCRIPT_##serve] = {#page, SCRIPT_ANSWER_code, SCRIPT_KIND_CALL},
#include "calls/ucma.def"
#define HAPPENING(name, kind, meaning) [SCRIPT_##name] = {#name, SCRIPT_ANSWER_nothing, SCRIPT_KIND_##kind},
#include "script/words.def"
};
