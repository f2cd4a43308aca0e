/*
 * hourglass.h: time and real-time scheduling on Linux, for C (C99) and C++ (C++11).
 *
 *   cc program.c $(pkg-config --cflags --libs hourglass)
 *
 * Structs of settings start all zero (`= { 0 }`, memset), which selects the default unless their text says
 * otherwise; an hg_sleep_settings starts as hg_sleep_defaults(). Their reserved fields are 0; HG_INVALID otherwise.
 *
 * The comment of each function has four parts
 *
 *   Threads    which may call it: "any", also several at the same time; "own", where it is about the calling
 *              thread alone; else which.
 *   Signals    "safe" if a signal handler may call it, wherever it interrupted the thread; "no" if not.
 *   Errors     the kinds that it returns, and HG_PANIC; "none" if it cannot fail. hg_status is HG_OK (0) or
 *              a kind. `error` may be NULL; if it is not, it is written when the result is not HG_OK, and
 *              not changed otherwise; its text may be empty for what is no failure. It is the caller's own memory.
 *   Free       what the caller has to free, and by which function: that one and nothing else. Nothing that a
 *              function returns by value, and no text that it returns, is to be freed.
 *
 * Conventions, for every function unless it says otherwise
 *
 *   errno      is as it was when a function returns.
 *   Cancelling (pthread_cancel) no function is a cancellation point: a thread that is cancelled while it is in
 *              one returns from it, and is cancelled at the next point after that. None may be called with
 *              PTHREAD_CANCEL_ASYNCHRONOUS. Threads of the library are never cancelled.
 *   Results    an address that a result is written to must not be NULL where the text does not say that
 *              it may; HG_NULL then, and nothing was done. Results are written only with HG_OK, but for
 *              `slept`, which is written by every sleep that took place, and for the recording of a loop
 *              whose folder cannot be written.
 *   Memory     no function stores an address that it was given, unless the text says so.
 *   Handles    are numbers in a struct of their own: {0} is no handle. The use of one that was freed, or never
 *              created, returns HG_STALE; none is freed during another call on it: HG_BUSY.
 *   Times      are nanoseconds. A uint64_t of them without further words is on CLOCK_MONOTONIC.
 *   Call-backs run on the thread that the text names, where pthread_cancel has no effect. They must return:
 *              neither longjmp, nor pthread_exit, nor a C++ exception may leave them. They may call any
 *              function but those that would wait for them. `user` is handed to them as it is, and `release`,
 *              if not NULL, is called with it exactly once, on any thread, when no call-back will be called
 *              with it any more; also if the function that was given it fails.
 *   fork       a child must not use what its parent made, except for reading the clock; where that is
 *              detected the function returns HG_FORKED.
 */
#ifndef HOURGLASS_H
#define HOURGLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HG_ALIGNED_(bytes) alignas(bytes)
/* Programs may be stricter with themselves than C can be. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
extern "C" {
#else
#define HG_ALIGNED_(bytes) __attribute__((aligned(bytes)))
#endif

/* The version of this interface. The shared library is libhourglass.so.1 for it. */
#define HG_ABI_VERSION 1

/* The version of this header; hg_version() is the library's. Compare them as numbers:
 * #if HG_VERSION >= HG_VERSION_OF(0, 2, 0) */
#define HG_VERSION_MAJOR 0
#define HG_VERSION_MINOR 1
#define HG_VERSION_PATCH 0
#define HG_VERSION_OF(major, minor, patch) ((major) * 1000000 + (minor) * 1000 + (patch))
#define HG_VERSION HG_VERSION_OF(HG_VERSION_MAJOR, HG_VERSION_MINOR, HG_VERSION_PATCH)

/* ---- Errors -------------------------------------------------------------------------------- */

typedef int32_t hg_status;

enum {
    HG_OK = 0,
    /* What may happen and is no failure. */
    HG_INTERRUPTED = 1, /* a sleep was ended before its deadline */
    HG_TIMEOUT = 2,     /* nothing came within the limit */
    HG_EMPTY = 3,       /* there is nothing now */
    HG_ENDED = 4,       /* a deadline handler ended this thread: return from it */
    /* The caller's mistakes. */
    HG_NULL = 10,          /* an address or a handle is null */
    HG_STALE = 11,         /* a handle was freed, or never was made */
    HG_INVALID = 12,       /* a value cannot be meant */
    HG_BUSY = 13,          /* another call uses it now */
    HG_WRONG_THREAD = 14,  /* it belongs to another thread */
    HG_OTHER_VERSION = 15, /* header and library, or page and library, have different versions */
    /* What the machine refuses. */
    HG_PERMISSION = 20,  /* a privilege is missing; the text names the command that grants it */
    HG_EXHAUSTED = 21,   /* no memory, descriptors, signals or places remain */
    HG_UNSUPPORTED = 22, /* this machine has no such thing */
    HG_OS = 23,          /* something else; os_errno says what */
    /* States of things. */
    HG_FORKED = 30,     /* it belongs to the parent process */
    HG_CANCELLED = 31,  /* a sleep's timer was cancelled or armed anew */
    HG_TERMINATED = 32, /* a timer or its owner was terminated */
    HG_CLOCK_SET = 33,  /* the timer's clock was set */
    HG_START_FAILED = 34, /* what a periodic thread was to do first failed */
    HG_PAGE = 40,       /* the file is no calibration page of this machine */
    HG_MIXED_TICKS = 41, /* the ticks are of different sources */
    /* Defects. */
    HG_PANIC = 50 /* of this library, or of a thread of it: please report it */
};

/* Bytes of a text within a struct, its terminating zero included. */
#define HG_TEXT 256

typedef struct hg_error {
    hg_status kind;
    int32_t os_errno;   /* as errno(3), or 0 */
    char text[HG_TEXT]; /* a sentence: what, and what to do about it */
} hg_error;

/* A status as a word, for logs.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
const char *hg_status_name(hg_status status);

/* The library's own HG_ABI_VERSION.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
uint32_t hg_abi_version(void);

/* The library's version, as "0.1.0".
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
const char *hg_version(void);

/* HG_OTHER_VERSION if a program compiled with interface `header` must not use this library.
 * Threads: any. Signals: no. Errors: HG_OTHER_VERSION. Free: nothing. */
hg_status hg_check_abi_of(uint32_t header, hg_error *error);

/* The same for this header: to be called first where the library is loaded at run time.
 * Threads: any. Signals: no. Errors: HG_OTHER_VERSION. Free: nothing. */
static inline hg_status hg_check_abi(hg_error *error)
{
    return hg_check_abi_of(HG_ABI_VERSION, error);
}

/* ---- The clock ----------------------------------------------------------------------------- */

/* What a bound rests on. All but the last hold for any change that a daemon makes to the rate of CLOCK_MONOTONIC
 * (adjtimex(2): frequency, tick, offset), with and without a thread that maintains the clock. */
enum {
    HG_CLOCK_OS = 0,          /* the kernel's clock is read */
    HG_CLOCK_SETTLING = 1,    /* a counter is read, calibrated over less than a second: may be wide */
    HG_CLOCK_STEADY = 2,      /* a counter is read, calibrated, and the read checked that the kernel still computes
                                 its clock from that counter as when the bound was confirmed */
    HG_CLOCK_FAILED_OVER = 3, /* a counter failed a check; the kernel's clock is read since then */
    HG_CLOCK_ASSUMED = 4      /* a counter is read whose bound holds while the rate stays within the
                                 allowance that its owner gave (of a page that a Rust program shares) */
};

/* A time between two others: CLOCK_MONOTONIC was not before the one nor after the other when the clock
 * was read. */
typedef struct hg_bounds {
    uint64_t earliest_ns;
    uint64_t latest_ns;
    uint32_t status; /* HG_CLOCK_* */
    uint32_t reserved;
} hg_bounds;

/* The calibration page of this process' clock: 64 words that a thread of the process writes, with a
 * sequence lock. Its layout is version 1, which the symbol's name says; only hg_now and the
 * functions beside it read it. */
extern const uint64_t *const hg_clock_page_v1;

/* The same reads by a call: what the inline ones fall back to.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
uint64_t hg_now_call(void);
uint64_t hg_now_ordered_call(void);
hg_bounds hg_now_bounded_call(void);
hg_bounds hg_now_bounded_ordered_call(void);

/* Words of a page, and of the slot that counts. */
enum {
    HG_UTC_KEPT_NS_ = 100000000,
    HG_PAGE_RECENT_ = 6,
    HG_PAGE_TURN_ = 8,
    HG_PAGE_GUARD_ = 9,
    HG_PAGE_GENERATION_AT_ = 10,
    HG_PAGE_SLOT_ = 16,
    HG_PAGE_SLOT_WORDS_ = 24,
    HG_SLOT_META_ = 0,
    HG_SLOT_BASE_TICKS_ = 1,
    HG_SLOT_VALID_FOR_ = 2,
    HG_SLOT_MULT_ = 3,
    HG_SLOT_BASE_NS_ = 4,
    HG_SLOT_BOUND_NS_ = 5,
    HG_SLOT_GROWTH_ = 6,
    HG_SLOT_HOLD_ = 7
};

