#!/usr/bin/env python3
"""Edits sources for the model checker.

edit.py --list                      the mutants: name, source, scenario
edit.py --mutant NAME INPUT OUTPUT  writes the source with that mutant's defect
edit.py --small INPUT OUTPUT        writes a source with smaller tables and less patience

Each mutant puts one defect back: behaviour that was cured, or a step left out. The model must find it. A text that is no
longer in the source makes a program that says so and finds nothing, so the mutant's test fails and not the build.
"""
import sys

# name, source below src/, scenario, ((old, new), ...)
MUTANTS = [
    ("attends-within-the-sleep", "ipc/receive.c", "sleeper", (
        ("""    node_awake(node);
    control_receive(node);
""", """    control_receive(node);
"""),)),
    ("cancelled-with-the-doorbell", "ipc/receive.c", "sleeper-ends", (
        ("""void node_leave_sleeper(struct node *node)
{
    node_wake(node);
""", """void node_leave_sleeper(struct node *node)
{
"""),)),
    # P1: a process that dies between the mark and the message takes the wake-up along
    ("mark-before-message", "link/doorbell.c", "doorbell", (
        ("""    int error = doorbell_insist(doorbell);
    if (!error)
        mark_awake(doorbell->attention, seen);
""", """    mark_awake(doorbell->attention, seen);
    int error = doorbell_insist(doorbell);
"""),)),
    # P2: a message that was refused counts as sent
    ("refused-message-counts", "link/doorbell.c", "refused-doorbell", (
        ("""    if (!error)
        mark_awake(doorbell->attention, seen);
""", """    mark_awake(doorbell->attention, seen);
    error = 0;
"""),)),
    ("own-buffer-full", "link/control.c", "full-buffer", (
        ("return error == EAGAIN ? send_from_another(&datagram) : error;", "return error;"),)),
    # P3: a ring whose message was refused, or taken in vain, is forgotten
    ("refused-ring-is-dropped", "link/shm.c", "hand-over", (
        ("""    if (!shm->refused)
        atomic_fetch_add(&shm->inbox->sent, 1);
""", """    if (!shm->refused)
        atomic_fetch_add(&shm->inbox->sent, 1);
    if (shm->refused != EAGAIN) {
        close(shm->memory);
        shm->memory = -1;
    }
"""),)),
    ("taken-in-vain", "link/shm.c", "unmapped", (
        ("bool again = shm->refused || control_inbox_reached(shm->inbox, shm->handed);", "bool again = shm->refused;"),)),
    # what the model found itself
    ("looks-noted-late", "link/shm.c", "hand-over", (
        ("""    shm->handed = control_inbox_before(shm->inbox);
    shm->refused =
        control_send_both(shm->doorbell.socket, shm->doorbell.name, &message, shm->memory, shm->host->published);
""", """    shm->refused =
        control_send_both(shm->doorbell.socket, shm->doorbell.name, &message, shm->memory, shm->host->published);
    shm->handed = control_inbox_before(shm->inbox);
"""),)),
    ("room-not-asked-again", "link/ring_write.c", "room", (
        ("""bool ring_got_room(struct ring_writer *writer)
{
    atomic_store_explicit(&writer->ring.shared->waiting, 1, memory_order_relaxed);
""", """bool ring_got_room(struct ring_writer *writer)
{
"""),)),
    # doorbell and sleep
    ("no-second-look", "ipc/receive.c", "doorbell", (
        ("    return !anything_waits(node);", "    (void)anything_waits;\n    return true;"),)),
    ("mark-hits-next-sleep", "link/doorbell.c", "doorbell", (
        ("    while (is_same_sleep(seen, sleep) &&\n           !atomic_compare_exchange_weak(&attention->state, &seen, seen & ~(unsigned)ATTENTION_SLEEPING))\n        ;\n",
         "    (void)seen;\n    atomic_fetch_and(&attention->state, ~(unsigned)ATTENTION_SLEEPING);\n"),)),
    ("sleeper-does-not-fence", "link/doorbell.c", "doorbell-held-stores", (
        ("atomic_load_explicit(&attention->fences, memory_order_relaxed) == FENCES_OFFERED && !fence_everywhere())",
         "0 && !fence_everywhere())"),)),
    ("sender-does-not-fence", "link/shm.c", "doorbell-fences", (
        ("unsigned seen = doorbell_look(&shm->doorbell);", "unsigned seen = atomic_load_explicit(&shm->doorbell.attention->state, memory_order_relaxed);"),)),
    ("fences-asked-before-sleeping", "link/doorbell.c", "doorbell-meeting", (
        ("    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);\n    while (",
         "    unsigned fences = atomic_load(&attention->fences);\n"
         "    unsigned seen = atomic_load_explicit(&attention->state, memory_order_relaxed);\n    while ("),
        ("    fence_for_senders(attention);\n    return (seen",
         "    fence_full();\n    if (fences == FENCES_OFFERED && !fence_everywhere())\n        stop_fencing(attention);\n    return (seen"))),
    ("joins-a-sleep-that-has-ended", "ipc/receive.c", "doorbell-rest", (
        ("attention_lasts(&node->entry->attention, sleep) ?", "sleep ?"),)),
    ("joins-without-a-look", "ipc/receive.c", "doorbell-rest", (
        ("attention_lasts(&node->entry->attention, sleep) ? !anything_waits(node) : node_sleep(node)",
         "attention_lasts(&node->entry->attention, sleep) || (node_sleep(node), true)"),)),
    ("senders-between-not-awaited", "link/doorbell.c", "membarrier-refused", (
        ("    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);\n", ""),)),
    # marks
    ("asked-without-fence", "link/doorbell.c", "marks-held-stores", (
        ("    atomic_fetch_or(&attention->state, ATTENTION_MARKS);\n    fence_for_senders(attention);\n",
         "    atomic_fetch_or(&attention->state, ATTENTION_MARKS);\n"),)),
    ("asked-without-a-last-look", "ipc/record.c", "marks", (
        ("        if (ring_has_frame(node->heard.at[i]->reader))\n            take_back(node->heard.at[i]);\n}\n\n/* Leaves silent peers alone. The fence in all",
         "        if (0)\n            take_back(node->heard.at[i]);\n}\n\n/* Leaves silent peers alone. The fence in all"),)),
    ("last-look-before-the-question", "ipc/record.c", "marks", (
        ("    unsigned first = node->heard.polled;\n    for (unsigned i = first; i < end; i++)\n        shm_want_mark(",
         "    unsigned first = node->heard.polled;\n    for (unsigned i = first; i < end; i++)\n        if (ring_has_frame(node->heard.at[i]->reader))\n            poll_again(node->heard.at[i]);\n"
         "    first = node->heard.polled;\n    for (unsigned i = first; i < end; i++)\n        shm_want_mark("),
        ("    attention_want_marks(&node->entry->attention);\n    for (unsigned i = first; i < end; i++)", "    attention_want_marks(&node->entry->attention);\n    for (unsigned i = end; i < end; i++)"))),
    ("raised-before-the-bit", "link/marks.c", "marks", (
        ("    atomic_fetch_or(word_of(marks, number), bit);\n    marks_raise(marks);\n",
         "    marks_raise(marks);\n    atomic_fetch_or(word_of(marks, number), bit);\n"),)),
    ("raised-cleared-last", "link/marks.c", "marks", (
        ("    atomic_exchange(&marks->raised, 0);\n    for (unsigned i = 0; i < MARKS_WORDS; i++)\n        take_word(marks, i, visit, context);\n",
         "    for (unsigned i = 0; i < MARKS_WORDS; i++)\n        take_word(marks, i, visit, context);\n    atomic_exchange(&marks->raised, 0);\n"),)),
    ("mark-before-frame", "link/shm.c", "marks", (
        ("    shm->sent = false;\n", "    shm->sent = false;\n    announce(shm);\n"),
        ("    if (sent && announce(shm))\n", "    if (sent && 0)\n"))),
    ("marked-ring-is-not-polled", "ipc/record.c", "marks", (
        ("    shm_want_mark(record->peer.link, false);\n    poll_again(record);\n", "    shm_want_mark(record->peer.link, false);\n"),)),
    ("sleeps-without-the-others", "ipc/receive.c", "marks-cleared", (
        ("            records_look_at_all(node);\n    }", "            waits = false;\n    }"),)),
    # the ring
    ("zero-after-commit", "link/ring_write.c", "room", (
        ("    atomic_store_explicit(&frame->commit, length, memory_order_release);\n    writer->tail = next;\n",
         "    writer->tail = next;\n"),
        ("    if (next >= writer->clear) {\n",
         "    atomic_store_explicit(&frame->commit, length, memory_order_release);\n    if (next >= writer->clear) {\n"))),
    ("writer-asks-without-fence", "link/ring_write.c", "room-flag", (
        ("""    atomic_store_explicit(&writer->ring.shared->waiting, 1, memory_order_relaxed);
    fence_full();
    uint64_t head""", """    atomic_store_explicit(&writer->ring.shared->waiting, 1, memory_order_relaxed);
    uint64_t head"""),)),
    ("reader-looks-without-fence", "link/ring_read.c", "room-fences", (
        ("    fence_full();\n    return atomic_load_explicit(&shared->waiting",
         "    return atomic_load_explicit(&shared->waiting"),)),
    # a ring that its reader refuses
    ("refused-without-a-word", "link/shm.c", "mend", (
        ("    ring_refuse(&shm->reader);\n    ask_to_look(shm);\n", "    ring_refuse(&shm->reader);\n"),)),
    ("mended-without-a-word", "link/shm.c", "mend", (
        ("    ring_mend(&shm->writer);\n    ask_to_look(shm);\n", "    ring_mend(&shm->writer);\n"),)),
    ("look-asked-once", "link/shm.c", "mend-refused", (
        ("    atomic_store(&shm->look_refused, true);\n    shm->host->postponed(shm->host);\n", "    shm->host->postponed(shm->host);\n"),)),
    ("mended-before-its-place", "link/ring_write.c", "mend", (
        ("    atomic_store_explicit(&shared->mended_at, writer->tail, memory_order_relaxed);\n    atomic_store_explicit(&shared->mended, breaks, memory_order_release);\n",
         "    atomic_store_explicit(&shared->mended, breaks, memory_order_release);\n    atomic_store_explicit(&shared->mended_at, writer->tail, memory_order_relaxed);\n"),)),
    # payloads in the sender's memory
    ("epoch-before-copy", "link/shm.c", "revoke", (
        ("    bool pulled = ring_prefix_covers(", "    bool held = ring_reference_holds(&shm->reader), pulled = ring_prefix_covers("),
        ("return pulled && ring_store_prefix(&shm->reader, offset, to, count) && ring_reference_holds(&shm->reader);",
         "return pulled && ring_store_prefix(&shm->reader, offset, to, count) && held;"))),
    # doorbell registers
    ("look-before-protect", "process/rest.c", "registers", (
        ("    bool closed = process->parts->queues.close(process);\n    *found = closed ? process->parts->queues.look(process, now) : 0;\n",
         "    *found = process->parts->queues.look(process, now);\n    bool closed = process->parts->queues.close(process);\n"),)),
    ("no-second-look-at-queues", "process/rest.c", "registers", (
        ("    *found = closed ? process->parts->queues.look(process, now) : 0;\n", "    *found = 0;\n"),)),
    ("notice-before-open", "mlx5/queues/registers.c", "registers-threads", (
        ("    bool opened = protect_by_signal(false);\n    atomic_store(&closed, false);\n    struct node *node = atomic_load(&woken);\n"
         "    if (node)\n        node_wake(node);\n",
         "    struct node *node = atomic_load(&woken);\n    if (node)\n        node_wake(node);\n"
         "    bool opened = protect_by_signal(false);\n    atomic_store(&closed, false);\n"),)),
    ("woken-known-before-open", "mlx5/queues/registers.c", "registers-threads", (
        ("    bool opened = protect_by_signal(false);\n", "    struct node *node = atomic_load(&woken);\n    bool opened = protect_by_signal(false);\n"),
        ("    struct node *node = atomic_load(&woken);\n    if (node)", "    if (node)"))),
    ("woken-told-after-protect", "mlx5/queues/registers.c", "registers", (
        ("    atomic_store(&woken, node);\n    atomic_store(&closed, true);\n", "    atomic_store(&closed, true);\n"),
        ("    fence_everywhere();\n", "    fence_everywhere();\n    atomic_store(&woken, node);\n"))),
    ("closed-without-fence", "mlx5/queues/registers.c", "registers-unawaited", (("    fence_everywhere();\n", ""),)),
    ("sleeps-with-open-registers", "mlx5/queues/registers.c", "registers-refused", (
        ("    return shut;", "    return true;"),)),
    ("closes-again-at-once", "process/rest.c", "registers-pass", (
        ("    return closed && !*found;\n", "    bool none = !*found;\n    *found = 0;\n    return closed && none;\n"),
        ("return closes && open_registers(process);", "return closes && open_registers(process) && false;"))),
    ("told-of-queues-too-soon", "mlx5/queues/queues.c", "registers-first", (
        ("        atomic_store(&process->helper.queues, true);\n        progress_quiesce(process);\n", "        progress_quiesce(process);\n"),
        ("    control_unlock(context);\n    return made", "    if (made)\n        atomic_store(&process->helper.queues, true);\n    control_unlock(context);\n    return made"))),
    ("first-arming-looks-like-none", "mlx5/queues/cq_memory.c", "registers-arm", (("#define NEVER_ARMED (1u << 31)", "#define NEVER_ARMED 0"),)),
    # the host's table
    ("sweep-frees-the-living", "ipc/table_join.c", "members", (
        ("!= TABLE_FREE && !table_alive(table, i))", "!= TABLE_FREE)"),)),
    ("join-without-lock", "ipc/table_join.c", "members", (
        ("    table_sweep(table);\n    error = take_any_slot(table);",
         "    table_unlock(table);\n    table_sweep(table);\n    table_lock(table);\n    error = take_any_slot(table);"),)),
    ("lock-kept", "ipc/table_join.c", "members", (
        ("    error = take_any_slot(table);\n    table_unlock(table);\n",
         "    error = take_any_slot(table);\n    lock_release(&table->exclusive);\n"),)),
    ("replaced-without-lock", "ipc/table_open.c", "another-version", (
        ("int error = lock_all(directory, descriptor);", "(void)lock_all;\n    int error = 0;"),)),
    ("byte-before-entries", "ipc/table_join.c", "leaving", (
        ("    table_join_release(table, ours);\n    return true;\n",
         "    table_lock_bytes(table->descriptor, F_SETLK, F_UNLCK, *slot, 1);\n    table_join_release(table, ours);\n    return true;\n"),
        ("    if (give_back(table, &slot))\n        table_lock_bytes(table->descriptor, F_SETLK, F_UNLCK, slot, 1);\n",
         "    give_back(table, &slot);\n"))),
    # WRITEs and READs by the requester
    ("seat-after-judging", "link/direct.c", "one-sided-key", (
        ("    atomic_exchange(&seat->taken, number); /* sequentially consistent: before all of what judges */\n", ""),
        ("    enum direct_outcome outcome = direct_do_announced(desk, seat, &call, published, pid, access);",
         """    enum direct_outcome outcome = direct_holds(&call, published, access) ? DIRECT_DONE : DIRECT_DECLINED;
    atomic_exchange(&seat->taken, number);
    if (outcome == DIRECT_DONE)
        outcome = direct_outcome_of(access, process_copy(SYS_process_vm_writev, pid, call.local,
            call.local_count, (const struct iovec *)(const void *)call.targets, 1 + access->more_count));"""))),
    ("seat-is-no-fence", "link/direct.c", "one-sided-held-stores", (
        ("atomic_exchange(&seat->taken, number);", "atomic_store_explicit(&seat->taken, number, memory_order_release);"),)),
    ("seats-before-key", "verbs/memory/publish.c", "one-sided-key", (
        ("""    if (published_withdraw_key(node_published(process->node), mr->region.key))
        node_quiesce(process->node);
""", """    node_quiesce(process->node);
    published_withdraw_key(node_published(process->node), mr->region.key);
"""),)),
    ("leaves-before-it-closes", "ipc/node.c", "one-sided-leaving", (
        ("    published_open(&node->published, false);\n    node_quiesce(node);\n",
         "    node_quiesce(node);\n    published_open(&node->published, false);\n"),)),
    ("heard-after-permission", "ipc/control_in.c", "one-sided-mail", (
        ("        record_hear(record);",
         "        lock_release(&node->lock);\n        lock_take(&node->lock);\n        record_hear(record);"),)),
    ("read-judged-once", "link/direct.c", "one-sided-read", (
        ("bool holds = outcome != DIRECT_DONE || (", "again = memory;\n    bool holds = true || outcome != DIRECT_DONE || ("),)),
    ("read-of-any-number", "link/published.c", "one-sided-read-number", (
        ("atomic_load(&queue_pair->number) == question->number &&", "atomic_load(&queue_pair->number) != 1 &&"),)),
    ("last-word-with-the-rest", "link/direct.c", "one-sided-key", (
        ("    unsigned last = payload_last_word((uintptr_t)memory + length, length);", "    unsigned last = 0;"),)),
    ("dead-requester-awaited", "ipc/one_sided.c", "one-sided-key", (
        ("bool gone = waited_for && !table_is(", "bool gone = waited_for && 0 && !table_is("),)),
    ("successor-taken-for-the-dead", "ipc/one_sided.c", "one-sided-successor", (
        ("!table_is(node->table, record->peer.slot, record->generation)", "!table_alive(node->table, record->peer.slot)"),)),
    ("waited-for-in-parts", "ipc/one_sided.c", "one-sided-requesters", (
        ("        many = calloc(count + UNDER_WAY_FEW, sizeof *many);\n", "        many = NULL;\n"),)),
    ("stopped-requester-awaited", "ipc/one_sided.c", "one-sided-key", (
        ("looks >= FORBIDS", "looks > 1000 * FORBIDS"),)),
    ("judged-before-only", "link/direct.c", "one-sided-key", (
        (" || !direct_holds(call, published, access))", ")"), ("static bool direct_holds(", "__attribute__((unused)) static bool direct_holds("))),
    ("targets-written-announced", "link/direct.c", "one-sided-key", (
        ("    const struct iovec *remote = (const struct iovec *)(const void *)call->targets;",
         """    const struct iovec *remote = (const struct iovec *)(const void *)call->targets;
    for (uint32_t i = 0; i <= access->more_count; i++)
        atomic_store_explicit(&call->targets[i].address, call->memory[i], memory_order_relaxed);"""),)),
    ("first-of-several-judged", "link/direct.c", "one-sided-list", (
        ("if (!published_permits(published, direct_question(access, i), &memory) || memory != call->memory[i])",
         "if ((!published_permits(published, direct_question(access, i), &memory) || memory != call->memory[i]) && !i)"),)),
    ("second-target-forbidden", "link/direct.c", "one-sided-key", (
        ("&seats->at[i].targets[0].address, DIRECT_NOWHERE", "&seats->at[i].targets[1].address, DIRECT_NOWHERE"),)),
    ("one-thread-is-all", "ipc/peer_threads.c", "one-sided-pair", (
        ("            return false;\n        threads++;", "            continue;\n        threads++;"),)),
    ("forbids-nothing", "ipc/one_sided.c", "one-sided-key", (
        ("        shm_forbid_writes(record->peer.link, under_way->seen);\n", "        (void)shm_forbid_writes;\n"),)),
    ("forbids-after-looking", "ipc/one_sided.c", "one-sided-key", (
        ("if (waited_for && forbidden)", "if (waited_for && forbidden && looks > FORBIDS)"),)),
    ("computing-requester-awaited", "ipc/one_sided.c", "one-sided-interrupted", (
        ("looks >= COMPUTES &&", "looks > 1000 * COMPUTES &&"),)),
    ("forbids-after-user-mode", "ipc/one_sided.c", "one-sided-interrupted", (
        ("if (waited_for && forbidden)", "if (waited_for && forbidden && looks > COMPUTES)"),)),
    ("first-seat-forbidden", "link/direct.c", "one-sided-pair", (
        ("        if (seen[i] % 2)\n", "        if (!i && seen[i] % 2)\n"),)),
    ("within-the-call-is-elsewhere", "ipc/peer_threads.c", "one-sided-key", (
        ("return end != text && number != call;", "return end != text && number != call + 1;"),)),
    # work of one queue pair that goes by turns through the ring and without
    ("done-while-it-is-in-the-ring", "transport/rc/direct.c", "ways", (
        ("    return queue->head == queue->next && work && rc_direct_goes(rc, work) && !work->started;",
         "    return work && rc_direct_goes(rc, work);"),
        ("return rc_direct_goes(rc, work) && !work->started && ", "return rc_direct_goes(rc, work) && "))),
    ("direct-behind-sends", "transport/rc/direct.c", "ways-sends", (
        ("    return queue->head == queue->next && work && ", "    return work && "),
        ("    for (uint32_t at = queue->head; at", "    for (uint32_t at = queue->next; at"))),
]

