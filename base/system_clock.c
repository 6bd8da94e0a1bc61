// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/error.h"
#include "base/wait_private.h"

#include <pthread.h>
#include <unistd.h>

/* The one place that reads the machine's clock and sleeps. */

#define MUSTER_TYPE_SYSTEM_CLOCK (muster_system_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterSystemClock, muster_system_clock, MUSTER, SYSTEM_CLOCK, GObject)

struct _MusterSystemClock {
  GObject parent;
};

static void muster_system_clock_iface_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterSystemClock, muster_system_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK,
                                                      muster_system_clock_iface_init))

MusterClock *
muster_system_clock (void)
{
  static MusterClock *clock;
  if (g_once_init_enter (&clock))
    g_once_init_leave (&clock, g_object_new (MUSTER_TYPE_SYSTEM_CLOCK, NULL));
  return clock;
}

static gint64
system_now_us (MusterClock *self G_GNUC_UNUSED)
{
  return g_get_monotonic_time ();
}

static gint64 start_us;

__attribute__ ((constructor)) static void
record_start (void)
{
  start_us = g_get_monotonic_time ();
}

#define FARTHEST_US (10 * 365 * 24 * 3600 * MUSTER_SECOND)

/* Returns NULL if it can be an instant. */
static char *
describe_wrong_deadline (gint64 deadline_us)
{
  if (deadline_us < 0)
    return g_strdup ("below 0");
  if (deadline_us > 0 && deadline_us < start_us) {
    g_autofree char *duration = muster_format_duration (deadline_us);
    return g_strdup_printf ("a duration of %s", duration);
  }
  if (deadline_us != MUSTER_WAIT_FOREVER && deadline_us - g_get_monotonic_time () > FARTHEST_US)
    return g_strdup ("more than ten years ahead, as a time of g_get_real_time () is");
  return NULL;
}

gboolean
muster_deadline_check (gint64 deadline_us, GError **error)
{
  g_autofree char *wrong = describe_wrong_deadline (deadline_us);
  return wrong == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid deadline_us '%" G_GINT64_FORMAT "': it is %s, not an instant of "
                      "g_get_monotonic_time () (use muster_deadline_after () or "
                      "MUSTER_WAIT_FOREVER)",
                      deadline_us, wrong);
}

static gint64
system_wall_us (MusterClock *self G_GNUC_UNUSED)
{
  return g_get_real_time ();
}

/* Numbers of the kernel's, since nobody can guess those: handles and numbers of members are drawn,
 * too. As many at a time as it gives in one call: each served step draws one. */
#define N_DRAWN 32

typedef struct {
  guint64 numbers[N_DRAWN];
  guint n_left;
  guint n_forks; /* when they were drawn: a child doesn't use its parent's */
} Drawn;

static _Thread_local Drawn drawn;
static guint n_forks; /* atomic */

static void
note_fork (void)
{
  __atomic_fetch_add (&n_forks, 1, __ATOMIC_RELAXED);
}

static gboolean
draw (void)
{
  static gsize once;
  if (g_once_init_enter (&once)) {
    (void)pthread_atfork (NULL, NULL, note_fork); /* fails only for lack of memory */
    g_once_init_leave (&once, 1);
  }
  if (getentropy (drawn.numbers, sizeof drawn.numbers) != 0)
    return FALSE;
  drawn.n_left = N_DRAWN;
  drawn.n_forks = __atomic_load_n (&n_forks, __ATOMIC_RELAXED);
  return TRUE;
}

static double
system_random (MusterClock *self G_GNUC_UNUSED)
{
  const gboolean is_left =
      drawn.n_left > 0 && drawn.n_forks == __atomic_load_n (&n_forks, __ATOMIC_RELAXED);
  if (!is_left && !draw ())
    return g_random_double ();
  guint64 *number = &drawn.numbers[--drawn.n_left];
  const guint64 bits = *number;
  *number = 0;
  return (double)(bits >> 11) * 0x1.0p-53;
}

static gboolean
is_never_done (gpointer data G_GNUC_UNUSED)
{
  return FALSE;
}

static gboolean
system_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (wake_us <= system_now_us (self))
    return TRUE;
  GMutex lock;
  GCond woken;
  g_mutex_init (&lock);
  g_cond_init (&woken);
  g_mutex_lock (&lock);
  (void)muster_wait_for (&woken, &lock, is_never_done, NULL, wake_us, cancellable);
  g_mutex_unlock (&lock);
  g_cond_clear (&woken);
  g_mutex_clear (&lock);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static void
muster_system_clock_iface_init (MusterClockInterface *iface)
{
  iface->now_us = system_now_us;
  iface->wall_us = system_wall_us;
  iface->wait_until = system_wait_until;
  iface->random = system_random;
}

static void
muster_system_clock_class_init (MusterSystemClockClass *klass G_GNUC_UNUSED)
{
}

static void
muster_system_clock_init (MusterSystemClock *self G_GNUC_UNUSED)
{
}