#if defined(__SIZEOF_INT128__) && defined(__x86_64__)
#define HG_COUNTER_ 2u /* HG_SOURCE_TSC */
static inline uint64_t hg_counter_(void) { return __builtin_ia32_rdtsc(); }
static inline uint64_t hg_counter_ordered_(void)
{
    unsigned int cpu;
    return __builtin_ia32_rdtscp(&cpu);
}
#elif defined(__SIZEOF_INT128__) && defined(__aarch64__)
#define HG_COUNTER_ 3u /* HG_SOURCE_CNTVCT */
static inline uint64_t hg_counter_(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
static inline uint64_t hg_counter_ordered_(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}
#endif

/* Thread sanitizers do not know fences; there every load is one that acquires. */
#if defined(__SANITIZE_THREAD__)
#define HG_NO_FENCES_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HG_NO_FENCES_ 1
#endif
#endif

static inline uint64_t hg_load_(const uint64_t *word)
{
#ifdef HG_NO_FENCES_
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

static inline void hg_fence_(void)
{
#ifndef HG_NO_FENCES_
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

#ifdef HG_COUNTER_
/* A reading of a page: taken between hg_reading_begin_ and hg_reading_end_, with whatever else of its slot. */
struct hg_reading_ {
    const uint64_t *slot;
    uint64_t turn, meta, base_ticks, valid_for, mult, base_ns;
};

static inline struct hg_reading_ hg_reading_begin_(const uint64_t *page)
{
    struct hg_reading_ reading;
    reading.turn = __atomic_load_n(page + HG_PAGE_TURN_, __ATOMIC_ACQUIRE);
    reading.slot = page + HG_PAGE_SLOT_ + ((reading.turn >> 1) & 1) * HG_PAGE_SLOT_WORDS_;
    reading.meta = hg_load_(reading.slot + HG_SLOT_META_);
    reading.base_ticks = hg_load_(reading.slot + HG_SLOT_BASE_TICKS_);
    reading.valid_for = hg_load_(reading.slot + HG_SLOT_VALID_FOR_);
    reading.mult = hg_load_(reading.slot + HG_SLOT_MULT_);
    reading.base_ns = hg_load_(reading.slot + HG_SLOT_BASE_NS_);
    return reading;
}

/* Reads the counter. How far it is from the slot's own time, ns; false if the page does not simply say, or
 * was written meanwhile. */
static inline bool hg_reading_end_(const uint64_t *page, const struct hg_reading_ *reading, bool ordered,
                                   uint64_t *elapsed)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t ahead;
    if (__builtin_expect((reading->meta & 0xffff) != HG_COUNTER_, 0)) {
        return false;
    }
    ahead = (ordered ? hg_counter_ordered_() : hg_counter_()) - reading->base_ticks;
    hg_fence_();
    if (__builtin_expect((reading->turn & 1) != 0 || hg_load_(page + HG_PAGE_TURN_) != reading->turn, 0)
        || __builtin_expect(ahead > reading->valid_for, 0)) {
        return false;
    }
    *elapsed = (uint64_t)(((wide)ahead * reading->mult) >> ((reading->meta >> 16) & 63));
    return true;
}

/* What the page says now, exactly as the library computes it; false if it does not simply say. */
static inline bool hg_page_read_(const uint64_t *page, bool ordered, uint64_t *ns)
{
    const struct hg_reading_ reading = hg_reading_begin_(page);
    uint64_t elapsed;
    if (!hg_reading_end_(page, &reading, ordered, &elapsed)) {
        return false;
    }
    *ns = reading.base_ns + elapsed;
    return true;
}

/* The kernel's own time data in this process: a word that is another one whenever the rate of its clock was
 * changed. The library proves where it is before it says so, in its own page. */
static inline uint32_t hg_generation_(void)
{
    const uint64_t at = hg_load_(hg_clock_page_v1 + HG_PAGE_GENERATION_AT_);
    return __atomic_load_n((const uint32_t *)(uintptr_t)at, __ATOMIC_RELAXED);
}

/* Whether the slot's bound holds: the guard is of this turn and of the kernel's generation now, or it holds by
 * itself, and is no later line's in the same slot. To be asked after the counter was read, since a thread may be
 * interrupted in between. */
static inline bool hg_reading_holds_(const uint64_t *page, const struct hg_reading_ *reading, uint64_t guard)
{
    const uint32_t since_turn = hg_generation_() - (uint32_t)reading->turn;
    uint64_t hold;
    if (__builtin_expect(guard == (reading->turn << 32 | since_turn), 1)) {
        return true;
    }
    hold = hg_load_(reading->slot + HG_SLOT_HOLD_);
    hg_fence_();
    return hold == 0 && hg_load_(page + HG_PAGE_TURN_) == reading->turn;
}

/* The same with the bound on its error; `guard` is where the page's, or the reader's own, lies. */
static inline bool hg_page_read_guarded_(const uint64_t *page, const uint64_t *guard, bool ordered,
                                         hg_bounds *bounds)
{
    const struct hg_reading_ reading = hg_reading_begin_(page);
    const uint64_t bound_ns = hg_load_(reading.slot + HG_SLOT_BOUND_NS_);
    const uint64_t growth = hg_load_(reading.slot + HG_SLOT_GROWTH_);
    uint64_t elapsed, error, ns;
    if (!hg_reading_end_(page, &reading, ordered, &elapsed)
        || !hg_reading_holds_(page, &reading, hg_load_(guard))) {
        return false;
    }
    ns = reading.base_ns + elapsed;
    error = bound_ns + ((elapsed * growth) >> 32) + 1;
    bounds->earliest_ns = ns > error ? ns - error : 0;
    bounds->latest_ns = ns + error < ns ? UINT64_MAX : ns + error;
    bounds->status = (uint32_t)((reading.meta >> 24) & 0xff);
    bounds->reserved = 0;
    return true;
}
#else
static inline bool hg_page_read_(const uint64_t *page, bool ordered, uint64_t *ns)
{
    (void)page, (void)ordered, (void)ns;
    return false;
}
static inline bool hg_page_read_guarded_(const uint64_t *page, const uint64_t *guard, bool ordered,
                                         hg_bounds *bounds)
{
    (void)page, (void)guard, (void)ordered, (void)bounds;
    return false;
}
#endif

/* The same by the page's own guard. */
static inline bool hg_page_read_bounded_(const uint64_t *page, bool ordered, hg_bounds *bounds)
{
    return hg_page_read_guarded_(page, page + HG_PAGE_GUARD_, ordered, bounds);
}

/* The time, ns on CLOCK_MONOTONIC. It never goes backwards, from any source. Without a bound it does not check
 * whether the kernel changed its rate since the last calibration: while a daemon slews at 100 ppm it may be
 * 0.1 us off for every ms since then. Unordered: the processor may
 * read the counter some tens of nanoseconds before or after the instructions around it. No call, no lock,
 * no allocation, but from time to time one read that calibrates (some 10 us, by some system calls).
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_now(void)
{
    uint64_t ns;
    return __builtin_expect(hg_page_read_(hg_clock_page_v1, false, &ns), 1) ? ns : hg_now_call();
}

/* The time after all earlier instructions: never before a time that this or another thread read before.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_now_ordered(void)
{
    uint64_t ns;
    return __builtin_expect(hg_page_read_(hg_clock_page_v1, true, &ns), 1) ? ns : hg_now_ordered_call();
}

/* The time between two bounds; unordered. The bounds hold also while a daemon slews CLOCK_MONOTONIC: no
 * call, no lock and no system call, but where the kernel's clock went on to another generation since the last
 * read (at each tick of the kernel, every 1 to 10 ms: some 0.1 us), or changed its rate (one read calibrates,
 * the others read the kernel's clock meanwhile). Where the kernel does not show how it makes its clock
 * (a time namespace, no [vvar], a layout that is not known), they are those of the kernel's clock.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_bounds hg_now_bounded(void)
{
    hg_bounds bounds;
    return __builtin_expect(hg_page_read_bounded_(hg_clock_page_v1, false, &bounds), 1)
        ? bounds
        : hg_now_bounded_call();
}

/* The same after all earlier instructions.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_bounds hg_now_bounded_ordered(void)
{
    hg_bounds bounds;
    return __builtin_expect(hg_page_read_bounded_(hg_clock_page_v1, true, &bounds), 1)
        ? bounds
        : hg_now_bounded_ordered_call();
}

/* The last time that anybody published, by hg_clock_maintain or a calibration: one load, and as old as
 * that.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_recent(void)
{
    const uint64_t ns = __atomic_load_n(hg_clock_page_v1 + HG_PAGE_RECENT_, __ATOMIC_ACQUIRE);
    return ns != 0 ? ns : hg_now();
}

/* Whether `ns` has passed for certain.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline bool hg_is_after(hg_bounds bounds, uint64_t ns) { return bounds.earliest_ns > ns; }

/* Whether `ns` is still to come for certain.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline bool hg_is_before(hg_bounds bounds, uint64_t ns) { return bounds.latest_ns < ns; }

/* The counter that serves. Ticks of two epochs do not mix. */
typedef struct hg_ticks {
    uint64_t count;
    uint32_t epoch;
    uint32_t reserved;
} hg_ticks;

typedef struct hg_elapsed {
    int64_t ns;        /* negative if the second reading is the earlier one */
    uint64_t error_ns; /* bound on the error of the rate over that time */
} hg_elapsed;

/* Reads the counter, unordered.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_ticks hg_clock_ticks(void);

/* The time between two readings at the rate of CLOCK_MONOTONIC_RAW, which is never slewed.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_MIXED_TICKS. Free: nothing. */
hg_status hg_clock_elapsed(hg_ticks first, hg_ticks second, hg_elapsed *elapsed, hg_error *error);

/* The kernel's scales. */
enum {
    HG_SCALE_MONOTONIC = 0,
    HG_SCALE_MONOTONIC_RAW = 1,
    HG_SCALE_REALTIME = 2, /* since 1970 */
    HG_SCALE_TAI = 3,      /* since 1970 */
    HG_SCALE_BOOTTIME = 4  /* goes on in suspend */
};

typedef struct hg_scale_time {
    int64_t ns;        /* since the scale's beginning */
    uint64_t error_ns; /* bound on the distance to what the kernel says */
    uint32_t status;   /* HG_CLOCK_* */
    uint32_t reserved;
} hg_scale_time;

/* The time on a scale of the kernel; other scales than HG_SCALE_MONOTONIC are read from the kernel.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_INVALID for no scale. Free: nothing. */
hg_status hg_now_on(int32_t scale, hg_scale_time *time, hg_error *error);

/* Who vouches for wall-clock time. */
enum {
    HG_WALL_UNKNOWN = 0,      /* no source */
    HG_WALL_SYNCHRONISED = 1, /* the kernel's synchroniser, at this read */
    HG_WALL_BY_HAND = 2,      /* it was set by hg_wall_set */
    HG_WALL_STEERED = 3       /* it is steered by hg_wall_steer */
};

typedef struct hg_wall_time {
    int64_t ns;        /* since 1970 */
    uint64_t error_ns; /* bound on the error against UTC; UINT64_MAX if it is unknown */
    uint32_t status;   /* HG_WALL_* */
    uint32_t reserved;
} hg_wall_time;

/* What an external reference says: then, on hg_now's scale, it was that time, to within that error. */
typedef struct hg_wall_reference {
    uint64_t monotonic_ns;
    int64_t wall_ns;
    uint64_t error_ns;
} hg_wall_reference;

/* Wall-clock time. Unless it was set or is steered, each read asks the kernel (adjtimex, about 0.5 us), so that
 * steps, a larger error and the loss of synchronisation are detected at once; nothing needs to maintain the clock
 * for it. Around a leap second that the kernel announces error_ns is a second more.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_wall_time hg_wall(void);

/* UTC, at the moment of a read. No source vouches for it: status is HG_WALL_UNKNOWN, and it may be any time. */
typedef struct hg_utc {
    int64_t earliest_ns; /* since 1970; INT64_MIN if no source vouches */
    int64_t latest_ns;   /* since 1970; INT64_MAX if no source vouches */
    uint32_t status;     /* HG_WALL_*: who vouches */
    uint32_t reserved;
} hg_utc;

/* The answers of hg_utc_is_before. */
enum {
    HG_BEFORE_UNKNOWN = -1, /* they overlap, or no source vouches for one of them */
    HG_BEFORE_NO = 0,
    HG_BEFORE_YES = 1
};

/* What answered last, in this process: five words, with a sequence lock. Only hg_utc_bounded reads it. */
extern const uint64_t *const hg_clock_utc_v1;

/* The same read by a call: what the inline one falls back to.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_utc hg_utc_bounded_call(void);

/* By the last answer of the kernel, if that still holds; false if not. */
static inline bool hg_utc_read_(hg_utc *utc)
{
#ifdef HG_COUNTER_
    const uint64_t *const said = hg_clock_utc_v1;
    uint64_t page_turn, guard, turn, under, at_ns, age_ns;
    int64_t least_ns, most_ns, growth_ns;
    hg_bounds now;
    if (__builtin_expect(!hg_page_read_bounded_(hg_clock_page_v1, false, &now), 0)) {
        return false;
    }
    hg_fence_();
    page_turn = hg_load_(hg_clock_page_v1 + HG_PAGE_TURN_);
    guard = page_turn << 32 | (uint32_t)(hg_generation_() - (uint32_t)page_turn);
    turn = __atomic_load_n(said, __ATOMIC_ACQUIRE);
    under = hg_load_(said + 1);
    at_ns = hg_load_(said + 2);
    least_ns = (int64_t)hg_load_(said + 3);
    most_ns = (int64_t)hg_load_(said + 4);
    hg_fence_();
    age_ns = now.latest_ns > at_ns ? now.latest_ns - at_ns : 0;
    if (__builtin_expect((turn & 1) != 0 || hg_load_(said) != turn || under != guard || at_ns == 0, 0)
        || __builtin_expect(age_ns > HG_UTC_KEPT_NS_, 0)) {
        return false;
    }
    utc->reserved = 0;
    if (least_ns > most_ns) {
        utc->earliest_ns = INT64_MIN;
        utc->latest_ns = INT64_MAX;
        utc->status = HG_WALL_UNKNOWN;
        return true;
    }
    growth_ns = (int64_t)((age_ns * 525) >> 20) + 1;
    utc->status = HG_WALL_SYNCHRONISED;
    return !__builtin_sub_overflow(least_ns, growth_ns, &least_ns)
        && !__builtin_add_overflow(most_ns, growth_ns, &most_ns)
        && !__builtin_add_overflow((int64_t)now.earliest_ns, least_ns, &utc->earliest_ns)
        && !__builtin_add_overflow((int64_t)now.latest_ns, most_ns, &utc->latest_ns);
#else
    (void)utc;
    return false;
#endif
}

/* UTC between two bounds, at about the cost of hg_now_bounded: hg_wall with the kernel's last answer. The kernel is
 * asked again (about 1 us) at each of its ticks, after a step of its clock and after a leap second; in between the
 * bound grows by 500 ppm. A larger error and the loss of synchronisation are seen at its next tick.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_utc hg_utc_bounded(void)
{
    hg_utc utc;
    return __builtin_expect(hg_utc_read_(&utc), 1) ? utc : hg_utc_bounded_call();
}

/* Whether the first moment was before the second one: HG_BEFORE_*.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
int32_t hg_utc_is_before(hg_utc first, hg_utc second);

/* Sets wall-clock time of this process' clock, not of the kernel. It may step.
 * Threads: any. Signals: no. Errors: HG_NULL. Free: nothing. */
hg_status hg_wall_set(const hg_wall_reference *reference, hg_error *error);

/* Steers it by a reference that comes every some seconds: errors up to 128 ms are slewed away.
 * Threads: any. Signals: no. Errors: HG_NULL. Free: nothing. */
hg_status hg_wall_steer(const hg_wall_reference *reference, hg_error *error);

/* Lets the kernel say again what it is.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
void hg_wall_release(void);

/* What is read. */
enum {
    HG_SOURCE_OS = 1,     /* CLOCK_MONOTONIC */
    HG_SOURCE_TSC = 2,    /* the x86 time-stamp counter */
    HG_SOURCE_CNTVCT = 3, /* the aarch64 generic timer */
    HG_SOURCE_HPET = 4    /* the High Precision Event Timer; not for this process' clock */
};

/* The source that serves: HG_SOURCE_*. May wait for a calibration, some 10 us.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
int32_t hg_clock_source(void);

/* Changes it by hand, without a step: times read so far stay valid, ticks do not.
 * Threads: any. Signals: no. Errors: HG_UNSUPPORTED if it cannot be read here, HG_INVALID for no source.
 * Free: nothing. */
hg_status hg_clock_set_source(int32_t source, hg_error *error);

/* A source's name, as `hourglass clocks` writes it.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
const char *hg_source_name(int32_t source);

typedef struct hg_maintained {
    uint64_t next_ns; /* when to call again, from now */
    bool drawn;       /* whether the clock was calibrated */
    uint8_t reserved[7];
} hg_maintained;

/* Calibrates if that is due, at most some tens of microseconds; then no reader has to. A program that
 * cannot bear a reader's 10 us now and then calls this from a thread of its own.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
hg_maintained hg_clock_maintain(void);

typedef struct hg_trust {
    bool trusted;
    uint8_t reserved[7];
    char reason[HG_TEXT];
} hg_trust;

/* Gathers the whole evidence about the source, offsets between CPUs included, and leaves it if anything
 * speaks against it. 0.1 s, in threads on the CPUs that the caller may run on.
 * Threads: any. Signals: no. Errors: HG_NULL. Free: nothing. */
hg_status hg_clock_examine(hg_trust *trust, hg_error *error);

/* What may happen to a clock. */
enum {
    HG_EVENT_OTHER = 0,
    HG_EVENT_ADOPTED = 1,
    HG_EVENT_BY_HAND = 2,
    HG_EVENT_KERNEL_CHANGED_SOURCE = 3,
    HG_EVENT_RESIDUAL = 4,
    HG_EVENT_NEGATIVE_STEP = 5,
    HG_EVENT_STUCK = 6,
    HG_EVENT_UNSUPPORTED = 7,
    HG_EVENT_PRIOR_CONTRADICTED = 8,
    HG_EVENT_UNTRUSTED = 9,
    HG_EVENT_SUSPENDED = 10,
    HG_EVENT_CPUS_CHANGED = 11,
    HG_EVENT_VM_CHANGED = 12,
    HG_EVENT_REFERENCE_SLEWED = 13,
    HG_EVENT_RATE_CORRECTED = 14,
    HG_EVENT_WALL_SET = 15
};

typedef struct hg_clock_event {
    uint64_t at_ns;
    uint32_t kind; /* HG_EVENT_* */
    uint32_t reserved;
    char text[HG_TEXT];
} hg_clock_event;

/* How often something happened: HG_EVENT_*, else 0.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
uint64_t hg_clock_count(uint32_t kind);

/* The latest events, oldest first, as many as there is room for; `count` is how many there are. `events`
 * may be NULL without room.
 * Threads: any. Signals: no. Errors: HG_NULL. Free: nothing. */
hg_status hg_clock_events(hg_clock_event *events, size_t room, size_t *count, hg_error *error);

/* Why the HPET cannot be used. */
enum {
    HG_HPET_USABLE = 0,
    HG_HPET_NOT_PRESENT = 1,
    HG_HPET_PERMISSION = 2,
    HG_HPET_BUSY = 3,
    HG_HPET_TOO_MANY_FILES = 4,
    HG_HPET_NO_MEMORY = 5,
    HG_HPET_MAP_REFUSED = 6,
    HG_HPET_WIDTH32 = 7, /* it has 32 bits, and wraps within minutes */
    HG_HPET_BROKEN = 8,  /* its registers make no sense, or it stands still */
    HG_HPET_OTHER = 9
};

typedef struct hg_hardware {
    bool rdtscp;
    bool constant_tsc;  /* it keeps its rate when the processor's frequency changes */
    bool invariant_tsc; /* and in all power states */
    bool hypervisor;
    uint32_t hpet; /* HG_HPET_* */
    char brand[64];
    char hpet_reason[HG_TEXT]; /* with what would mend it */
} hg_hardware;

/* Facts about processor and counters. Opens /dev/hpet, and closes it again.
 * Threads: any. Signals: no. Errors: HG_NULL. Free: nothing. */
hg_status hg_hardware_look(hg_hardware *hardware, hg_error *error);

/* ---- A clock in shared memory -------------------------------------------------------------- */

/* A page that another process keeps. Do not copy it: what was copied is not closed with it, and its
 * words are gone then. */
typedef struct hg_page {
    const uint64_t *words;
    uint64_t handle;
    uint32_t counter; /* HG_SOURCE_*, if it is read by this processor's counter */
    uint32_t guard;   /* which of hg_page_guards_v1 is its; 0 for none */
} hg_page;

/* Under which generation of the kernel's clock this process last found the line of a page to hold. */
enum { HG_PAGE_GUARDS_ = 64 };
extern const uint64_t hg_page_guards_v1[HG_PAGE_GUARDS_];

typedef struct hg_page_writer {
    uint64_t pid;          /* in the writer's own namespace */
    uint64_t heartbeat_ns; /* when it last wrote */
    uint64_t events;       /* how many it counted */
    bool expired;          /* it died, stopped, or is not maintained: readers get CLOCK_MONOTONIC */
    uint8_t reserved[7];
} hg_page_writer;

/* A descriptor by which other processes read this process' clock (pass it over a socket, or by
 * inheritance). The page stays while anybody has it open.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_EXHAUSTED, HG_OS; HG_INVALID on a kernel before 5.1. Free:
 * `fd`, with close(2). */
hg_status hg_clock_share(int32_t *fd, hg_error *error);

/* Opens a page. `fd` may be closed afterwards.
 * Threads: any. Signals: no. Errors: HG_NULL; HG_INVALID for a negative descriptor; HG_OS for one that is
 * not open; HG_PAGE for a file that is no page, or one whose time is of another machine or time namespace;
 * HG_OTHER_VERSION; HG_UNSUPPORTED for a page of another processor, or drawn over a counter that cannot be
 * read here; HG_PERMISSION; HG_EXHAUSTED. Free: the page, with hg_page_close. */
hg_status hg_page_open(int32_t fd, hg_page *page, hg_error *error);

/* The same reads by a call; 0 for a page that is closed.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
uint64_t hg_page_now_call(const hg_page *page);
uint64_t hg_page_now_ordered_call(const hg_page *page);
hg_bounds hg_page_now_bounded_call(const hg_page *page);

/* The time by that page; as hg_now. 0 if `page` is NULL or closed.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_page_now(const hg_page *page)
{
    uint64_t ns;
    return page && page->words && page->counter && hg_page_read_(page->words, false, &ns)
        ? ns
        : hg_page_now_call(page);
}

/* As hg_now_ordered.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_page_now_ordered(const hg_page *page)
{
    uint64_t ns;
    return page && page->words && page->counter && hg_page_read_(page->words, true, &ns)
        ? ns
        : hg_page_now_ordered_call(page);
}

/* As hg_now_bounded.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_bounds hg_page_now_bounded(const hg_page *page)
{
    hg_bounds bounds;
    return page && page->words && page->counter
            && hg_page_read_guarded_(page->words, hg_page_guards_v1 + page->guard % HG_PAGE_GUARDS_, false,
                                     &bounds)
        ? bounds
        : hg_page_now_bounded_call(page);
}

/* What is known of who writes it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_page_writer_of(const hg_page *page, hg_page_writer *writer, hg_error *error);

/* Closes it; reads of `page` give 0 from then on.
 * Threads: any, but no other may read `page` meanwhile. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY
 * while another call on it goes on. Free: nothing. */
hg_status hg_page_close(hg_page *page, hg_error *error);

/* ---- Sleeping ------------------------------------------------------------------------------ */

/* Ends sleeps. It lies in the caller's memory (HG_INTERRUPT_INIT, or all zero), aligned to 64 bytes, and
 * stays there while anything may use it. */
typedef struct hg_interrupt {
    HG_ALIGNED_(64) uint32_t word[16];
} hg_interrupt;

#define HG_INTERRUPT_INIT { { 0 } }

/* Ends the sleeps in progress that it was given to and every later one, until hg_interrupt_clear.
 * Threads: any. Signals: safe. Errors: HG_NULL, HG_INVALID if it is not aligned. Free: nothing. */
hg_status hg_interrupt_set(hg_interrupt *interrupt);

/* Lets sleeps last again; whether it was set.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
bool hg_interrupt_clear(hg_interrupt *interrupt);

/* Whether it is set.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
bool hg_interrupt_is_set(const hg_interrupt *interrupt);

/* Lets a signal set it, which has no other effect from then on. The interrupt must stay until the process
 * ends.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_INVALID if it is not aligned, or for a signal that cannot
 * be caught, does not exist, or reports a defect. Free: nothing. */
hg_status hg_interrupt_on_signal(hg_interrupt *interrupt, int32_t signal, hg_error *error);

/* Why a sleep ended after its deadline. */
enum {
    HG_DELAY_NONE = 0,         /* it did not, by more than 1 us */
    HG_DELAY_ALREADY_PAST = 1, /* the deadline had passed when the sleep was requested */
    HG_DELAY_WOKEN_LATE = 2,   /* the kernel woke the thread late, or it was stopped (SIGSTOP), which cannot be distinguished */
    HG_DELAY_PREEMPTED = 3,    /* another thread got the CPU */
    HG_DELAY_STALLED = 4       /* an interrupt, the firmware, a hypervisor, or a stop */
};

typedef struct hg_slept {
    uint64_t deadline_ns;
    uint64_t woke_ns; /* the reading that ended it; never before the deadline unless interrupted */
    uint64_t kernel_ns;       /* time in the kernel */
    uint64_t spin_ns;         /* time spinning */
    uint64_t margin_ns;       /* time before the deadline at which the kernel was to wake it */
    uint64_t longest_step_ns; /* the longest time between two samples of the clock in the spin */
    uint32_t delay;           /* HG_DELAY_*: why it ended late */
    bool interrupted;
    uint8_t reserved[3];
} hg_slept;

/* Sleeps until a time on hg_now's scale, precisely: most of it in the kernel, the rest spinning, by a
 * margin that each thread learns. Allocates with a thread's first sleep only. `interrupt` may be NULL, and
 * is not kept; `slept` may be NULL.
 * Threads: any, each for itself. Signals: no. Errors: HG_INTERRUPTED if `interrupt` ended it, or was set
 * before; HG_INVALID if that is not aligned. Free: nothing. */
hg_status hg_sleep_until(uint64_t deadline_ns, hg_interrupt *interrupt, hg_slept *slept,
                         hg_error *error);

/* Sleeps for a length of time from now; the rest as hg_sleep_until.
 * Threads: any, each for itself. Signals: no. Errors: HG_INTERRUPTED, HG_INVALID, as there. Free: nothing. */
hg_status hg_sleep_for(uint64_t length_ns, hg_interrupt *interrupt, hg_slept *slept,
                       hg_error *error);

/* Sleeps until the clock's counter has counted `count` ticks from now; the rest as hg_sleep_until.
 * Threads: any, each for itself. Signals: no. Errors: HG_INTERRUPTED, HG_INVALID, as there. Free: nothing. */
hg_status hg_sleep_ticks(uint64_t count, hg_interrupt *interrupt, hg_slept *slept,
                         hg_error *error);

/* What a wait was for, and how long it was. */
typedef struct hg_utc_wait {
    uint64_t waited_ns;
    uint64_t ahead_ns; /* how far the time was still to come at the beginning, by the middle of the bounds */
    uint64_t error_ns; /* the bound on the error at the beginning; 0 if no source vouched for any */
    hg_utc last;       /* at the end */
} hg_utc_wait;

/* Waits until a time of UTC, ns since 1970, has passed for certain: until hg_utc_bounded().earliest_ns is after it. The
 * bound is looked at again at least every 0.1 s, so that a step of the wall clock or another bound makes the wait longer or shorter.
 * at_most_ns is the longest wait, UINT64_MAX for any; one that would be longer ends at once. `interrupt` and `wait`
 * may be NULL, as in hg_sleep_until.
 * Threads: any, each for itself. Signals: no. Errors: HG_INTERRUPTED and HG_INVALID, as hg_sleep_until; HG_TIMEOUT if it
 * would be longer than at_most_ns by the bound as it is; HG_UNSUPPORTED if no source vouches for the wall clock.
 * Free: nothing. */
hg_status hg_utc_wait_until_past(int64_t time_ns, uint64_t at_most_ns, hg_interrupt *interrupt,
                                 hg_utc_wait *wait, hg_error *error);

/* A thread that asks chronyd, AWS ClockBound's daemon and linuxptp's ptp4l each second how far the wall clock may be off. While
 * there is one, hg_utc_bounded and hg_utc_wait_until_past answer by the narrowest of their bounds, also where the kernel's vouches
 * for nothing, or by the kernel's if that is narrower. */
typedef struct hg_utc_keeper {
    uint64_t handle;
} hg_utc_keeper;

/* What the source said last that vouches. */
typedef struct hg_utc_source {
    uint8_t name[16];    /* "chronyd", "clockbound" or "ptp4l", ended by 0 */
    uint64_t error_ns;   /* bound on the error of the wall clock against UTC */
    uint64_t growth_ppb; /* by how much that grows */
    uint64_t at_ns;      /* when it held, on CLOCK_MONOTONIC */
} hg_utc_source;

/* Starts a keeper; the sources were asked once when this returns, which takes up to 0.3 s. It needs no privileges.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_EXHAUSTED. Free: the keeper, with hg_utc_keeper_free. */
hg_status hg_utc_keeper_start(hg_utc_keeper *keeper, hg_error *error);

/* Which source vouches, and what it said.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE; HG_UNSUPPORTED if none does, with the reason of each. Free: nothing. */
hg_status hg_utc_keeper_look(hg_utc_keeper keeper, hg_utc_source *source, hg_error *error);

/* Ends the thread and frees the keeper: the kernel's bound answers again. Waits for questions under way, up to 0.3 s.
 * Threads: any. Signals: no. Errors: HG_STALE, HG_BUSY during another call on it. Free: nothing. */
hg_status hg_utc_keeper_free(hg_utc_keeper keeper, hg_error *error);

/* How the time until the deadline is spent. */
enum {
    HG_SLEEP_LEARNED = 0,     /* in the kernel until a learnt margin, then spinning */
    HG_SLEEP_KERNEL_ONLY = 1, /* late by the kernel's wake-up, at least CPU time */
    HG_SLEEP_SPIN_ONLY = 2,   /* a whole CPU */
    HG_SLEEP_THESIS = 3       /* all but a tick of the scheduler in the kernel, as the thesis has it */
};

/* Which reading of the clock ends a sleep. */
enum {
    HG_ENDS_REACHED = 0,       /* hg_now_ordered is at the deadline */
    HG_ENDS_SURELY_REACHED = 1 /* so is the earliest time that it may be */
};

/* Begins as hg_sleep_defaults(), hg_sleep_frugal() or hg_sleep_precise(); all zero is HG_INVALID.
 * What may be spun is the sum of per_sleep_ns, of_wait_ppm and, to cover two of three wake-ups, share_ppm. */
typedef struct hg_sleep_settings {
    uint32_t policy;            /* HG_SLEEP_* */
    uint32_t hz;                /* ticks a second, for HG_SLEEP_THESIS */
    uint64_t per_sleep_ns;      /* what may be spun in a sleep */
    uint32_t share_ppm;         /* of the time slept, parts per million */
    uint32_t quantile_ppm;      /* which share of the wake-ups the margin covers, at most 1,000,000 parts per million */
    uint32_t of_wait_ppm;       /* of what the kernel's wait takes of the CPU, parts per million */
    uint32_t reserved;          /* 0 */
    uint64_t longest_margin_ns; /* at most 500,000 are ever learnt */
    uint64_t seed_ns;           /* what the kernel is thought to be late by at first */
    uint32_t sample_every;      /* of this number of sleeps that would spin, one waits */
    uint32_t ends_when;         /* HG_ENDS_* */
} hg_sleep_settings;

/* What hg_sleep_until sleeps by: a sleep costs at most twice a plain one, or half a percent of its time
 * more where two of three wake-ups need that.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_sleep_settings hg_sleep_defaults(void);

/* Little CPU time: margins that cover three of four wake-ups, not 99 %, and at most a two-thousandth of the
 * time slept in addition to what the kernel's wait takes.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_sleep_settings hg_sleep_frugal(void);

/* Margins that cover 99.9 % of the wake-ups, at any cost.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
hg_sleep_settings hg_sleep_precise(void);

/* A sleeper with settings of its own. One thread at a time sleeps by it. */
typedef struct hg_sleeper {
    uint64_t handle;
} hg_sleeper;

/* Makes one. `settings` may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_INVALID, HG_EXHAUSTED. Free: the sleeper, with
 * hg_sleeper_free. */
hg_status hg_sleeper_new(const hg_sleep_settings *settings, hg_sleeper *sleeper, hg_error *error);

/* As hg_sleep_until, hg_sleep_for and hg_sleep_ticks. `slept` may be NULL.
 * Threads: any, one at a time. Signals: no. Errors: HG_NULL, HG_STALE; HG_INTERRUPTED by
 * hg_sleeper_interrupt; HG_BUSY if another thread sleeps by it. Free: nothing. */
hg_status hg_sleeper_until(hg_sleeper sleeper, uint64_t deadline_ns, hg_slept *slept, hg_error *error);
hg_status hg_sleeper_for(hg_sleeper sleeper, uint64_t length_ns, hg_slept *slept, hg_error *error);
hg_status hg_sleeper_ticks(hg_sleeper sleeper, uint64_t count, hg_slept *slept, hg_error *error);

/* Sets the calling thread's timer slack to 1 ns, for all its waits and the threads that it starts: its sleeps are spared
 * three system calls each. For the thread that sleeps by it.
 * Threads: any, one at a time. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY. Free: nothing. */
hg_status hg_sleeper_take_slack(hg_sleeper sleeper, hg_error *error);

/* Keeps all CPUs out of idle states that take longer than that to leave, us, until the sleeper is freed: wake-ups are
 * sooner, at the price of power. A later call replaces this one.
 * Threads: any, one at a time. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY; HG_OS if /dev/cpu_dma_latency is
 * missing or may not be written. Free: nothing. */
hg_status hg_sleeper_hold_idle_latency(hg_sleeper sleeper, uint32_t us, hg_error *error);

/* Ends its sleep and every later one, until hg_sleeper_clear.
 * Threads: any. Signals: safe. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_sleeper_interrupt(hg_sleeper sleeper);

/* Lets its sleeps last again; whether there was an interrupt.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
bool hg_sleeper_clear(hg_sleeper sleeper);

/* The margin that a sleep of that length would have here and now. 0 if no margin was learnt, and in any other
 * thread than the one that slept by it last: a margin is that thread's, which never waits for others.
 * Threads: the one that slept by it last. Signals: no. Errors: none. Free: nothing. */
uint64_t hg_sleeper_margin(hg_sleeper sleeper, uint64_t length_ns);

/* Frees it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY while a thread sleeps by it. Free: nothing. */
hg_status hg_sleeper_free(hg_sleeper sleeper, hg_error *error);

/* ---- Clock devices ------------------------------------------------------------------------- */

/* A clock with a tick: its resolution can be changed within a skew, a read of it costs one load, and its timers
 * expire at its ticks (RT-Mach). The thread that opened it serves it: it waits for ticks and takes what
 * expired. To expire precisely, and to sleep while nothing is due, use a timer service. */
typedef struct hg_clock_device {
    uint64_t handle;
} hg_clock_device;
typedef struct hg_device_timer {
    uint64_t handle;
} hg_device_timer;

typedef struct hg_device_expiry {
    hg_device_timer timer;
    uint64_t tag;      /* the number that the timer was made with */
    int64_t expiry_ns; /* when it was to expire, on CLOCK_MONOTONIC */
    uint64_t tick_ns;  /* the tick at which it did: not before */
    uint64_t overruns; /* further expirations of a periodic timer that had passed by then */
} hg_device_expiry;

/* The name of clock device number `number`, from 0: "baseline", "timerfd", "posix", "rtc". NULL after the
 * last. A device that is listed may be missing: opening it says so.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
const char *hg_clock_device_name(uint32_t number);

/* Opens a clock device for the calling thread; `name` may be NULL for "baseline". It ticks every 10 ms at first.
 * Threads: any. Signals: no. Errors: HG_NULL; HG_INVALID for a name that no device has; HG_UNSUPPORTED,
 * HG_PERMISSION, HG_BUSY for a device that is missing, not allowed, in use; HG_EXHAUSTED. Free: the device,
 * with hg_clock_device_free. */
hg_status hg_clock_device_open(const char *name, hg_clock_device *device, hg_error *error);

/* Makes it tick at the period nearest to `desired_ns`, if that is at most `skew_ns` away, either way; the actual
 * period is written, rounded up to a nanosecond. In force at once.
 * Threads: the one that opened it. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD; HG_INVALID if no
 * period is near enough: the text names the nearest, and the skew that it takes. Free: nothing. */
hg_status hg_clock_device_set_resolution(hg_clock_device device, uint64_t desired_ns, uint64_t skew_ns,
                                         uint64_t *actual_ns, hg_error *error);

/* Waits for the next tick, at most until `limit_ns` on CLOCK_MONOTONIC (UINT64_MAX: no limit).
 * Threads: the one that opened it. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD; HG_TIMEOUT at the
 * limit; HG_INTERRUPTED by hg_clock_device_kick or a signal; HG_OS. Free: nothing. */
hg_status hg_clock_device_wait(hg_clock_device device, uint64_t limit_ns, hg_error *error);

/* Ends its wait, or the next one.
 * Threads: any. Signals: safe. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_clock_device_kick(hg_clock_device device);

/* The cheap read: the time at its last tick, ns on CLOCK_MONOTONIC; 0 for no device. hg_now_bounded is the
 * precise one.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
uint64_t hg_clock_device_now(hg_clock_device device);

/* Makes a timer on it, not armed.
 * Threads: the one that opened the device. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_EXHAUSTED.
 * Free: the timer, with hg_device_timer_free, or with its device. */
hg_status hg_device_timer_new(hg_clock_device device, uint64_t tag, hg_device_timer *timer, hg_error *error);

/* Arms it for `expiry_ns` on CLOCK_MONOTONIC, and then every `period_ns` after that, counted from when it was to
 * expire (0: once). It expires at the first tick that is not before its time.
 * Threads: the one that opened the device. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_INVALID.
 * Free: nothing. */
hg_status hg_device_timer_arm(hg_clock_device device, hg_device_timer timer, uint64_t expiry_ns,
                              uint64_t period_ns, hg_error *error);

/* Cancels its next expiration (a periodic one stays armed for those after it), or all.
 * Threads: the one that opened the device. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD. Free:
 * nothing. */
hg_status hg_device_timer_cancel(hg_clock_device device, hg_device_timer timer, bool all, hg_error *error);

/* Takes it away, armed or not.
 * Threads: the one that opened the device. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD. Free:
 * nothing. */
hg_status hg_device_timer_free(hg_clock_device device, hg_device_timer timer, hg_error *error);

/* The next timer that expired by the last tick, in order of expiry.
 * Threads: the one that opened it. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD; HG_EMPTY if there is
 * no more. Free: nothing. */
hg_status hg_clock_device_expired(hg_clock_device device, hg_device_expiry *expiry, hg_error *error);

/* Closes it; its timers end with it.
 * Threads: the one that opened it. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_BUSY. Free:
 * nothing. */
hg_status hg_clock_device_free(hg_clock_device device, hg_error *error);

/* ---- Scheduling ---------------------------------------------------------------------------- */

enum {
    HG_POLICY_INHERITED = 0, /* that of the thread which starts it */
    HG_POLICY_OTHER = 1,     /* with a nice value from -20 to 19 */
    HG_POLICY_BATCH = 2,     /* likewise */
    HG_POLICY_IDLE = 3,
    HG_POLICY_FIFO = 4,    /* with a priority from 1 to 99 */
    HG_POLICY_RR = 5,      /* likewise */
    HG_POLICY_DEADLINE = 6 /* with a budget, a relative deadline and a period */
};

/* All zero is HG_POLICY_INHERITED. A periodic thread is neither BATCH nor IDLE, and takes budget, deadline
 * and period of DEADLINE from its own settings. */
typedef struct hg_scheduling {
    uint32_t policy;  /* HG_POLICY_* */
    int32_t priority; /* or the nice value */
    uint64_t runtime_ns;
    uint64_t deadline_ns;
    uint64_t period_ns;
    bool reclaim; /* may use unreserved bandwidth */
    uint8_t reserved[7];
} hg_scheduling;

/* Releases what a call-back was given. Any thread. */
typedef void (*hg_release_fn)(void *user);

/* ---- Timing faults ------------------------------------------------------------------------- */

/* A thread watches its own deadlines, and another one handles those that it passes. A thread has one
 * watch, which ends with it at the latest. All hg_watch_* functions are about the calling thread's own:
 * HG_INVALID if it has none. HG_ENDED, from those that name it and from hg_safepoint, says that a handler's
 * verdict was to end the thread: it releases what it holds and returns from its function. */

enum {
    HG_STRENGTH_NOTIFY = 0, /* its handler is called; the thread runs on */
    HG_STRENGTH_DEMOTE = 1, /* and it gets other scheduling before that */
    HG_STRENGTH_SUSPEND = 2 /* it is stopped until the verdict, also while it holds a lock; a thread that
                               is not running, once it runs */
};

/* All zero notifies. */
typedef struct hg_watch_settings {
    uint32_t strength;        /* HG_STRENGTH_* */
    int32_t signal;           /* a real-time signal; 0 for the fifth one */
    uint64_t longest_stop_ns; /* the maximum time for which it is stopped; 0 without a limit */
} hg_watch_settings;

typedef struct hg_ending {
    uint64_t number; /* of the job, from 0 */
    uint64_t deadline_ns;
    uint64_t finished_ns;
    uint64_t next_deadline_ns; /* 0 for a single job */
    bool missed;               /* ended at its deadline or after */
    bool was_job;              /* false if none was under way */
    uint8_t reserved[6];
} hg_ending;

typedef struct hg_watch_state {
    uint64_t deadline_ns; /* UINT64_MAX without one */
    uint64_t faults;      /* deadlines passed */
    uint64_t untold;      /* of those, the ones that no handler received */
    uint64_t overstayed;  /* how often the thread continued without a verdict */
} hg_watch_state;

/* A watched thread, as others see it. */
typedef struct hg_watched {
    uint64_t handle;
} hg_watched;

/* An installed handler. */
typedef struct hg_handler {
    uint64_t handle;
} hg_handler;

/* Watches the calling thread. `settings` may be NULL.
 * Threads: own. Signals: no. Errors: HG_BUSY if it is watched, or the signal has a handler of the
 * program's; HG_EXHAUSTED if no signals remain (ulimit -i); HG_INVALID; HG_OS. Free: nothing:
 * hg_watch_end, or the end of the thread, ends it. */
hg_status hg_watch_begin(const hg_watch_settings *settings, hg_error *error);

/* Watches it in another way, from the next fault on; the signal stays.
 * Threads: own. Signals: no. Errors: HG_NULL, HG_INVALID. Free: nothing. */
hg_status hg_watch_set(const hg_watch_settings *settings, hg_error *error);

/* Watches it no more.
 * Threads: own. Signals: no. Errors: HG_INVALID. Free: nothing. */
hg_status hg_watch_end(hg_error *error);

/* A handle by which others know it.
 * Threads: own. Signals: no. Errors: HG_NULL, HG_INVALID, HG_EXHAUSTED. Free: `thread`, with
 * hg_watched_free. */
hg_status hg_watch_thread(hg_watched *thread, hg_error *error);

/* Takes a deadline in place of the one in force. One that is past is a fault before this returns.
 * Threads: own. Signals: no. Errors: HG_ENDED, HG_INVALID, HG_FORKED. Free: nothing. */
hg_status hg_watch_arm_at(uint64_t deadline_ns, hg_error *error);
hg_status hg_watch_arm_in(uint64_t length_ns, hg_error *error);

/* Gives it up; `ahead`, which may be NULL, is whether it was still to come.
 * Threads: own. Signals: no. Errors: HG_ENDED, HG_INVALID. Free: nothing. */
hg_status hg_watch_disarm(bool *ahead, hg_error *error);

/* Raises a fault when the thread has used `budget_ns` of CPU time from now on; late by up to one tick of the
 * kernel.
 * Threads: own. Signals: no. Errors: HG_INVALID, also for 0; HG_EXHAUSTED; HG_FORKED. Free: nothing. */
hg_status hg_watch_arm_budget(uint64_t budget_ns, hg_error *error);

/* Gives that up.
 * Threads: own. Signals: no. Errors: HG_INVALID. Free: nothing. */
hg_status hg_watch_disarm_budget(hg_error *error);

/* Begins a single job.
 * Threads: own. Signals: no. Errors: HG_ENDED, HG_INVALID, HG_FORKED. Free: nothing. */
hg_status hg_watch_begin_job_at(uint64_t deadline_ns, hg_error *error);
hg_status hg_watch_begin_job_in(uint64_t length_ns, hg_error *error);

/* Begins the first of a series of jobs: the deadline of job k is `first_deadline_ns` + k * `period_ns`.
 * Threads: own. Signals: no. Errors: HG_ENDED, HG_INVALID, HG_FORKED. Free: nothing. */
hg_status hg_watch_begin_jobs(uint64_t first_deadline_ns, uint64_t period_ns, hg_error *error);

/* Ends the job; the next of a series begins. `ending` may be NULL.
 * Threads: own. Signals: no. Errors: HG_ENDED, HG_INVALID, HG_FORKED. Free: nothing. */
hg_status hg_watch_end_job(hg_ending *ending, hg_error *error);

/* The state of the watch.
 * Threads: own. Signals: no. Errors: HG_NULL, HG_INVALID. Free: nothing. */
hg_status hg_watch_look(hg_watch_state *state, hg_error *error);

/* Where the calling thread may be ended: HG_ENDED, else HG_OK. For a thread that is not watched it does
 * nothing.
 * Threads: own. Signals: no. Errors: HG_ENDED. Free: nothing. */
hg_status hg_safepoint(void);

/* Enters a region in which the calling thread is neither suspended nor demoted: around code that holds a
 * lock that others wait for, allocation and printing among them. Regions nest; a deadline that passes
 * within is acted upon when the outermost is left, before that returns.
 * Threads: own. Signals: no. Errors: none. Free: nothing. */
void hg_defer_enter(void);

/* Leaves the innermost one.
 * Threads: own. Signals: no. Errors: HG_INVALID if none was entered. Free: nothing. */
hg_status hg_defer_leave(hg_error *error);

typedef struct hg_fault {
    uint64_t count;       /* deadlines that the thread has passed, with this one */
    uint64_t untold;      /* of those, the ones that no handler received */
    uint64_t deadline_ns; /* UINT64_MAX for a budget */
    uint64_t stopped_ns;  /* when it was stopped, or with HG_STRENGTH_NOTIFY interrupted */
    uint64_t handled_ns;  /* when the handler ran */
    uint32_t thread;      /* the kernel's number of it */
    uint32_t strength;    /* HG_STRENGTH_*: what was done to it */
    bool deferred;        /* a region put it off */
    bool over_budget;     /* it used up its budget, and did not pass a deadline by this */
    uint8_t reserved[6];
} hg_fault;

enum {
    HG_VERDICT_RESUME = 0,       /* it continues with the scheduling that it had, except for `changes` */
    HG_VERDICT_KEEP_DEMOTED = 1, /* it continues, demoted as it is */
    HG_VERDICT_END = 2           /* it continues to its next safepoint, where it gets HG_ENDED */
};

/* What is changed by HG_VERDICT_RESUME; several may be added up. */
enum {
    HG_CHANGE_SCHEDULING = 1,
    HG_CHANGE_CPU = 2,
    HG_CHANGE_DEADLINE_AT = 4, /* a new deadline, at a time */
    HG_CHANGE_DEADLINE_IN = 8  /* or so far from the verdict */
};

/* All zero resumes the thread; so does what cannot be meant. */
typedef struct hg_verdict {
    uint32_t kind;    /* HG_VERDICT_* */
    uint32_t changes; /* HG_CHANGE_* */
    hg_scheduling scheduling;
    uint64_t deadline_ns;
    uint32_t cpu;
    uint32_t reserved;
} hg_verdict;

/* Called on the handler's own thread, once a fault. If the watched thread is stopped meanwhile, the function must not
 * wait for anything that the thread may hold: it should neither allocate nor print. */
typedef hg_verdict (*hg_fault_fn)(const hg_fault *fault, void *user);

/* All zero runs as the installing thread, and demotes to HG_POLICY_IDLE. */
typedef struct hg_handler_settings {
    hg_scheduling scheduling; /* should be above that of the watched thread */
    hg_scheduling demoted;    /* what a thread with HG_STRENGTH_DEMOTE is given */
    bool pinned;              /* runs on `cpu` only */
    uint8_t reserved[3];
    uint32_t cpu;
} hg_handler_settings;

typedef struct hg_handled {
    uint64_t faults;  /* how often its function was called */
    uint64_t refused; /* what the kernel refused, or deadlines out of range */
} hg_handled;

/* Installs a handler for a watched thread, which may be the calling one. `settings` may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL; HG_STALE if the thread is watched no more; HG_BUSY if it has
 * a handler; HG_INVALID; HG_PERMISSION if the policy is refused, or a demotion could not be taken back;
 * HG_EXHAUSTED; HG_FORKED; HG_OS. Free: the handler, with hg_handler_free; `user` is released by `release`. */
hg_status hg_handler_install(hg_watched watched, const hg_handler_settings *settings,
                             hg_fault_fn entry_, void *user, hg_release_fn release,
                             hg_handler *handler, hg_error *error);

/* What it did so far.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_handler_look(hg_handler handler, hg_handled *handled, hg_error *error);

/* Removes it: the thread continues if it is stopped. Waits for the handler's function, unless called from it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_handler_free(hg_handler handler, hg_error *error);

/* Faults a thread now, as if it had passed a deadline of its own. `notified`, which may be NULL, is whether it
 * is still watched.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_watched_fault(hg_watched watched, uint64_t deadline_ns, bool *notified, hg_error *error);

/* Deadlines that it has passed, and those that no handler received; either may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_watched_faults(hg_watched watched, uint64_t *faults, uint64_t *untold, hg_error *error);

/* Frees the handle; the thread is watched on.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_watched_free(hg_watched watched, hg_error *error);

/* ---- Timers -------------------------------------------------------------------------------- */

/* A service has engines, which are threads with timers; owners, with which their timers end; and classes
 * of deferred actions, each with a thread. */
typedef struct hg_service {
    uint64_t handle;
} hg_service;
typedef struct hg_owner {
    uint64_t handle;
} hg_owner;
typedef struct hg_class {
    uint64_t handle;
} hg_class;
typedef struct hg_port {
    uint64_t handle;
} hg_port;
typedef struct hg_timer {
    uint64_t handle;
} hg_timer;
typedef struct hg_thread {
    uint64_t handle;
} hg_thread;

/* What wakes an engine. */
enum {
    HG_DEVICE_SLEEP = 0,   /* sleeping in the kernel: the quickest, and needs least */
    HG_DEVICE_TIMERFD = 1, /* a timerfd */
    HG_DEVICE_POSIX = 2,   /* a POSIX timer with a signal of its own */
    HG_DEVICE_BUSY = 3,    /* polling, with a CPU of its own */
    HG_DEVICE_RTC = 4      /* the real-time clock's tick, 2 to 8192 Hz; one engine on a machine */
};

/* All zero is one engine, on any CPU, with the policy of the starter. */
typedef struct hg_service_settings {
    uint32_t engines; /* 0 is 1; at most 1024 */
    uint32_t device;  /* HG_DEVICE_* */
    hg_scheduling scheduling;
    bool pinned; /* the first engine runs on `cpu` only, each further one on the next */
    uint8_t reserved[3];
    uint32_t cpu;
    uint64_t tick_ns; /* above 0: timers expire at ticks of this length only, which are skipped while nothing
                         is due; 0: each at its own time where the device can */
} hg_service_settings;

typedef struct hg_service_statistics {
    uint64_t created;           /* timers made */
    uint64_t fired;             /* expiries that did something */
    uint64_t overruns;          /* expiries without an action of their own */
    uint64_t lost_races;        /* expiries found cancelled, replaced or terminated */
    uint64_t long_actions;      /* immediate actions above 100 us */
    uint64_t longest_action_ns; /* the longest time for which one delayed all other timers of the engine */
    uint64_t latest_ns;         /* the maximum delay of a poll after a timer's expiry */
    uint64_t turns;             /* times that it was woken, or polled by itself */
    uint64_t ticks_skipped;     /* ticks at which no timer expired, so that it slept on */
    uint64_t without_room;      /* expiries for which a class had no room */
    uint64_t timers;            /* that live, of all engines */
    bool precise;               /* false if its device was found bound to a tick */
    uint8_t reserved[7];
} hg_service_statistics;

/* Starts a service. `settings` may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_PERMISSION, HG_EXHAUSTED, HG_INVALID, HG_OS if an engine
 * finds no device. Free: the service, with hg_service_free. */
hg_status hg_service_start(const hg_service_settings *settings, hg_service *service, hg_error *error);

/* What engine number `engine`, from 0, did so far.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_INVALID without such an engine. Free: nothing. */
hg_status hg_service_look(hg_service service, uint32_t engine, hg_service_statistics *statistics,
                          hg_error *error);

/* Frees the handle. The threads end with the last of the service and its owners.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_service_free(hg_service service, hg_error *error);

/* Makes an owner; `name` may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE; HG_INVALID for a name that is no UTF-8;
 * HG_EXHAUSTED. Free: the owner, with hg_owner_free. */
hg_status hg_owner_new(hg_service service, const char *name, hg_owner *owner, hg_error *error);

/* Terminates all its timers, by the rules of hg_timer_terminate; it makes none any more.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_FORKED. Free: nothing. */
hg_status hg_owner_terminate(hg_owner owner, hg_error *error);

/* The same, and frees it. Handles of its timers stay, and are answered with HG_TERMINATED.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_owner_free(hg_owner owner, hg_error *error);

/* All zero has room for 1024, the policy of the maker, and is not raised. */
typedef struct hg_class_settings {
    hg_scheduling scheduling;
    uint32_t room; /* expiries that may wait, up to 2^24, rounded up to a power of two; as many as there
                      are timers are always enough */
    bool raise;    /* its thread is raised to the priority of the thread that armed */
    uint8_t reserved[3];
} hg_class_settings;

typedef struct hg_class_statistics {
    uint64_t ran;           /* actions that ran */
    uint64_t longest_ns;    /* the longest of them */
    uint64_t without_room;  /* expiries that found no room: their actions did not run */
    uint64_t raised;        /* times that its thread was raised */
    uint64_t raise_refused; /* times that this was refused; grant it: ulimit -r 99 */
} hg_class_statistics;

/* Makes a class with a thread of that name; `name` and `settings` may be NULL. Its thread ends with the
 * service.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_INVALID, HG_PERMISSION, HG_EXHAUSTED, HG_FORKED.
 * Free: the handle, with hg_class_free. */
hg_status hg_class_new(hg_service service, const char *name, const hg_class_settings *settings,
                       hg_class *class_, hg_error *error);

/* What it did so far.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_class_look(hg_class class_, hg_class_statistics *statistics, hg_error *error);

/* Frees the handle; the class stays until its service ends.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_class_free(hg_class class_, hg_error *error);

/* The clocks that timers are armed on. */
enum {
    HG_BASE_MONOTONIC = 0,
    HG_BASE_BOOTTIME = 1, /* goes on in suspend */
    HG_BASE_REALTIME = 2, /* since 1970, UTC; may be set */
    HG_BASE_TAI = 3       /* since 1970, TAI; is set with it */
};

typedef struct hg_expiration {
    int64_t expiry_ns; /* as scheduled, on the timer's clock */
    int64_t now_ns;    /* that clock at the poll of the engine: not before the expiry, unless it was set */
    uint64_t overruns; /* expiries that had no action of their own */
    uint32_t base;     /* HG_BASE_* */
    bool clock_set;    /* the clock was set, rather than the time come */
    uint8_t reserved[3];
} hg_expiration;

typedef struct hg_message {
    uint64_t tag;
    hg_expiration expiration;
} hg_message;

/* Makes a port with room for `room` messages: 1 to 16,777,216 (2^24), rounded up to a power of two, 2 at
 * least; 48 bytes each. Full, it counts what it loses. Timers that send to it keep it for themselves.
 * Threads: any. Signals: no. Errors: HG_NULL; HG_INVALID for other room; HG_EXHAUSTED if there is no memory
 * for it, or no descriptor left (ulimit -n). Free: the port, with hg_port_free. */
hg_status hg_port_new(uint32_t room, hg_port *port, hg_error *error);

/* Its descriptor for poll and epoll, readable while there are messages: read them with hg_port_try_receive
 * until it is empty. Not to be closed or read. -1 for no port.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
int32_t hg_port_fd(hg_port port);

/* Messages that found no room.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
uint64_t hg_port_lost(hg_port port);

/* The oldest message.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE; HG_EMPTY without a message. Free: nothing. */
hg_status hg_port_try_receive(hg_port port, hg_message *message, hg_error *error);

/* The oldest message; waits for one, `limit_ns` at most, UINT64_MAX for ever. Signals do not end it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE; HG_TIMEOUT; HG_OS. Free: nothing. */
hg_status hg_port_receive(hg_port port, uint64_t limit_ns, hg_message *message, hg_error *error);

/* Frees it; timers that send to it send on, and their messages are lost.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY while a thread waits for a message. Free:
 * nothing. */
hg_status hg_port_free(hg_port port, hg_error *error);

/* A handle of the calling thread, for hg_unpark and HG_ACTION_WAKE.
 * Threads: own. Signals: no. Errors: HG_NULL, HG_EXHAUSTED, HG_INVALID if it is about to end. Free: the
 * handle, with hg_thread_free. */
hg_status hg_thread_current(hg_thread *thread, hg_error *error);

/* Waits until the calling thread is woken by such a handle, `limit_ns` at most, UINT64_MAX for ever.
 * Returns at once if that happened since the last time: nothing else takes a waking away, and several
 * before it are one. May return without a reason.
 * Threads: own. Signals: no. Errors: none. Free: nothing. */
void hg_park(uint64_t limit_ns);

/* Wakes it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_unpark(hg_thread thread, hg_error *error);

/* Frees the handle.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_thread_free(hg_thread thread, hg_error *error);

/* What a timer does when it expires. */
enum {
    HG_ACTION_NOTHING = 0,   /* for a timer that is slept on */
    HG_ACTION_WAKE = 1,      /* wakes `thread` from hg_park */
    HG_ACTION_SEND = 2,      /* sends `tag` and the time to `port` */
    HG_ACTION_IMMEDIATE = 3, /* calls `call` on the engine's thread: it must not block or take long */
    HG_ACTION_DEFERRED = 4,  /* calls it on the thread of `class_`, never twice at the same time */
    HG_ACTION_FAULT = 5      /* faults `watched` */
};

/* May arm, cancel, terminate and free its own timer. */
typedef void (*hg_expire_fn)(const hg_expiration *expiration, void *user);

/* All zero is HG_ACTION_NOTHING. Fields that its kind does not name are not read, but `release` is always
 * called. */
typedef struct hg_action {
    uint32_t kind; /* HG_ACTION_* */
    uint32_t reserved;
    uint64_t tag;
    hg_port port;
    hg_thread thread;
    hg_class class_;
    hg_watched watched;
    hg_expire_fn call;
    void *user;
    hg_release_fn release;
} hg_action;

/* All zero follows CLOCK_MONOTONIC, on the engines in turn. */
typedef struct hg_timer_settings {
    uint32_t base;      /* HG_BASE_* */
    bool expire_on_set; /* expires at once when its clock is set, rather than following it */
    bool on_engine;     /* `engine`, from 0, serves it */
    uint8_t reserved[2];
    uint32_t engine;
    uint32_t reserved_too;
} hg_timer_settings;

/* When a timer expires. */
typedef struct hg_arm {
    int64_t expiry_ns; /* a time of the timer's clock; with `relative` a length from now */
    int64_t period_ns; /* time from each scheduled expiry to the next; 0 for once. Below 100 us expiries are
                          served one by one only as long as the engine keeps up; else they are overruns */
    int64_t slack_ns;  /* how much later it may expire, to share a wake-up with others */
    bool relative;
    bool has_priority; /* else it is the real-time priority of the thread that arms */
    uint8_t priority;  /* which of several deferred actions comes first */
    uint8_t reserved[5];
} hg_arm;

/* Once, at a time of the timer's clock.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_arm hg_arm_at(int64_t ns)
{
    hg_arm arm = { 0, 0, 0, false, false, 0, { 0, 0, 0, 0, 0 } };
    arm.expiry_ns = ns;
    return arm;
}

/* Once, at this distance from now.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_arm hg_arm_after(int64_t length_ns)
{
    hg_arm arm = hg_arm_at(length_ns);
    arm.relative = true;
    return arm;
}

/* Periodic: first after `period_ns` from now, then every `period_ns`. Arming a timer with a period of 0 or less
 * fails with HG_INVALID.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline hg_arm hg_arm_every(int64_t period_ns)
{
    hg_arm arm = hg_arm_after(period_ns > 0 ? period_ns : 0);
    /* 0 would be once: INT64_MIN stands for a period of nothing. */
    arm.period_ns = period_ns != 0 ? period_ns : INT64_MIN;
    return arm;
}