SMALL = {"TABLE_SLOTS = 1024": "TABLE_SLOTS = 4", "TABLE_BLOCKS = 65536": "TABLE_BLOCKS = 8", "TABLE_JOINS = 1024": "TABLE_JOINS = 2",
         "NODE_SLOTS = 1024": "NODE_SLOTS = 4", "NODE_SILENT_FEW = 3": "NODE_SILENT_FEW = 0", "TABLE_PORTS = 16384": "TABLE_PORTS = 4", "TABLE_ENDS = 4096": "TABLE_ENDS = 2", "DIRECT_SEATS = 8": "DIRECT_SEATS = 2",
         "PUBLISHED_KEYS = 65536": "PUBLISHED_KEYS = 4", "PUBLISHED_QUEUE_PAIRS = 65536": "PUBLISHED_QUEUE_PAIRS = 4",
         "UNDER_WAY_FEW = 64,": "UNDER_WAY_FEW = 1,", "YIELDS = 100,": "YIELDS = 2,", "FORBIDS = 110,": "FORBIDS = 1,", "COMPUTES = 600,": "COMPUTES = 2,", "COMPUTES_EACH = 100,": "COMPUTES_EACH = 1,", "TELLS = 5000,": "TELLS = 3,"}

# Sources whose static data is kept for each process.
STATICS = {"ipc/table_open.c": "statics_table.h", "mlx5/queues/registers.c": "statics_registers.h"}

STALE = """
#include <stdio.h>
__attribute__((constructor)) static void say_that_mutant_is_stale(void)
{{
    puts("# The mutant {name} is not made: its text is no longer in src/{source}. See tests/model/edit.py.");
}}
"""


def mutate(name, text):
    _, source, _, changes = next(mutant for mutant in MUTANTS if mutant[0] == name)
    for old, new in changes:
        if text.count(old) != 1:
            return STALE.format(name=name, source=source)
        text = text.replace(old, new)
    return make_small(text) + (f'#include "{STATICS[source]}"\n' if source in STATICS else "")


def make_small(text):
    for old, new in SMALL.items():
        text = text.replace(old, new)
    return text


def main():
    if sys.argv[1] == "--list":
        print("\n".join(" ".join(mutant[:3]) for mutant in MUTANTS))
        return
    source, target = sys.argv[-2:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    text = make_small(text) if sys.argv[1] == "--small" else mutate(sys.argv[2], text)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
