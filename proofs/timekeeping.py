"""Lemmas about the arithmetic of crates/clock/src/timekeeping, proven over all integers by Z3.

Each lemma has the names of the Rust functions that it is about, and a test there (tests/lemmas.rs) that holds what it
assumes and claims against these functions, by random numbers. It is proven when Z3 finds its negation unsatisfiable;
anything else (a counterexample, or no answer in time) fails. What a lemma assumes of its numbers is asserted by the
code in debug builds, or checked by it. `cargo xtask python` runs this (package `z3-solver` of PyPI).

Divisions are written as quotient and remainder, powers of two as one positive number P. Products that a proof needs are
given as hints (`scaled`, `equal`), which are proven by themselves: that keeps nonlinear arithmetic within what Z3 decides.
"""

import sys

from z3 import And, Implies, Int, Not, Or, Real, Solver, unsat, sat

MILLISECONDS = 60_000
UNIT = 2**32
# line::UNORDERED_NS
UNORDERED = 40
failed = []
count = 0


def divided(name, dividend, divisor):
    """A quotient, rounded down, and what makes it one (dividend and divisor not negative)."""
    q, r = Int(name), Int(name + "_rest")
    return q, And(dividend == q * divisor + r, r >= 0, r < divisor)


def proven(claim):
    """Whether nothing speaks against a claim."""
    solver = Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(Not(claim))
    return solver.check() == unsat


def scaled(factor, less, more):
    """Hint: what is ordered stays so when both sides are multiplied by what is not negative."""
    return Implies(And(factor >= 0, less <= more), factor * less <= factor * more)


def equal(left, right):
    """Hint: two forms of one product."""
    assert proven(left == right), f"{left} and {right} are not the same"
    return left == right


def lemma(name, claim, *assumed):
    """Proves `claim` from `assumed`; also that what is assumed can be met at all."""
    global count
    count += 1
    for what, expected, extra in (("not proven", unsat, Not(claim)), ("assumes what cannot be", sat, True)):
        solver = Solver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*assumed)
        solver.add(extra)
        found = solver.check()
        if found != expected:
            failed.append(name)
            print(f"{name}: {what} ({found})")
            if found == sat:
                print(solver.model())
            return
    print(f"{name}: proven")


def slopes():
    m, P, N, T, d = Int("mult"), Int("P"), Int("ns"), Int("ticks"), Int("d")
    sized = And(P >= 1, N >= 1, T >= 1, m >= 1, d >= 0)
    half, is_half = divided("half", T, 2)
    mult, is_mult = divided("m", N * P + half, T)
    lemma(
        "Slope::between: mult is off by half a unit at most",
        And(2 * (mult * T - N * P) <= T, 2 * (N * P - mult * T) <= T),
        sized, is_half, is_mult,
    )
    # The distance that a read computes, against d * N / T; `off` is mult * T - N * P, as above.
    off, q, r = Int("off"), Int("q"), Int("r")
    lemma(
        "Slope::ns_floor: within a nanosecond and half a unit a tick of the truth",
        And(2 * q * P * T <= 2 * d * N * P + d * T, 2 * (q + 1) * P * T > 2 * d * N * P - d * T),
        sized, m * T == N * P + off, 2 * off <= T, -2 * off <= T, d * m == q * P + r, r >= 0, r < P,
        scaled(d, 2 * off, T), scaled(d, -2 * off, T), scaled(T, 0, r), scaled(T, r, P - 1),
        Implies(m * T == N * P + off, d * (m * T) == d * (N * P) + d * off),
        Implies(d * m == q * P + r, (d * m) * T == (q * P) * T + r * T),
    )
    n = Int("n")
    t, is_t = divided("t", n * P, m)
    back, is_back = divided("back", t * m, P)
    lemma(
        "Slope::ticks_floor, ns_within: ticks that begin within n ns last n ns at most",
        back <= n,
        sized, n >= 0, is_t, is_back,
    )
    corrected, d2 = Int("corrected"), Int("d2")
    lemma(
        "over_counter: the line ends within its interval, whichever way it is corrected",
        And(d * m <= n * P, d * corrected <= n * P),
        sized, n >= 0, corrected >= 1, is_t, t * m <= n * P, d2 * corrected <= n * P, d2 >= 0, d <= t, d <= d2,
        scaled(m, d, t), scaled(corrected, d, d2),
    )
    t2, is_t2 = divided("t2", (n + 1) * P, m)
    lemma("Slope::ticks_floor: more time has no fewer ticks", t <= t2, sized, n >= 0, is_t, is_t2)


