// SPDX-License-Identifier: Apache-2.0
/* The sessions that a server serves, by handle: uses of a session, which a close waits for,
 * leases, and the handles that a reset or a loss ended. Lookups share a read lock. */
#include "server/core/sessions.h"

#include "base/blocking_private.h"
#include "base/wait_private.h"
#include "ready/backoff.h"
#include "ready/lease_look_private.h"

#include <malloc.h>
#include <string.h>

/* After this many closed sessions, memory is returned to the system. */
#define MANY_LEFT 32
/* Number of handles kept per generation of ends, because a master behind a gateway may be reset any
 * number of times. */
#define MOST_ENDED 10000

struct _MusterSessions {
  MusterClock *clock;   /* (owned) */
  MusterLimits *limits; /* (not owned) */
  GRWLock lock;
  GHashTable *table; /* (owned) (element-type utf8 MusterServed) guarded by lock; the keys are the
                        values' */
  /* (owned) (element-type utf8 utf8) why the handles were ended by the last reset or loss, and by
   * the one before; guarded by lock */
  GHashTable *ended, *ended_before;
  guint n_left; /* since the memory was last trimmed; guarded by lock */
};

static MusterServed *
served_new (char *handle, MusterSession *session, gint64 timeout_us, gint64 lease_us)
{
  MusterServed *self = g_new0 (MusterServed, 1);
  g_atomic_ref_count_init (&self->refs);
  self->handle = handle;
  self->session = g_object_ref (session);
  self->timeout_us = timeout_us;
  self->lease_us = lease_us;
  g_mutex_init (&self->extending);
  g_mutex_init (&self->lock);
  g_cond_init (&self->settled);
  self->callables = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  return self;
}

void
muster_served_task_free (MusterServedTask *self)
{
  if (self == NULL)
    return;
  g_free (self->task);
  g_free (self->who);
  g_free (self->model);
  g_free (self);
}

void
muster_served_set_task (MusterServed *self, MusterServedTask *task)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterServedTask) before = g_steal_pointer (&self->task);
  self->task = task;
  g_mutex_unlock (&self->lock);
}

MusterServed *
muster_served_ref (MusterServed *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_served_unref (MusterServed *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->callables);
  muster_served_task_free (self->task);
  g_mutex_clear (&self->extending);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->settled);
  g_object_unref (self->session);
  g_free (self->handle);
  g_free (self->why_lost);
  g_free (self);
}

GError *
muster_served_lost_error (MusterServed *self)
{
  return g_atomic_int_get (&self->is_closed) && self->why_lost != NULL
             ? g_error_new (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session %s was lost: %s",
                            self->handle, self->why_lost)
             : NULL;
}

void
muster_served_add_callable (MusterServed *self, gint64 handle, MusterServedCallable callable)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->callables, g_memdup2 (&handle, sizeof handle),
                       g_memdup2 (&callable, sizeof callable));
  self->last_callable = MAX (self->last_callable, handle);
  g_mutex_unlock (&self->lock);
}

gboolean
muster_served_find_callable (MusterServed *self, gint64 handle, MusterServedCallable *callable,
                             GError **error)
{
  g_mutex_lock (&self->lock);
  const MusterServedCallable *found = g_hash_table_lookup (self->callables, &handle);
  if (found != NULL)
    *callable = *found;
  const gint64 last = self->last_callable;
  g_mutex_unlock (&self->lock);
  if (found == NULL)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: %" G_GINT64_FORMAT,
                 handle > last ? "No such callable handle"
                               : "Attempted to run callable after handle was released",
                 handle);
  return found != NULL;
}

gboolean
muster_served_remove_callable (MusterServed *self, gint64 handle)
{
  g_mutex_lock (&self->lock);
  gboolean found = g_hash_table_remove (self->callables, &handle);
  g_mutex_unlock (&self->lock);
  return found;
}

void
muster_served_end_call (MusterServed *self, gint64 now_us)
{
  __atomic_store_n (&self->last_us, now_us, __ATOMIC_RELAXED);
  g_atomic_int_add (&self->n_uses, -1);
}

void
muster_served_end_lasting_call (MusterServed *self, gint64 now_us)
{
  muster_served_end_call (self, now_us);
  if (!g_atomic_int_dec_and_test (&self->n_lasting))
    return;
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->settled);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_settled (gpointer data)
{
  MusterServed *self = data;
  return g_atomic_int_get (&self->n_lasting) == 0;
}

