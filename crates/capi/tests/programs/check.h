/* What the test programs share: an assertion that is there in every build, and says where. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A call that must not fail. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        hg_status status_ = (call);                                                                \
        if (status_ != HG_OK) {                                                                    \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                      \
                    hg_status_name(status_), error.text);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Thread sanitizers hold signals back until the thread calls the C library, which a loop that computes never
 * does: it calls this. */
#include <unistd.h>
static inline void let_signals_in(void)
{
#ifdef HG_NO_FENCES_
    (void)usleep(1);
#endif
}

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

#endif
