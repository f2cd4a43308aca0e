/* What the scheduler does to a loop that is yours: here one that copies a block every 5 ms. Given the name of
 * a folder, it keeps the run there: `recorder monday`, then `hourglass show monday`. */
#include <hourglass.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char from[65536], to[65536];

int main(int count, char **words)
{
    hg_loop_spec spec = { 0 };
    hg_loop loop;
    hg_recording recording;
    hg_recording_summary found;
    hg_error error;

    spec.name = "blocks";
    spec.period_ns = 5000000;
    spec.folder = count > 1 ? words[1] : NULL;
    if (hg_loop_start(&spec, &loop, &error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    uint64_t due = hg_now();
    for (int block = 0; block < 10; block++) {
        hg_loop_begin_due(loop, due);
        memcpy(to, from, sizeof to);
        hg_loop_end(loop);
        due += spec.period_ns;
        hg_sleep_until(due, NULL, NULL, NULL);
    }
    if (hg_loop_finish(loop, &recording, &error) != HG_OK
        || hg_recording_look(recording, &found, &error) != HG_OK
        || hg_recording_free(recording, &error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%" PRIu64 " in time, %" PRIu64 " late, %" PRIu64 " lost; %" PRIu64
           " gaps, the longest %" PRIu64 " ns\n",
           found.deadlines.hit, found.deadlines.missed, found.deadlines.lost, found.gaps,
           found.gap_max_ns);
    return found.deadlines.completed == 10 ? 0 : 1;
}
