/* What the C programs of the fuzzer share: inputs from stdin, each with its length before it, and an answer for each. */
#ifndef FRAMES_H
#define FRAMES_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        abort();                                                                                   \
    } while (0)

enum { LONGEST = 1 << 16 };

static uint8_t input[LONGEST];
static uint32_t length, at;

/* The next byte of the input; 0 beyond its end. */
static inline uint8_t next(void) { return at < length ? input[at++] : 0; }

static inline void read_all(void *into, size_t bytes)
{
    uint8_t *to = into;
    while (bytes > 0) {
        const ssize_t got = read(STDIN_FILENO, to, bytes);
        if (got <= 0) {
            exit(0);
        }
        to += got;
        bytes -= (size_t)got;
    }
}

/* Takes the next input. */
static inline void take(void)
{
    read_all(&length, sizeof length);
    if (length > LONGEST) {
        FAIL("an input of %u bytes", length);
    }
    read_all(input, length);
    at = 0;
}

static inline void answer(uint64_t number)
{
    if (write(STDOUT_FILENO, &number, sizeof number) != sizeof number) {
        exit(0);
    }
}

/* Ends with the fuzzer, also where a call hangs. */
static inline void end_with_parent(void) { (void)prctl(PR_SET_PDEATHSIG, SIGKILL); }

#endif