typedef struct hg_timer_status {
    int64_t next_ns;   /* on its clock; 0 if it is not armed */
    uint64_t fired;    /* actions that ran, and sleeps that ended in time */
    uint64_t overruns; /* expiries without an action of their own */
    bool armed;
    bool busy; /* its action waits for its thread, or runs */
    bool terminated;
    uint8_t reserved[5];
} hg_timer_status;

/* Makes a timer, not armed. `settings` and `action` may be NULL.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE for any handle; HG_INVALID; HG_EXHAUSTED; HG_FORKED;
 * HG_TERMINATED if the owner was. Free: the timer, with hg_timer_free; `user` of the action is released by
 * its `release`. */
hg_status hg_timer_new(hg_owner owner, const hg_timer_settings *settings, const hg_action *action,
                       hg_timer *timer, hg_error *error);

/* Arms it, in place of whatever it was armed for. Takes no lock, does not allocate.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_INVALID, HG_TERMINATED, HG_BUSY if four threads
 * do so at the same moment, HG_FORKED. Free: nothing. */
hg_status hg_timer_arm(hg_timer timer, const hg_arm *arm, hg_error *error);

/* How much is cancelled. */
enum {
    HG_CANCEL_ALL = 0,    /* it is disarmed */
    HG_CANCEL_CURRENT = 1 /* a periodic timer's next expiry only; it stays armed, in phase */
};