def shares():
    part, whole, length = Int("part"), Int("whole"), Int("length")
    rel = Int("rel")
    ceiling = And(rel * whole >= part * UNIT, (rel - 1) * whole < part * UNIT)
    share, is_share = divided("share", length * rel, UNIT)
    lemma("share_of: never less than the product", (share + 1) * UNIT >= length * rel, length >= 0, rel >= 0, is_share)
    lemma(
        "share_of(length, relative(part, whole)): never less than length * part / whole",
        (share + 1) * whole >= length * part,
        part >= 0, whole >= 1, length >= 0, rel >= 0, ceiling, is_share,
        scaled(length, part * UNIT, rel * whole), equal((length * rel) * whole, length * (rel * whole)),
        scaled(whole, length * rel, (share + 1) * UNIT),
    )
    a, b, c = Int("own"), Int("theirs"), Int("D")
    own, is_own = divided("o", a, c)
    apart = Int("apart")
    lemma(
        "Slope::distance: what the wider shift gives up is allowed for",
        And((a - b * c) <= (apart + 1) * c, (b * c - a) <= (apart + 1) * c),
        a >= 1, b >= 1, c >= 1, is_own, Or(apart == own - b, apart == b - own), apart >= 0,
    )


def corrections():
    m, P, d = Int("mult"), Int("P"), Int("d")
    error, over = Int("error"), Int("over")
    lost, is_lost = divided("lost", error, 16)
    taken = error - lost
    lemma("absorbed: never more than the error", And(taken >= 0, taken <= error), error >= 0, is_lost)
    wanted, is_wanted = divided("wanted", m * taken, over)
    limit, is_limit = divided("limit", m, 16)
    w = Int("w")
    lemma(
        "Slope::slower: within a sixteenth, so that time goes on",
        And(16 * (m - w) >= 15 * m, 16 * (m + w) <= 17 * m),
        m >= 1, is_limit, w >= 0, w <= limit,
    )
    lemma(
        "Slope::slower: what is absorbed within the interval is no more than the error",
        d * w <= taken * P,
        m >= 1, P >= 1, d >= 0, over >= 1, error >= 0, is_lost, is_wanted, w >= 0, w <= wanted,
        # `d` ticks pass within the interval at the slope that is corrected.
        d * m <= over * P,
        scaled(over, w, wanted), scaled(d, w * over, m * taken), scaled(taken, d * m, over * P),
        equal(d * (m * taken), taken * (d * m)), equal(d * (w * over), over * (d * w)),
        scaled(over, taken * P + 1, d * w),
    )


def anchors():
    """line_fit::over_counter, at the line's base. All lengths in 2^-32 ns; the truth leaves the measured slope by `e` units of
    2^-32 of the measured length at most."""
    est, since, half, e = Int("estimate"), Int("since"), Int("half"), Int("e")
    # The reading was taken `shift` before or after the middle of the bracket, as measured; the clock had passed by
    # `fraction` what it said. Both lengths at the measured slope.
    shift, drift, fraction = Int("shift"), Int("drift"), Int("fraction")
    since_ns, is_since = divided("since_ns", since, UNIT)
    half_ns, is_half = divided("half_ns", half, UNIT)
    share, is_share = divided("share", (since_ns + half_ns + 2) * e, UNIT)
    truth = since + shift + drift + fraction
    error_ns = (half_ns + 1) + (share + 1) + 2
    lemma(
        "anchor_error_ns: the reference is no further from what the anchor and the slope say",
        And(truth - est <= error_ns * UNIT, est - truth <= error_ns * UNIT),
        since >= 0, half >= 0, e >= 0, e <= UNIT, is_since, is_half, is_share, est == since_ns * UNIT,
        shift <= half, -shift <= half, fraction >= 0, fraction <= UNIT,
        drift * UNIT <= (since + half) * e, -drift * UNIT <= (since + half) * e,
        scaled(e, since + half, (since_ns + half_ns + 2) * UNIT),
        equal((since_ns + half_ns + 2) * UNIT * e, (since_ns + half_ns + 2) * e * UNIT),
    )


