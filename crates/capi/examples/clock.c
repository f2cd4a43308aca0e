/* What time it is, and how sure that is. */
#include <hourglass.h>
#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    hg_error error;
    if (hg_check_abi(&error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const uint64_t begin = hg_now_ordered();
    const hg_bounds bounds = hg_now_bounded();
    printf("%" PRIu64 " ns to %" PRIu64 " ns on CLOCK_MONOTONIC\n", bounds.earliest_ns,
           bounds.latest_ns);

    hg_slept slept;
    if (hg_sleep_until(begin + 2000000, NULL, &slept, &error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("slept until %" PRIu64 " ns after its time, %" PRIu64 " ns of it spinning\n",
           slept.woke_ns - slept.deadline_ns, slept.spin_ns);

    const hg_wall_time wall = hg_wall();
    printf("%" PRId64 " ns since 1970, read by %s\n", wall.ns, hg_source_name(hg_clock_source()));
    return 0;
}