/* Cancels. `cancelled`, which may be NULL, is whether there was something to cancel: of an expiry and a
 * cancelling exactly one wins. An action that runs is not held up.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_TERMINATED, HG_INVALID, HG_FORKED. Free:
 * nothing. */
hg_status hg_timer_cancel(hg_timer timer, uint32_t which, bool *cancelled, hg_error *error);

/* Sleeps on it: it is armed for that, and to cancel, arm or terminate it ends the sleep.
 * Threads: any, one at a time. Signals: no. Errors: HG_NULL, HG_STALE, HG_CANCELLED, HG_TERMINATED,
 * HG_CLOCK_SET, HG_INVALID, HG_FORKED; HG_BUSY if another thread sleeps on it. Free: nothing. */
hg_status hg_timer_sleep_until(hg_timer timer, int64_t at_ns, hg_error *error);
hg_status hg_timer_sleep_for(hg_timer timer, int64_t length_ns, hg_error *error);

/* What it is doing.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_FORKED. Free: nothing. */
hg_status hg_timer_look(hg_timer timer, hg_timer_status *status, hg_error *error);

/* Terminates it: when this returns no action of it runs, and none will; but in its own action it returns at
 * once, and that is the last. Two actions that terminate each other's timers wait for ever.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_FORKED. Free: nothing. */
