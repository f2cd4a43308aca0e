/* Reservations of the deadline class; where they are refused, why. */
#define _GNU_SOURCE
#include <hourglass.h>
#include <sched.h>
#include <string.h>

#include "check.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

static hg_error error;

/* Without the flag that children begin anew. */
static int policy(void)
{
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void refused(void)
{
    hg_request request;
    hg_reservation reservation;
    memset(&request, 0, sizeof request);
    CHECK(hg_reserve_thread(0, &request, &reservation, &error) == HG_INVALID);
    CHECK(strstr(error.text, "above zero"));
    request.budget_ns = 5 * MS;
    request.period_ns = MS;
    CHECK(hg_reserve_thread(0, &request, &reservation, &error) == HG_INVALID);
    request.period_ns = 10 * MS;
    request.deadline_ns = MS;
    CHECK(hg_reserve_check(0, &request, &error) == HG_INVALID);
    CHECK(hg_reserve_check(0, NULL, &error) == HG_NULL);
    CHECK(hg_reserve_thread(0, &request, NULL, &error) == HG_NULL);
    request.deadline_ns = 0;
    /* No thread has that number: the kernel's limit is 2^22. */
    CHECK(hg_reserve_thread(1 << 23, &request, &reservation, &error) != HG_OK);
    CHECK(hg_reserve_check(1 << 23, &request, &error) == HG_STALE && strstr(error.text, "no such thread"));
    reservation.handle = 0;
    CHECK(hg_reserve_release(reservation, &error) == HG_NULL);
}

int main(void)
{
    hg_request request;
    hg_reservation reservation;
    hg_supply supply;
    hg_status status;
    int round;
    refused();
    memset(&request, 0, sizeof request);
    request.budget_ns = MS;
    request.period_ns = 10 * MS;
    CHECK(policy() == SCHED_OTHER);
    status = hg_reserve_thread(0, &request, &reservation, &error);
    if (status != HG_OK) {
        CHECK(status == HG_PERMISSION || status == HG_BUSY || status == HG_INVALID
              || status == HG_UNSUPPORTED);
        CHECK(error.text[0] != '\0' && policy() == SCHED_OTHER);
        printf("skipped: %s\n", error.text);
        return 0;
    }
    CHECK(policy() == SCHED_DEADLINE);
    for (round = 0; round < 20; round++) {
        OK(hg_sleep_for(2 * MS, NULL, NULL, &error));
    }
    OK(hg_reserve_look(reservation, &supply, &error));
    CHECK(supply.missed <= supply.periods && supply.delivered_min_ns <= supply.delivered_p50_ns);
    OK(hg_reserve_release(reservation, &error));
    CHECK(policy() == SCHED_OTHER);
    CHECK(hg_reserve_look(reservation, &supply, &error) == HG_STALE);
    return 0;
}