def os_lines():
    P, w, d, ahead, taken = Int("P"), Int("w"), Int("d"), Int("ahead"), Int("taken")
    q, is_q = divided("q", d * (P - w), P)
    lemma(
        "over_os: ahead until its end, and no further than at its base",
        And(ahead + q - d >= 0, ahead + q - d <= ahead),
        P >= 1, w >= 0, w <= P, d >= 0, taken >= 0, taken <= ahead, is_q, d * w <= taken * P,
        scaled(P, taken + q + 1, d), scaled(d, P - w, P), scaled(P, d + 1, q), equal(d * (P - w), d * P - d * w),
    )


def guards():
    n, t = Real("n"), Real("t")
    a0, a1, at = Real("apart_0"), Real("apart_1"), Real("apart_t")
    r0, r1, rt = Real("room_0"), Real("room_1"), Real("room_t")
    c0, c1, ct = Real("computed_0"), Real("computed_1"), Real("computed_t")
    b0, b1, bt = Real("bound_0"), Real("bound_1"), Real("bound_t")
    near = [And(c - a < 1, a - c < 1) for c, a in ((c0, a0), (c1, a1), (ct, at))]
    near += [And(b - r <= 1, r - b < 1) for b, r in ((b0, r0), (b1, r1), (bt, rt))]
    within = [And(c + 2 <= b - UNORDERED, -c + 2 <= b - UNORDERED) for c, b in ((c0, b0), (c1, b1))]
    lemma(
        "ReferenceLine::confirms: what holds at both ends holds between, but for two roundings",
        And(ct <= bt - UNORDERED + 2, -ct <= bt - UNORDERED + 2),
        *near, *within, n > 0, t >= 0, t <= n,
        # Lines and bound are straight, but for the roundings of what is computed.
        at * n == a0 * (n - t) + a1 * t, rt * n == r0 * (n - t) + r1 * t,
        scaled(n - t, a0, r0 - UNORDERED), scaled(n - t, -a0, r0 - UNORDERED),
        scaled(t, a1, r1 - UNORDERED), scaled(t, -a1, r1 - UNORDERED),
        Implies(at > rt - UNORDERED, at * n > (rt - UNORDERED) * n),
        Implies(-at > rt - UNORDERED, -at * n > (rt - UNORDERED) * n),
    )


def growth():
    """line_fit::over_counter. The line is `ahead` of the truth at its base and absorbs that; the truth leaves the measured
    slope by `e` units of 2^-32 of the *measured* length at most. All lengths in units of 2^-32 ns."""
    ahead, absorbed, drift, length, e = Int("ahead"), Int("absorbed"), Int("drift"), Int("length"), Int("e")
    # `length` is what passes at the measured slope, `shown` what passes on the line: a reader has no other.
    shown = length - absorbed
    apart = ahead - absorbed + drift
    bound = (ahead * UNIT) + shown * e
    common = [e >= 0, e <= UNIT, length >= 0, absorbed >= 0, absorbed <= ahead, absorbed <= length,
              drift * UNIT <= length * e, -drift * UNIT <= length * e]
    product = [equal(shown * e, length * e - absorbed * e), scaled(absorbed, e, UNIT), scaled(absorbed, 0, e)]
    lemma("over_counter: ahead of the truth, the bound holds for a growth of at most one", apart * UNIT <= bound, *common, *product)
    lemma("over_counter: ahead, and slower than the truth", -apart * UNIT <= bound, *common, *product)
    behind = -ahead
    shown = length + absorbed
    apart = behind + absorbed + drift
    bound = (ahead * UNIT) + shown * e
    product = [equal(shown * e, length * e + absorbed * e), scaled(absorbed, 0, e)]
    lemma("over_counter: behind the truth", And(apart * UNIT <= bound, -apart * UNIT <= bound), *common, *product)