hg_status hg_timer_terminate(hg_timer timer, hg_error *error);

/* The same, and frees the handle.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_FORKED, HG_BUSY while another call on it goes
 * on. Free: nothing. */
hg_status hg_timer_free(hg_timer timer, hg_error *error);

/* Reads the calling thread's real-time priority anew, for timers that it arms from now on: 1 to 99, 100 for
 * a deadline thread, else 0. To be called when its policy has changed.
 * Threads: own. Signals: no. Errors: none. Free: nothing. */
uint32_t hg_refresh_priority(void);

/* ---- Periodic threads ---------------------------------------------------------------------- */

typedef struct hg_periodic {
    uint64_t handle;
} hg_periodic;

/* What happens to releases that pass while a job is running. */
enum {
    HG_OVERRUN_SKIP = 0,     /* they are lost, the phase stays */
    HG_OVERRUN_CATCH_UP = 1, /* every one is run, late */
    HG_OVERRUN_DELAY = 2     /* the grid moves: the thread drifts */
};

/* A job that is complete. */
typedef struct hg_completed {
    uint64_t number; /* jobs before it */
    uint64_t release_ns;
    uint64_t started_ns;
    uint64_t deadline_ns;
    uint64_t completed_ns;
    uint64_t cost_ns;  /* CPU time */
    uint64_t lost;     /* releases that were lost by it */
    uint64_t moved_ns; /* by how much the grid moved */
    bool late;         /* its release had passed when the job before was complete */
    bool overrun;      /* it ran at the next release */
    bool missed;
    bool cost_overrun;
    uint8_t reserved[4];
} hg_completed;

