/* The recorder for a loop of one's own. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static hg_loop own_loop;

static void *elsewhere(void *unused)
{
    hg_error error;
    hg_recording recording;
    (void)unused;
    CHECK(hg_loop_begin(own_loop) == HG_WRONG_THREAD);
    CHECK(hg_loop_finish(own_loop, &recording, &error) == HG_WRONG_THREAD);
    CHECK(strstr(error.text, "thread"));
    return NULL;
}

/* A folder that goes away while the loop runs: that is told, and what was measured is there all the same. */
static void a_folder_that_is_lost(void)
{
    hg_error error;
    hg_loop_spec spec;
    hg_recording recording;
    hg_recording_summary summary;
    char place[] = "/tmp/hourglass-recorder-XXXXXX", folder[64], remove[96];
    CHECK(mkdtemp(place) != NULL);
    snprintf(folder, sizeof folder, "%s/run", place);
    snprintf(remove, sizeof remove, "rm -rf %s", place);
    memset(&spec, 0, sizeof spec);
    spec.period_ns = (uint64_t)(50 * MS);
    spec.folder = folder;
    OK(hg_loop_start(&spec, &own_loop, &error));
    OK(hg_loop_begin(own_loop));
    OK(hg_loop_end(own_loop));
    CHECK(system(remove) == 0);
    recording.handle = 0;
    CHECK(hg_loop_finish(own_loop, &recording, &error) == HG_OS && strstr(error.text, folder));
    CHECK(hg_loop_end(own_loop) == HG_STALE);
    OK(hg_recording_look(recording, &summary, &error));
    CHECK(summary.deadlines.completed == 1);
    OK(hg_recording_free(recording, &error));
}

/* A child has neither the counters nor the rings that its parent's loop measures with. */
static void a_child_does_not_mark(void)
{
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        hg_error error;
        hg_recording recording;
        CHECK(hg_loop_begin(own_loop) == HG_FORKED && hg_loop_end(own_loop) == HG_FORKED);
        CHECK(hg_loop_finish(own_loop, &recording, &error) == HG_FORKED);
        CHECK(strstr(error.text, "parent"));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    hg_error error;
    hg_loop_spec spec;
    hg_deadlines deadlines;
    hg_recording recording;
    hg_recording_summary summary;
    hg_interval intervals[64];
    size_t count = 0, at;
    pthread_t other;
    uint64_t due;
    int period;
    memset(&spec, 0, sizeof spec);
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_INVALID && strstr(error.text, "period"));
    CHECK(hg_loop_start(NULL, &own_loop, &error) == HG_NULL);
    spec.period_ns = (uint64_t)(50 * MS);
    /* More than any memory. */
    spec.records = UINT64_MAX;
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_EXHAUSTED && strstr(error.text, "fewer"));
    spec.records = UINT64_C(1) << 40;
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_EXHAUSTED);
    spec.records = 1000;
    spec.jobs = UINT64_MAX;
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_EXHAUSTED);
    spec.jobs = 0;
    spec.name = "test";
    /* A folder that is there, and one in a folder that is not. */
    spec.folder = "/";
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_INVALID && strstr(error.text, "exists"));
    spec.folder = "/nowhere/at/all";
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_INVALID && strstr(error.text, "/nowhere/at"));
    /* "" was a folder that could not be made, with the number of some file that does not exist. */
    spec.folder = "";
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_INVALID && strstr(error.text, "folder"));
    spec.folder = NULL;
    spec.deadline_ns = UINT64_MAX;
    CHECK(hg_loop_start(&spec, &own_loop, &error) == HG_INVALID && strstr(error.text, "deadline_ns"));
    spec.deadline_ns = 0;
    OK(hg_loop_start(&spec, &own_loop, &error));
    CHECK(pthread_create(&other, NULL, elsewhere, NULL) == 0);
    pthread_join(other, NULL);
    a_child_does_not_mark();
    due = hg_now();
    for (period = 0; period < 4; period++) {
        OK(hg_loop_begin_due(own_loop, due));
        OK(hg_sleep_for(MS, NULL, NULL, &error));
        OK(hg_loop_check(own_loop));
        OK(hg_loop_end(own_loop));
        due += spec.period_ns;
        OK(hg_sleep_until(due, NULL, NULL, &error));
    }
    OK(hg_loop_deadlines(own_loop, &deadlines, &error));
    CHECK(deadlines.completed == 4 && deadlines.hit + deadlines.missed == 4);
    OK(hg_loop_begin(own_loop));
    OK(hg_loop_finish(own_loop, &recording, &error));
    CHECK(hg_loop_begin(own_loop) == HG_STALE && hg_loop_end(own_loop) == HG_STALE);
    CHECK(hg_loop_finish(own_loop, &recording, &error) == HG_STALE);
    OK(hg_recording_look(recording, &summary, &error));
    CHECK(summary.deadlines.completed == 4 && summary.intervals >= 4 && summary.dropped == 0);
    CHECK(summary.received_ns <= summary.wall_ns && summary.wall_ns >= 3 * spec.period_ns);
    OK(hg_recording_intervals(recording, 0, intervals, 64, &count, &error));
    CHECK(count == summary.intervals);
    for (at = 0; at < count && at < 64; at++) {
        CHECK(intervals[at].end_ns >= intervals[at].start_ns && intervals[at].onset <= HG_ONSET_LATE);
        CHECK(at == 0 || intervals[at].start_ns >= intervals[at - 1].end_ns);
    }
    CHECK(intervals[0].onset == HG_ONSET_START);
    OK(hg_recording_intervals(recording, count, NULL, 0, &count, &error));
    CHECK(count == 0);
    OK(hg_recording_free(recording, &error));
    CHECK(hg_recording_look(recording, &summary, &error) == HG_STALE);
    a_folder_that_is_lost();
    return 0;
}