gboolean
muster_served_settle (MusterServed *self, gint64 deadline_us, GCancellable *cancellable)
{
  if (is_settled (self))
    return TRUE;
  muster_about_to_block ();
  g_mutex_lock (&self->lock);
  const gboolean done =
      muster_wait_for (&self->settled, &self->lock, is_settled, self, deadline_us, cancellable);
  g_mutex_unlock (&self->lock);
  return done;
}

MusterSessions *
muster_sessions_new (MusterClock *clock, MusterLimits *limits)
{
  MusterSessions *self = g_new0 (MusterSessions, 1);
  self->clock = g_object_ref (clock);
  self->limits = limits;
  g_rw_lock_init (&self->lock);
  self->table =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify)muster_served_unref);
  self->ended = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->ended_before = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return self;
}

void
muster_sessions_free (MusterSessions *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->table);
  g_hash_table_unref (self->ended);
  g_hash_table_unref (self->ended_before);
  g_rw_lock_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

static guint32
random_word (MusterClock *clock)
{
  return (guint32)(muster_clock_random (clock) * 4294967296.0);
}

/* Call with the writer's lock held. */
static MusterServed *
put (MusterSessions *self, char *handle, MusterSession *session, guint64 graph_bytes,
     gint64 timeout_us, gint64 lease_us)
{
  MusterServed *served = served_new (handle, session, timeout_us, lease_us);
  served->graph_bytes = graph_bytes;
  served->last_us = served->since_us = muster_clock_now_us (self->clock);
  g_hash_table_insert (self->table, served->handle, muster_served_ref (served));
  return served;
}

MusterServed *
muster_sessions_add (MusterSessions *self, MusterSession *session, guint64 graph_bytes,
                     gint64 timeout_us, gint64 lease_us)
{
  g_autofree char *handle = NULL;
  g_rw_lock_writer_lock (&self->lock);
  do {
    g_free (handle);
    handle = g_strdup_printf ("%08x%08x", random_word (self->clock), random_word (self->clock));
  } while (g_hash_table_contains (self->table, handle));
  MusterServed *served =
      put (self, g_steal_pointer (&handle), session, graph_bytes, timeout_us, lease_us);
  g_rw_lock_writer_unlock (&self->lock);
  return served;
}

MusterServed *
muster_sessions_enter (MusterSessions *self, const char *handle, MusterSession *session,
                       guint64 graph_bytes, gint64 lease_us, GError **error)
{
  MusterServed *served = NULL;
  g_rw_lock_writer_lock (&self->lock);
  if (!g_hash_table_contains (self->table, handle))
    served = put (self, g_strdup (handle), session, graph_bytes, 0, lease_us);
  g_rw_lock_writer_unlock (&self->lock);
  if (served == NULL)
    muster_fail (error, MUSTER_ERROR_INTERNAL,
                 "The master has given the handle '%s' to two sessions", handle);
  return served;
}

/* (transfer full) (nullable) */
static char *
why_ended (MusterSessions *self, const char *handle)
{
  g_rw_lock_reader_lock (&self->lock);
  const char *why = g_hash_table_lookup (self->ended, handle);
  char *copy = g_strdup (why != NULL ? why : g_hash_table_lookup (self->ended_before, handle));
  g_rw_lock_reader_unlock (&self->lock);
  return copy;
}

static MusterServed *
unless_unknown (MusterSessions *self, MusterServed *served, const char *handle, GError **error)
{
  g_autofree char *why = served == NULL ? why_ended (self, handle) : NULL;
  if (why != NULL)
    muster_fail (error, MUSTER_ERROR_ABORTED, "Session %s was %s", handle, why);
  else if (served == NULL)
    muster_fail (error, MUSTER_ERROR_ABORTED,
                 "Session %s is not found. Possibly, this master has restarted.", handle);
  return served;
}

typedef enum { LOOK, USE, LAST } Purpose;

/* Finds a session and begins a use under the lock, so that the collector of expired sessions
 * sees the use, or the session isn't found any more. The same holds for a lasting use and whoever
 * takes the session. */