/* A job that runs: valid until its body returns, in its thread only. */
typedef struct hg_job {
    uint64_t number;
    uint64_t release_ns;
    uint64_t started_ns; /* never before its release */
    uint64_t deadline_ns;
    uint64_t lost_before;
    bool late;
    bool has_previous;
    uint8_t reserved[6];
    hg_completed previous;
    void *inner; /* the library's */
} hg_job;

/* Runs once a period, on the periodic thread. Whether there is to be another job. */
typedef bool (*hg_body_fn)(hg_job *job, void *user);

/* Receives a job, on the periodic thread, after it: must not block. */
typedef void (*hg_completed_fn)(const hg_completed *job, void *user);

/* All zero but the period is usual. What it points to is copied, but for `stop_on`. Times and lengths are at
 * most INT64_MAX: HG_INVALID beyond. */
typedef struct hg_periodic_settings {
    const char *name;     /* NULL for "periodic"; the kernel shows 15 bytes */
    uint64_t period_ns;   /* or */
    uint32_t hertz;       /* releases a second, exact in the long run */
    uint32_t on_overrun;  /* HG_OVERRUN_* */
    uint64_t deadline_ns; /* after the release; 0 for the period */
    uint64_t phase_ns;    /* from the epoch to the first release, below the period */
    uint64_t budget_ns;   /* CPU time of a job; 0 without */
    uint64_t epoch_ns;    /* where the grid begins; 0 for the start */
    hg_scheduling scheduling;
    const uint32_t *cpus; /* that it may use */
    size_t cpu_count;     /* 0 for those of the starter */
    const hg_sleep_settings *waiting; /* NULL for in the kernel only */
    hg_interrupt *stop_on;      /* stops it, too; is set when the thread is stopped or freed, and so stops
                                   all that share it. Stays until it is freed. May be NULL */
    hg_completed_fn on_miss;          /* called after a job that missed its deadline. May be NULL */
    hg_completed_fn on_cost_overrun;  /* called after a job that used more than its budget */
    hg_fault_fn on_fault; /* called when a deadline passes, on a thread of its own, also where this one does
                             not get to run (but for HG_STRENGTH_SUSPEND). May be NULL */
    hg_watch_settings watch;     /* with on_fault: how the thread is watched */
    hg_handler_settings handler; /* with on_fault: how that thread runs */
    bool watch_budget;           /* on_fault is called also when the budget is used up */
    uint8_t reserved[7];
} hg_periodic_settings;