def ends():
    growth_, elapsed, base, room = Int("growth"), Int("elapsed"), Int("base"), Int("room")
    longest, is_longest = divided("longest", 2**62, growth_)
    lemma(
        "ClockLine::held: no product of a read overflows, and no time",
        And(elapsed * growth_ < 2**63, base + elapsed < 2**63),
        growth_ >= 1, is_longest, elapsed >= 0, base >= 0, room >= 0,
        room <= longest, Or(room <= 2**63 - 1 - base, room == 0), base < 2**63, elapsed <= room,
        scaled(growth_, elapsed, longest),
    )
    bound = Int("bound")
    q, is_q = divided("q", elapsed * growth_, UNIT)
    lemma(
        "ClockLine::bound_within: never less than the bound and its growth",
        (bound + q + 1) * UNIT >= bound * UNIT + elapsed * growth_,
        bound >= 0, elapsed >= 0, growth_ >= 0, is_q,
    )


def samples():
    before, width, truth, grain = Int("before"), Int("width"), Int("truth"), Int("grain")
    half, is_half = divided("half", width, 2)
    lemma(
        "sample::bracket: the middle is within half the width",
        And(truth - (before + half) <= width - half + grain, (before + half) - truth <= width - half + grain),
        before >= 0, width >= 0, grain >= 0, is_half, truth >= before, truth <= before + width,
    )
    T, h, N, Tt, Nt = Int("ticks"), Int("h"), Int("ns"), Int("true_ticks"), Int("true_ns")
    # Rates are N / T. The brackets' error h is both half-widths, in ticks. What is certain of the rates:
    off = Int("off")
    certain = [T >= 1, N >= 1, Nt >= 1, Tt >= 1, h >= 0, Tt - T <= h, T - Tt <= h, Nt - N <= 1, N - Nt <= 1]
    lemma(
        "sample::bracket: rates differ by h * ns + ticks at most",
        And(Nt * T - N * Tt <= h * N + T, N * Tt - Nt * T <= h * N + T),
        *certain,
        equal(N * Tt - Nt * T, N * (Tt - T) - (Nt - N) * T), scaled(N, Tt - T, h), scaled(N, T - Tt, h),
        scaled(T, Nt - N, 1), scaled(T, N - Nt, 1),
    )
    by_ticks, by_clock = Int("by_ticks"), Int("by_clock")
    times, is_times = divided("times", h, N)
    lemma(
        "SlopeFit::between: the error is enough, relative to the measured slope",
        off * UNIT <= (by_ticks + by_clock) * (N * Tt),
        *certain, off <= h * N + T, h < T, is_times,
        by_ticks >= 0, by_clock >= 0, by_ticks * (T - h) >= (h + times + 1) * UNIT, by_clock * N >= UNIT,
        equal((by_ticks + by_clock) * (N * Tt), N * (by_ticks * Tt) + Tt * (by_clock * N)),
        scaled(by_ticks, T - h, Tt), scaled(N, (h + times + 1) * UNIT, by_ticks * Tt), scaled(Tt, UNIT, by_clock * N),
    )


def rules():
    factor, less, more = Int("factor"), Int("less"), Int("more")
    lemma("scaled, which hints are made of", scaled(factor, less, more))


for part in (rules, slopes, shares, corrections, anchors, os_lines, guards, growth, ends, samples):
    part()
print(f"{count - len(failed)} of {count} lemmas proven")
sys.exit(1 if failed else 0)
