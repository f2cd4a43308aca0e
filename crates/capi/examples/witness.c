/* Was this request slow because of its code, or because the machine took the thread away? Requests that take
 * longer than a millisecond are told apart. */
#include <hourglass.h>
#include <inttypes.h>
#include <stdio.h>

enum { REQUESTS = 2000 };

/* Some 100 us of work. */
static void handle(void)
{
    volatile unsigned turn;
    for (turn = 0; turn < 100000; turn++) {
    }
}

int main(void)
{
    hg_error error;
    hg_witness_view view;
    int request, slow = 0, taken = 0;
    /* Not needed, but the first span would take the time. */
    if (hg_check_abi(&error) != HG_OK || hg_witness_open(&view, &error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (request = 0; request < REQUESTS; request++) {
        const uint64_t begun = hg_now_ordered();
        hg_span span = hg_witness_begin();
        hg_loss loss;
        handle();
        span.busy = true; /* handle() does not wait */
        const hg_status status = hg_witness_end(&span, &loss, NULL);
        const uint64_t length = hg_now_ordered() - begun;
        slow += length > 1000000;
        if (status == HG_OK) {
            taken++;
            printf("request %d took %" PRIu64 " us, off the CPU for %" PRIu64 " to %" PRIu64 " us: %s\n", request,
                   length / 1000, loss.off_cpu_least_ns / 1000, loss.off_cpu_most_ns / 1000, loss.cause);
        }
    }
    printf("%d of %d requests took longer than a millisecond; the CPU was taken from %d\n", slow, REQUESTS, taken);
    return 0;
}