static MusterServed *
find_session (MusterSessions *self, const char *handle, Purpose purpose)
{
  g_rw_lock_reader_lock (&self->lock);
  MusterServed *served = g_hash_table_lookup (self->table, handle);
  if (served != NULL)
    muster_served_ref (served);
  if (served != NULL && purpose != LOOK)
    g_atomic_int_inc (&served->n_uses);
  if (served != NULL && purpose == LAST)
    g_atomic_int_inc (&served->n_lasting);
  g_rw_lock_reader_unlock (&self->lock);
  return served;
}

MusterServed *
muster_sessions_find (MusterSessions *self, const char *handle, GError **error)
{
  return unless_unknown (self, find_session (self, handle, LOOK), handle, error);
}

gboolean
muster_sessions_is_positioned (MusterSessions *self, const char *handle, gint64 callable)
{
  MusterServedCallable found = {0};
  g_autoptr (MusterServed) served = find_session (self, handle, LOOK);
  return served != NULL && muster_served_find_callable (served, callable, &found, NULL) &&
         found.is_positioned;
}

MusterServed *
muster_sessions_begin_call (MusterSessions *self, const char *handle, GError **error)
{
  return unless_unknown (self, find_session (self, handle, USE), handle, error);
}

MusterServed *
muster_sessions_begin_lasting_call (MusterSessions *self, const char *handle, GError **error)
{
  return unless_unknown (self, find_session (self, handle, LAST), handle, error);
}

gboolean
muster_sessions_renew (MusterSessions *self, const char *handle, gint64 now_us)
{
  g_autoptr (MusterServed) served = find_session (self, handle, LOOK);
  if (served != NULL)
    __atomic_store_n (&served->last_us, now_us, __ATOMIC_RELAXED);
  return served != NULL;
}

/* Updates the counts after a session has been removed from the table. */
static void
leave_table (MusterSessions *self, MusterServed *served)
{
  g_atomic_int_set (&served->is_closed, TRUE);
  self->n_left++;
  muster_limits_release (self->limits, MUSTER_LIMIT_SESSIONS);
}

MusterServed *
muster_sessions_take (MusterSessions *self, const char *handle, GError **error)
{
  gpointer served = NULL;
  g_rw_lock_writer_lock (&self->lock);
  if (g_hash_table_steal_extended (self->table, handle, NULL, &served))
    leave_table (self, served);
  g_rw_lock_writer_unlock (&self->lock);
  return unless_unknown (self, served, handle, error);
}

/* Forgets the handles of the end before the last. Call with the writer's lock held. */
static void
begin_end (MusterSessions *self)
{
  GHashTable *oldest = self->ended_before;
  self->ended_before = self->ended;
  self->ended = oldest;
  g_hash_table_remove_all (oldest);
}

/* why_lost NULL: by a reset. */
static void
note_end (MusterSessions *self, MusterServed *served, const char *why_lost)
{
  g_hash_table_insert (self->ended, g_strdup (served->handle),
                       why_lost != NULL ? g_strdup_printf ("lost: %s", why_lost)
                                        : g_strdup ("ended " MUSTER_BY_RESET));
  served->why_lost = g_strdup (why_lost);
  g_atomic_int_set (&served->was_reset, why_lost == NULL);
}

MusterServed *
muster_sessions_take_reset (MusterSessions *self, const char *handle)
{
  gpointer served = NULL;
  g_rw_lock_writer_lock (&self->lock);
  if (g_hash_table_steal_extended (self->table, handle, NULL, &served)) {
    if (g_hash_table_size (self->ended) >= MOST_ENDED)
      begin_end (self);
    note_end (self, served, NULL);
    leave_table (self, served);
  }
  g_rw_lock_writer_unlock (&self->lock);
  return served;
}

void
muster_sessions_trim (MusterSessions *self)
{
  g_rw_lock_writer_lock (&self->lock);
  gboolean is_time = g_hash_table_size (self->table) == 0 && self->n_left >= MANY_LEFT;
  if (is_time)
    self->n_left = 0;
  g_rw_lock_writer_unlock (&self->lock);
  if (is_time)
    (void)malloc_trim (0); /* it is irrelevant whether memory was returned */
}

/* why_lost NULL: by a reset. */
static GPtrArray *
take_before (MusterSessions *self, gint64 before_us, const char *why_lost)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_served_unref);
  GHashTableIter iter;
  gpointer value;
  g_rw_lock_writer_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    if (((MusterServed *)value)->since_us >= before_us)
      continue;
    if (all->len == 0)
      begin_end (self);
    note_end (self, value, why_lost);
    leave_table (self, value);
    g_ptr_array_add (all, value);
    g_hash_table_iter_steal (&iter);
  }
  g_rw_lock_writer_unlock (&self->lock);
  return all;
}