typedef struct hg_distribution {
    uint64_t count;
    uint64_t min_ns;
    uint64_t mean_ns;
    uint64_t p50_ns; /* quantiles are at most 1/32 too high */
    uint64_t p99_ns;
    uint64_t p999_ns;
    uint64_t max_ns;
} hg_distribution;

typedef struct hg_periodic_statistics {
    uint64_t releases; /* jobs started */
    uint64_t jobs;     /* jobs complete */
    uint64_t misses;
    uint64_t overruns; /* complete after the next release */
    uint64_t late;     /* started late, with HG_OVERRUN_CATCH_UP */
    uint64_t lost;     /* periods without a job */
    uint64_t drift_ns; /* with HG_OVERRUN_DELAY */
    uint64_t cost_overruns;
    uint64_t cpu_ns;
    hg_distribution latency;  /* from release to start */
    hg_distribution response; /* from release to completion */
} hg_periodic_statistics;

/* Starts a thread that calls `body` once a period. When this returns it has its CPUs and its policy. `user`
 * goes to all of its call-backs.
 * Threads: any. Signals: no. Errors: HG_NULL; HG_INVALID; HG_PERMISSION (the text names the command that grants
 * it); HG_EXHAUSTED; HG_BUSY if no bandwidth of the deadline class remains, or the signal of `watch` is
 * taken; HG_OS. Free: the thread, with hg_periodic_free; `user` is released by `release`. */
hg_status hg_periodic_start(const hg_periodic_settings *settings, hg_body_fn body, void *user,
                            hg_release_fn release, hg_periodic *periodic, hg_error *error);

/* What the thread does first, with `user`: to open a device, to touch memory. Returns whether the thread continues. */
typedef bool (*hg_start_fn)(void *user);

/* Starts a thread that calls `on_start` once, when it has its CPUs and its policy and before the first
 * release; the grid starts after that, unless `epoch_ns` says where. This waits for it. If it returns false
 * there is no thread. `on_start` may be NULL.
 * Threads: any. Signals: no. Errors: as hg_periodic_start; HG_START_FAILED if `on_start` returned false.
 * Free: the thread, with hg_periodic_free; `user` is released by `release`. */
hg_status hg_periodic_start_with(const hg_periodic_settings *settings, hg_start_fn on_start, hg_body_fn body,
                                 void *user, hg_release_fn release, hg_periodic *periodic,
                                 hg_error *error);

/* Asks it to stop: its wait ends at once, a job that runs is finished.
 * Threads: any. Signals: safe. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_periodic_stop(hg_periodic periodic);

/* Why it ended. */
enum {
    HG_PERIODIC_STOPPED = 0,
    HG_PERIODIC_BY_ITSELF = 1, /* its body said so */
    HG_PERIODIC_BY_VERDICT = 2 /* on_fault said so */
};

/* Waits for its end; `ended` may be NULL. The handle stays.
 * Threads: any but its own. Signals: no. Errors: HG_NULL, HG_STALE; HG_INVALID the second time;
 * HG_WRONG_THREAD from its body, its other call-backs, on_fault among them, or `release`; HG_FORKED. Free:
 * nothing. */
hg_status hg_periodic_join(hg_periodic periodic, uint32_t *ended, hg_error *error);

/* What it did so far, also afterwards. Never delays it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_periodic_look(hg_periodic periodic, hg_periodic_statistics *statistics, hg_error *error);

/* The kernel's number of it, as chrt takes it; 0 for none.
 * Threads: any. Signals: no. Errors: none. Free: nothing. */
uint32_t hg_periodic_id(hg_periodic periodic);

/* Stops it, waits for its end, and frees it.
 * Threads: any but its own. Signals: no. Errors: HG_NULL, HG_STALE; HG_WRONG_THREAD as hg_periodic_join,
 * and then it goes on; HG_BUSY while another thread waits for it. Free: nothing. */
hg_status hg_periodic_free(hg_periodic periodic, hg_error *error);

typedef struct hg_standing {
    int64_t until_deadline_ns; /* negative if it has passed */
    int64_t budget_left_ns;    /* negative if it is overrun; INT64_MAX without one */
} hg_standing;

/* The remaining time and budget of the job: a read of the clock, and with a budget a system call.
 * Threads: the job's. Signals: no. Errors: HG_NULL, HG_STALE if it does not run in this thread. Free:
 * nothing. */
hg_status hg_job_check(const hg_job *job, hg_standing *standing, hg_error *error);

/* Whether the thread is asked to stop: a long job may want to end early.
 * Threads: the job's. Signals: no. Errors: none. Free: nothing. */
bool hg_job_is_stopping(const hg_job *job);

/* Moves the grid by `by_ns`, later or (negative) earlier, by less than a period in all: what is more is held there.
 * All releases after this job's, so that the loop may follow the clock of a device.
 * Threads: the job's. Signals: no. Errors: HG_NULL, HG_STALE if it does not run in this thread. Free:
 * nothing. */
hg_status hg_job_shift(const hg_job *job, int64_t by_ns, hg_error *error);

/* Pauses within the job. `slept` may be NULL.
 * Threads: the job's. Signals: no. Errors: HG_NULL, HG_STALE if it does not run in this thread;
 * HG_INTERRUPTED if the thread is stopped. Free: nothing. */
hg_status hg_job_sleep_until(const hg_job *job, uint64_t deadline_ns, hg_slept *slept, hg_error *error);

/* ---- The recorder, for a loop of one's own ------------------------------------------------- */

/* A loop that is measured: an audio callback, a robot's control. It belongs to the thread that started it:
 * HG_WRONG_THREAD from others. Marks may come in any order; none of them allocates, locks or waits. */
typedef struct hg_loop {
    uint64_t handle;
} hg_loop;

/* What was measured of it. */
typedef struct hg_recording {
    uint64_t handle;
} hg_recording;

/* All zero but the period is usual. Lengths are at most INT64_MAX: HG_INVALID beyond. */
typedef struct hg_loop_spec {
    const char *name; /* NULL for "loop" */
    uint64_t period_ns;
    uint64_t deadline_ns; /* after the time at which a period was due; 0 for the period */
    uint64_t gap_ns;      /* two marks further apart are a gap; 0 leaves that to what the kernel says */
    uint64_t records;     /* room for intervals, 24 bytes each; 0 for a run's default */
    uint64_t jobs;        /* periods that are stored one by one, 32 bytes each; 0 with a folder: up to 100000 */
    bool ring;            /* a full buffer keeps the newest */
    uint8_t reserved[7];
    const char *folder; /* that keeps the run, for `hourglass show`, `report`, `diff`; it must not exist
                           before. NULL for none. Copied */
} hg_loop_spec;

typedef struct hg_deadlines {
    uint64_t hit;       /* finished in time */
    uint64_t missed;    /* started, not finished in time */
    uint64_t lost;      /* never started, because an earlier one was still running */
    uint64_t completed; /* finished at all */
} hg_deadlines;

typedef struct hg_recording_summary {
    uint64_t received_ns; /* time that the thread was seen to run */
    uint64_t wall_ns;     /* from the first mark to the end */
    uint64_t epoch_ns;  /* its zero, on CLOCK_MONOTONIC */
    uint64_t intervals; /* all of them */
    uint64_t dropped;   /* of those, how many found no room */
    uint64_t gaps;
    uint64_t gap_total_ns;
    uint64_t gap_p50_ns; /* half of the gaps are not longer */
    uint64_t gap_p99_ns;
    uint64_t gap_p999_ns;
    uint64_t gap_max_ns;
    uint64_t migrations; /* times that two intervals in a row ran on different CPUs */
    hg_deadlines deadlines;
    uint64_t rate_error_ppb; /* bound on the relative error of all lengths */
} hg_recording_summary;

/* Why the interval before ended. */
enum {
    HG_ONSET_START = 0, /* there was none */
    HG_ONSET_GAP = 1,
    HG_ONSET_WAIT = 2, /* the thread waited for its period */
    HG_ONSET_YIELD = 3,
    HG_ONSET_MIGRATION = 4,
    HG_ONSET_LATE = 5 /* the period was due, and the thread did not run yet */
};

typedef struct hg_interval {
    int64_t start_ns; /* from the recording's zero */
    int64_t end_ns;
    uint32_t cpu;
    uint32_t onset; /* HG_ONSET_* */
} hg_interval;

/* Prepares the recording, in some 30 ms, and starts to measure. CPUs and policy are the caller's, and
 * should be set before the first period; they are read at its start, and then once a second. Until
 * the end a thread samples the occupants of the CPU, on CPUs that the loop may not use, if there are any. The folder is
 * created by this call, so that hg_loop_finish does not fail for its name.
 * Threads: any: the loop is that one's. Signals: no. Errors: HG_NULL; HG_INVALID, also for a folder that
 * exists, whose place does not, or whose name is empty; HG_UNSUPPORTED; HG_EXHAUSTED if memory is short;
 * HG_PERMISSION and HG_OS for the folder. Free: the loop, with hg_loop_finish. */
hg_status hg_loop_start(const hg_loop_spec *spec, hg_loop *own_loop, hg_error *error);

/* A period begins, and was due now; one that has not ended, ends.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED. Free:
 * nothing. */
hg_status hg_loop_begin(hg_loop own_loop);

/* The same for one that was due at a time: its deadline counts from there.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED. Free:
 * nothing. */
hg_status hg_loop_begin_due(hg_loop own_loop, uint64_t due_ns);

/* Within a period: makes known that the thread runs.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED. Free:
 * nothing. */
hg_status hg_loop_check(hg_loop own_loop);

/* The period is done.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED. Free:
 * nothing. */
hg_status hg_loop_end(hg_loop own_loop);

/* What was counted so far.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED. Free:
 * nothing. */
hg_status hg_loop_deadlines(hg_loop own_loop, hg_deadlines *deadlines, hg_error *error);

/* Ends measuring, writes the folder if there is to be one, and frees the loop.
 * Threads: the loop's. Signals: no. Errors: HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED, HG_EXHAUSTED;
 * HG_OS if the folder cannot be written: the recording is made all the same. Free: the recording, with
 * hg_recording_free. */
hg_status hg_loop_finish(hg_loop own_loop, hg_recording *recording, hg_error *error);

/* It in numbers.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_recording_look(hg_recording recording, hg_recording_summary *found, hg_error *error);

/* Its intervals from number `first` on, as many as there is room for; `count` is how many there are from
 * there. `intervals` may be NULL without room.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_recording_intervals(hg_recording recording, uint64_t first, hg_interval *intervals,
                                 size_t room, size_t *count, hg_error *error);

/* Frees it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_BUSY during another call on it. Free:
 * nothing. */
hg_status hg_recording_free(hg_recording recording, hg_error *error);

/* ---- Reservations -------------------------------------------------------------------------- */

/* A request for processor time: a budget in every period. */
typedef struct hg_request {
    uint64_t budget_ns; /* above 0, and not above the deadline */
    uint64_t period_ns;
    uint64_t deadline_ns; /* from the begin of the period, not above it; 0 for the period */
    bool soft;            /* unreserved time may be used too; else the budget is also the limit */
    bool pinned;          /* the work is to stay on `cpu` */
    uint8_t reserved[2];
    uint32_t cpu;
} hg_request;

/* A reservation in force. */
typedef struct hg_reservation {
    uint64_t handle;
} hg_reservation;

