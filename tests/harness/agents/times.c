/* Clocks and sleeping. What they say differs from run to run; how they relate does not. */
#include "agent.h"

static void prepare(void)
{
}

static long milliseconds(clockid_t clock)
{
    struct timespec now;

    if (clock_gettime(clock, &now))
        return -1;
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int near(long one, long other)
{
    return one - other < 1500 && other - one < 1500;
}

SPEAKING(clocks)
{
    struct timespec resolution = {9, 9}, now;
    struct timeval of_day;
    time_t seconds;

    TRY(clock_gettime(CLOCK_MONOTONIC, &now));
    NOTE(now.tv_nsec >= 0 && now.tv_nsec < 1000000000);
    NOTE(near(milliseconds(CLOCK_MONOTONIC), milliseconds(CLOCK_MONOTONIC_COARSE)));
    NOTE(near(milliseconds(CLOCK_MONOTONIC), milliseconds(CLOCK_MONOTONIC_RAW)) >= 0);
    NOTE(near(milliseconds(CLOCK_REALTIME), milliseconds(CLOCK_REALTIME_COARSE)));
    NOTE(milliseconds(CLOCK_BOOTTIME) >= milliseconds(CLOCK_MONOTONIC) - 1);
    TRY(gettimeofday(&of_day, NULL));
    NOTE(of_day.tv_usec >= 0 && of_day.tv_usec < 1000000);
    NOTE(near(of_day.tv_sec * 1000 + of_day.tv_usec / 1000, milliseconds(CLOCK_REALTIME)));
    NOTE(near(time(&seconds) * 1000, milliseconds(CLOCK_REALTIME)));
    NOTE(near(seconds * 1000, milliseconds(CLOCK_REALTIME)));
    TRY(clock_getres(CLOCK_MONOTONIC, &resolution));
    NOTE(resolution.tv_sec);
    NOTE(milliseconds(CLOCK_PROCESS_CPUTIME_ID) >= 0);
    NOTE(milliseconds(CLOCK_THREAD_CPUTIME_ID) >= 0);
    TRY(clock_gettime(99, &now));
}

SPEAKING(never_backwards)
{
    struct timespec before, now;
    int backwards = 0;

    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < 100; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        backwards += now.tv_sec < before.tv_sec || (now.tv_sec == before.tv_sec && now.tv_nsec < before.tv_nsec);
        before = now;
    }
    NOTE(backwards);
}

SPEAKING(spin)
{
    long end = milliseconds(CLOCK_MONOTONIC) + 3;

    while (milliseconds(CLOCK_MONOTONIC) < end)
        ;
    NOTE(1);
}

WAITING(sleeps)
{
    struct timespec until, left = {7, 7};
    long begin = milliseconds(CLOCK_MONOTONIC), real = milliseconds(CLOCK_REALTIME);

    TRY(nanosleep(&(struct timespec) {0, 60000000}, &left));
    NOTE(left.tv_sec);
    NOTE(milliseconds(CLOCK_MONOTONIC) - begin >= 60);
    NOTE(milliseconds(CLOCK_REALTIME) - real >= 59);
    TRY(usleep(40000));
    NOTE(milliseconds(CLOCK_MONOTONIC) - begin >= 100);
    clock_gettime(CLOCK_MONOTONIC, &until);
    TRY(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    TRY(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
    NOTE(milliseconds(CLOCK_MONOTONIC) - begin >= 120);
    TRY(nanosleep(&(struct timespec) {0, 1000000000}, NULL));
}

WAITING(sleep_until_a_time_of_day)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 60000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    TRY(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL));
    NOTE(milliseconds(CLOCK_REALTIME) >= until.tv_sec * 1000 + until.tv_nsec / 1000000);
}
