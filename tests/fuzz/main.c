/* Drives a libFuzzer target without libFuzzer: inputs from a seed, some random, most of them changed from inputs before
 * them, so that lengths and headers stay plausible. FUZZ [RUNS [SEED]]; or, as libFuzzer does it, FUZZ FILE... runs
 * those files only. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { LONGEST = 512, KEPT = 64, RUNS = 200000 };

static struct input {
    uint8_t bytes[LONGEST];
    size_t length;
} kept[KEPT];

static uint64_t state;

static size_t draw(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state >> 16) % limit;
}

static void make_random(struct input *input)
{
    input->length = draw(draw(4) ? 96 : LONGEST + 1);
    for (size_t i = 0; i < input->length; i++)
        input->bytes[i] = (uint8_t)draw(draw(2) ? 256 : 2);
}

static void change(struct input *input)
{
    if (input->length == 0 || draw(8) == 0) {
        input->length = draw(LONGEST + 1);
        return;
    }
    uint8_t *at = &input->bytes[draw(input->length)];
    switch (draw(3)) {
    case 0:
        *at ^= (uint8_t)(1 << draw(8));
        break;
    case 1:
        *at = (uint8_t)draw(256);
        break;
    default: /* the values at the edges */
        *at = (uint8_t)(draw(3) * 0x7f + draw(2));
    }
}

/* Runs a copy of exactly the input's length, so that AddressSanitizer sees a read past its end. */
static void run(const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length ? length : 1);
    if (!exact)
        exit(1);
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
}

static int run_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    run(bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    return 0;
}

static int run_seeded(unsigned long runs, uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15u | 1;
    for (unsigned long i = 0; i < runs; i++) {
        struct input *input = &kept[draw(KEPT)];
        if (draw(16) == 0 || i < KEPT)
            make_random(input);
        for (size_t changes = 1 + draw(4); changes; changes--)
            change(input);
        run(input->bytes, input->length);
    }
    printf("%lu inputs from seed %llu\n", runs, (unsigned long long)seed);
    return 0;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long runs = argc > 1 ? strtoul(argv[1], &end, 0) : RUNS;
    if (!end || !*end)
        return run_seeded(runs, argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_file(argv[i]);
    return failed;
}
