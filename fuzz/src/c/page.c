/* The header's inline reads of a page of memory while the fuzzer writes it: with `t` words that belong together, of
 * which no other mixture may be accepted, with any other byte whatever a page may hold. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <hourglass.h>
#include <sys/mman.h>

#include "frames.h"

static uint32_t generation = 7;
static uint64_t own_page[64];
const uint64_t *const hg_clock_page_v1 = own_page;

/* What the writer makes of a number (`fuzz/src/targets/c_programs.rs`). */
static uint64_t base_of(uint32_t number) { return number * UINT64_C(0x9e3779b97f4a7c15) >> 2; }

static void judge_whole(const hg_bounds *bounds)
{
    const uint64_t middle = (bounds->earliest_ns + bounds->latest_ns) / 2;
    const uint64_t number = (bounds->latest_ns - bounds->earliest_ns) / 2 - 1;
    if (number > UINT32_MAX || middle != base_of((uint32_t)number)
        || bounds->status != ((number ^ number >> 8) & 0xff)) {
        FAIL("torn: %llu to %llu, status %u", (unsigned long long)bounds->earliest_ns,
             (unsigned long long)bounds->latest_ns, bounds->status);
    }
    if (number & 1) {
        FAIL("accepted without its guard: number %llu", (unsigned long long)number);
    }
}

int main(int count, char **words)
{
    const int file = open(count > 1 ? words[1] : "", O_RDONLY);
    const uint64_t *page = mmap(NULL, 512, PROT_READ, MAP_SHARED, file, 0);
    end_with_parent();
    own_page[HG_PAGE_GENERATION_AT_] = (uint64_t)(uintptr_t)&generation;
    if (page == MAP_FAILED) {
        FAIL("no page");
    }
    for (;;) {
        uint64_t accepted = 0, ns;
        uint32_t reads;
        bool whole;
        take();
        whole = next() == 't';
        reads = whole ? 4096 : 4;
        while (reads-- > 0) {
            hg_bounds bounds;
            const bool ordered = reads & 1;
            if (hg_page_read_(page, ordered, &ns)) {
                accepted++;
            }
            if (!hg_page_read_bounded_(page, ordered, &bounds)) {
                continue;
            }
            accepted += 1 << 16;
            if (whole) {
                judge_whole(&bounds);
            } else if (bounds.earliest_ns > bounds.latest_ns || bounds.reserved != 0) {
                FAIL("bounds out of order: %llu to %llu", (unsigned long long)bounds.earliest_ns,
                     (unsigned long long)bounds.latest_ns);
            }
        }
        answer(accepted);
    }
}