/* What it delivered. */
typedef struct hg_supply {
    uint64_t periods;       /* that are complete and known: an ordinary thread samples them, and misses some while
                               the machine is busy */
    uint64_t missed;        /* of those, budgets that were needed and not delivered by the deadline */
    uint64_t overruns;      /* periods in which more than the budget was needed */
    uint64_t delivered_min_ns; /* the minimum of a period in which all was needed; 0 without any */
    uint64_t delivered_p50_ns; /* and the median */
    uint64_t throttled_ns;  /* how long the thread was stopped because its budget was used up; 0 if not known */
} hg_supply;

/* Whether the kernel's deadline class would take it, as far as can be seen. Reserves nothing. `thread` is
 * the kernel's number of one, 0 for the calling thread. Unless this program's real user ID is root's, the real, effective and
 * saved user ID of that thread must equal it, whatever capabilities the program has (HG_PERMISSION).
 * Threads: any. Signals: no. Errors: HG_NULL, HG_INVALID, HG_PERMISSION, HG_UNSUPPORTED, HG_OS; HG_BUSY if
 * other reservations have the bandwidth; HG_STALE if there is no such thread. The text names the obstacle and
 * the command that removes it. Free: nothing. */
hg_status hg_reserve_check(uint32_t thread, const hg_request *request, hg_error *error);

/* Puts a thread under a reservation of the kernel's deadline class, which enforces it whatever other threads do.
 * `thread` is as for hg_reserve_check. What it forks has no share of it.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_INVALID, HG_PERMISSION, HG_UNSUPPORTED, HG_OS; HG_BUSY if
 * other reservations have the bandwidth; HG_STALE if there is no such thread; HG_EXHAUSTED. Free: the reservation,
 * with hg_reserve_release. */
hg_status hg_reserve_thread(uint32_t thread, const hg_request *request, hg_reservation *reservation,
                            hg_error *error);

/* What it delivered until now.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_reserve_look(hg_reservation reservation, hg_supply *supply, hg_error *error);

/* Ends it, and gives the thread back the policy that it had, also if it has ended.
 * Threads: any. Signals: no. Errors: HG_NULL, HG_STALE, HG_PERMISSION, HG_OS, HG_BUSY while another call on
 * it goes on. Free: nothing. */
hg_status hg_reserve_release(hg_reservation reservation, hg_error *error);

/* ---- Progress ------------------------------------------------------------------------------ */

/* Reports the progress of a program's reserved work: `hourglass reserve --smt monitor` lets co-runners on
 * its core run as long as the work cannot miss its deadline. Without a monitor a report changes nothing. One
 * thread at a time reports by one of these; it is not to be copied, or touched by anything but
 * hg_progress and hg_progress_*. */
typedef struct hg_progress_page {
    uint64_t *words;
    uint64_t job;
    uint64_t handle;
    bool over;
    uint8_t reserved[7];
} hg_progress_page;

/* Opens the page that was handed down to the program: the descriptor that HOURGLASS_PROGRESS names, which it inherited,
 * or, if that was closed, the path in HOURGLASS_PROGRESS_PATH. Without these it makes one of the program's own. HG_PAGE
 * says which was closed, or what else is wrong. The descriptor stays open; the page cannot shrink under the program.
 * Threads: any: the page is that one's. Signals: no. Errors: HG_NULL, HG_PAGE, HG_OTHER_VERSION,
 * HG_EXHAUSTED. Free: the page, with hg_progress_close. */
hg_status hg_progress_open(hg_progress_page *page, hg_error *error);

/* Closes it; telling does nothing from then on.
 * Threads: one at a time. Signals: no. Errors: HG_NULL, HG_STALE. Free: nothing. */
hg_status hg_progress_close(hg_progress_page *page, hg_error *error);

/* Words of a page of progress. */
enum {
    HG_PROGRESS_FIRST_ = 2,
    HG_PROGRESS_PERIOD_ = 3,
    HG_PROGRESS_JOB_ = 8,
    HG_PROGRESS_TOTAL_ = 9,
    HG_PROGRESS_DONE_ = 10,
    HG_PROGRESS_BEGUN_ = 11
};

/* A job starts: nothing of it is done. The job before has ended, whatever it reported. Reads the clock:
 * periods whose start was estimated then start with the jobs.
 * Threads: one at a time. Signals: no. Errors: none. Free: nothing. */
static inline void hg_progress_begin(hg_progress_page *page)
{
    if (page && page->words) {
        page->over = false;
        page->job++;
        /* Odd while neither the old nor the new progress is meant. */
        __atomic_store_n(page->words + HG_PROGRESS_JOB_, page->job * 2 - 1, __ATOMIC_RELAXED);
        __atomic_store_n(page->words + HG_PROGRESS_DONE_, 0, __ATOMIC_RELEASE);
        __atomic_store_n(page->words + HG_PROGRESS_BEGUN_, hg_now(), __ATOMIC_RELEASE);
        __atomic_store_n(page->words + HG_PROGRESS_JOB_, page->job * 2, __ATOMIC_RELEASE);
    }
}

/* `done` of `total` is done, in any unit in which equal steps take equal times; `total` itself means that
 * the job is done, and is to be reported of every job, or the next one by hg_progress_begin. `done` must not
 * fall within a job. After the end the next call begins a job. A `total` of 0 says nothing, and changes
 * nothing. Two stores, no system call. Threads: one at a time. Signals: no. Errors: none. Free: nothing. */
static inline void hg_progress(hg_progress_page *page, uint64_t done, uint64_t total)
{
    if (__builtin_expect(!page || !page->words || total == 0, 0)) {
        return;
    }
    if (__builtin_expect(page->over, 0)) {
        hg_progress_begin(page);
    }
    __atomic_store_n(page->words + HG_PROGRESS_TOTAL_, total, __ATOMIC_RELAXED);
    __atomic_store_n(page->words + HG_PROGRESS_DONE_, done, __ATOMIC_RELEASE);
    if (done >= total) {
        page->over = true;
    }
}

/* When the first period after `now` begins, on the grid that is watched; 0 without a grid.
 * Threads: any. Signals: safe. Errors: none. Free: nothing. */
static inline uint64_t hg_progress_next_release(const hg_progress_page *page, uint64_t now)
{
    uint64_t first, period;
    if (!page || !page->words) {
        return 0;
    }
    first = __atomic_load_n(page->words + HG_PROGRESS_FIRST_, __ATOMIC_ACQUIRE);
    period = __atomic_load_n(page->words + HG_PROGRESS_PERIOD_, __ATOMIC_ACQUIRE);
    if (period == 0) {
        return 0;
    }
    return now < first ? first : first + ((now - first) / period + 1) * period;
}

/* ---- What the scheduler did to a span ------------------------------------------------------- */

/*
 *   hg_span span = hg_witness_begin();
 *   handle(request);
 *   hg_loss loss;
 *   if (hg_witness_end(&span, &loss, NULL) == HG_OK) {
 *       printf("%llu ns off the CPU: %s\n", (unsigned long long)loss.off_cpu_most_ns, loss.cause);
 *   }
 *
 * A span in which nothing took the thread away costs some nanoseconds and two reads of a counter, and no system
 * call: the kernel clears a word of the thread when it takes the CPU from it. Where it has no such word (no
 * restartable sequences; Linux 6.19 and later, inside system calls) begin and end ask its counters instead.
 * Spans may nest and overlap.
 */

/* What the inline functions read, of the calling thread. Programs must not use it. */
typedef struct hg_witness_view {
    const uint64_t *named; /* NULL: the functions are called */
    uint64_t name;
    const uint64_t *sums;
} hg_witness_view;

enum { HG_WITNESS_SUMS = 8 };

/* An open span. The caller's own memory; nothing of it is to be freed or changed. */
typedef struct hg_span {
    uint64_t generation; /* 0: none, or ended */
    uint64_t sums[HG_WITNESS_SUMS];
    uint64_t begun;
    uint32_t cpu;
    bool busy; /* may be set before the span ends: it did not wait by itself, so that a wait was a stop */
    bool travelling;
    uint8_t unknown;
    uint8_t reserved; /* 0 */
} hg_span;

/* What a span lost. */
typedef struct hg_loss {
    uint64_t length_ns; /* of the span, at most */
    uint64_t off_cpu_least_ns;
    uint64_t off_cpu_most_ns;
    uint64_t waited_ns;   /* ready, and waiting for a CPU; 0 where the kernel does not count it */
    uint64_t voluntary;   /* switches by its own waits; stops are counted here too */
    uint64_t involuntary; /* switches forced on it; yields are counted here too */
    uint64_t faults;      /* page faults, at most */
    const char *cause;    /* its name in run folders' documents, as "context_switch_involuntary"; the cause that took longest */
    uint32_t confidence_ppm; /* of the cause; 0: unknown */
    uint32_t cpu_before;
    uint32_t cpu_after;
    uint32_t who; /* the occupant of the CPU, by the kernel's thread number; 0 where it is not known */
} hg_loss;

/* Initialises the calling thread's witness. The first begin does so too, but takes that time: some milliseconds
 * for the first of a process, then some microseconds a thread. `view` is for the inline functions.
 * Threads: own. Signals: no. Errors: HG_INVALID in a thread that is about to end. Free: nothing, it goes with its thread. */
hg_status hg_witness_open(hg_witness_view *view, hg_error *error);

/* Begins a span by a call of the kernel. What hg_witness_begin calls.
 * Threads: own. Signals: safe. Errors: HG_INVALID in a thread that is about to end. Free: nothing. */
hg_status hg_witness_begin_call(hg_span *span, hg_error *error);

/* Ends a span by a call of the kernel. What hg_witness_end calls.
 * Threads: own. Signals: safe. Errors: HG_EMPTY, HG_NULL, HG_STALE, HG_WRONG_THREAD, HG_FORKED, HG_BUSY, as
 * hg_witness_end. Free: nothing. */
hg_status hg_witness_end_call(hg_span *span, hg_loss *loss, hg_error *error);

/* Takes a span off its thread: its task waits, or continues in another thread. That time is not the span's.
 * Threads: own. Signals: no. Errors: HG_STALE for a span that was ended or detached. Free: nothing. */
hg_status hg_witness_detach(hg_span *span, hg_error *error);

/* A detached span continues in the calling thread.
 * Threads: own. Signals: no. Errors: HG_STALE for a span that is not detached, HG_INVALID in a thread that is about
 * to end. Free: nothing. */
hg_status hg_witness_attach(hg_span *span, hg_error *error);

static __thread hg_witness_view hg_witness_own_ __attribute__((unused));

static inline bool hg_witness_quiet_(const hg_witness_view *own)
{
    return __builtin_expect(own->named && *(const volatile uint64_t *)own->named == own->name, 1);
}

/* A span begins in the calling thread. In a thread that is about to end it is one that was never begun. A signal
 * handler that interrupts another begin or end during a call of the kernel gets a span that is HG_BUSY at its end.
 * The first of a thread is not for a signal handler.
 * Threads: own. Signals: safe. Errors: none. Free: nothing. */
static inline hg_span hg_witness_begin(void)
{
    hg_span span = { 0, { 0 }, 0, 0, false, false, 0, 0 };
#if defined(__x86_64__) || defined(__aarch64__)
    const hg_witness_view *own = &hg_witness_own_;
    if (hg_witness_quiet_(own)) {
        span.generation = own->sums[0];
        __asm__ volatile("" ::: "memory"); /* a signal handler may change them */
        __builtin_memcpy(span.sums, own->sums + 1, sizeof span.sums);
        __asm__ volatile("" ::: "memory");
        if (__builtin_expect(span.generation == own->sums[0], 1)) {
            /* The number of the CPU is the word before, in the kernel's struct rseq. */
            span.cpu = *((const volatile uint32_t *)(const void *)own->named - 1);
            span.begun = hg_counter_();
            return span;
        }
    }
    if (!own->named) {
        (void)hg_witness_open(&hg_witness_own_, NULL);
    }
#endif
    (void)hg_witness_begin_call(&span, NULL);
    return span;
}

/* A span ends. HG_EMPTY: nothing took the thread away. HG_OK: `loss` says what did.
 * A span that fails has ended (a detached one, too; not for HG_NULL), and `loss` is not changed.
 * Threads: own. Signals: safe. Errors: HG_EMPTY; HG_STALE for a span that was ended or is detached; HG_WRONG_THREAD for
 * one of another thread, or from before a fork after which others began; HG_FORKED for one from before a fork;
 * HG_BUSY as at hg_witness_begin. Free: nothing. */
static inline hg_status hg_witness_end(hg_span *span, hg_loss *loss, hg_error *error)
{
#if defined(__x86_64__) || defined(__aarch64__)
    const hg_witness_view *own = &hg_witness_own_;
    if (span && loss && hg_witness_quiet_(own) && own->sums[0] == span->generation && !span->travelling) {
        span->generation = 0;
        if (error) {
            error->kind = HG_EMPTY;
            error->os_errno = 0;
            error->text[0] = 0;
        }
        return HG_EMPTY;
    }
#endif
    return hg_witness_end_call(span, loss, error);
}

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