GPtrArray *
muster_sessions_take_lost (MusterSessions *self, gint64 before_us, const char *why)
{
  return take_before (self, before_us, why);
}

GPtrArray *
muster_sessions_take_all (MusterSessions *self)
{
  return take_before (self, MUSTER_WAIT_FOREVER, NULL);
}

void
muster_sessions_unsay_reset (MusterSessions *self, GPtrArray *taken)
{
  g_rw_lock_writer_lock (&self->lock);
  for (guint i = 0; i < taken->len; i++) {
    MusterServed *served = taken->pdata[i];
    g_atomic_int_set (&served->was_reset, FALSE);
    if (!g_hash_table_remove (self->ended, served->handle))
      g_hash_table_remove (self->ended_before, served->handle);
  }
  g_rw_lock_writer_unlock (&self->lock);
}

/* Returns when to examine a session's lease again; MUSTER_WAIT_FOREVER: it has none. */
static gint64
look_at_lease (MusterServed *served, gint64 now_us)
{
  if (served->lease_us == 0)
    return MUSTER_WAIT_FOREVER;
  gboolean is_used = g_atomic_int_get (&served->n_uses) > 0;
  gint64 last_us = is_used ? now_us : __atomic_load_n (&served->last_us, __ATOMIC_RELAXED);
  return muster_lease_look (served->lease_us, last_us, now_us, &served->doubted_us);
}

static gint64
next_look (MusterSessions *self, gint64 now_us)
{
  GHashTableIter iter;
  gpointer value;
  gint64 next_us = MUSTER_WAIT_FOREVER;
  g_rw_lock_reader_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    next_us = MIN (next_us, look_at_lease (value, now_us));
  g_rw_lock_reader_unlock (&self->lock);
  return next_us;
}

gint64
muster_sessions_take_expired (MusterSessions *self, gint64 now_us, GPtrArray *expired)
{
  gint64 next_us =
      next_look (self, now_us); /* usually none has expired, and readers aren't blocked */
  if (next_us > now_us)
    return next_us;
  GHashTableIter iter;
  gpointer value;
  next_us = MUSTER_WAIT_FOREVER;
  g_rw_lock_writer_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    gint64 look_us = look_at_lease (value, now_us);
    if (look_us > now_us) {
      next_us = MIN (next_us, look_us);
    } else {
      leave_table (self, value);
      g_ptr_array_add (expired, value);
      g_hash_table_iter_steal (&iter);
    }
  }
  g_rw_lock_writer_unlock (&self->lock);
  return next_us;
}

guint
muster_sessions_size (MusterSessions *self)
{
  g_rw_lock_reader_lock (&self->lock);
  guint size = g_hash_table_size (self->table);
  g_rw_lock_reader_unlock (&self->lock);
  return size;
}

static MusterServedTask *
copy_task (MusterServed *served)
{
  MusterServedTask *copy = NULL;
  g_mutex_lock (&served->lock);
  const MusterServedTask *task = served->task;
  if (task != NULL) {
    copy = g_new (MusterServedTask, 1);
    *copy = (MusterServedTask){g_strdup (task->task), g_strdup (task->who), g_strdup (task->model),
                               task->since_us};
  }
  g_mutex_unlock (&served->lock);
  return copy;
}

static int
compare_tasks (gconstpointer a, gconstpointer b)
{
  const MusterServedTask *x = *(MusterServedTask *const *)a, *y = *(MusterServedTask *const *)b;
  const int by_model = strcmp (x->model, y->model);
  return by_model != 0 ? by_model : strcmp (x->task, y->task);
}

GPtrArray *
muster_sessions_tasks (MusterSessions *self, guint max)
{
  GPtrArray *tasks = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_served_task_free);
  GHashTableIter iter;
  gpointer served;
  g_rw_lock_reader_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->table);
  while (tasks->len < max && g_hash_table_iter_next (&iter, NULL, &served)) {
    MusterServedTask *task = copy_task (served);
    if (task != NULL)
      g_ptr_array_add (tasks, task);
  }
  g_rw_lock_reader_unlock (&self->lock);
  g_ptr_array_sort (tasks, compare_tasks);
  return tasks;
}
