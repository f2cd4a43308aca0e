/* The loops that speed.rs takes the time of: each reads or tells once a round. */
#include <hourglass.h>

uint64_t c_now(uint64_t rounds)
{
    uint64_t sum = 0;
    while (rounds-- > 0) {
        sum += hg_now();
    }
    return sum;
}

uint64_t c_now_ordered(uint64_t rounds)
{
    uint64_t sum = 0;
    while (rounds-- > 0) {
        sum += hg_now_ordered();
    }
    return sum;
}

uint64_t c_now_bounded(uint64_t rounds)
{
    uint64_t sum = 0;
    while (rounds-- > 0) {
        const hg_bounds bounds = hg_now_bounded();
        sum += bounds.earliest_ns ^ bounds.latest_ns;
    }
    return sum;
}

uint64_t c_now_call(uint64_t rounds)
{
    uint64_t sum = 0;
    while (rounds-- > 0) {
        sum += hg_now_call();
    }
    return sum;
}

uint64_t c_progress(uint64_t rounds)
{
    static hg_progress_page page;
    const uint64_t total = rounds + 1;
    uint64_t done;
    if (!page.words && hg_progress_open(&page, 0) != HG_OK) {
        return 0;
    }
    for (done = 1; done <= rounds; done++) {
        hg_progress(&page, done, total);
    }
    return rounds;
}
