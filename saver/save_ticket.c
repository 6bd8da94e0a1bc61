// SPDX-License-Identifier: Apache-2.0
/* One save, as its caller sees it: state, path, result, cancellation, and functions to call at its
 * end. */
#include "base/require_private.h"
#include "saver/save_ticket_private.h"

/* A function to call when the save has ended. */
typedef struct {
  MusterSaveFinished func;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
} Caller;

MusterSaveTicket *
muster_save_ticket_ref (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_atomic_ref_count_inc (&self->refs);
  return self;
}

/* Frees the callers (nullable) and their data, without calling them. */
static void
release_callers (GArray *callers)
{
  for (guint i = 0; callers != NULL && i < callers->len; i++) {
    const Caller *caller = &g_array_index (callers, Caller, i);
    if (caller->destroy != NULL)
      caller->destroy (caller->user_data);
  }
  g_clear_pointer (&callers, g_array_unref);
}

void
muster_save_ticket_unref (MusterSaveTicket *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_save_ticket_end (self, MUSTER_SAVE_FAILED, 0);
  release_callers (self->callers);
  g_slist_free_full (self->paths, g_free);
  g_object_unref (self->cancellable);
  g_strfreev (self->left_out);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free (self->why);
  g_clear_error (&self->error);
  muster_saved_clear (&self->saved);
  g_cond_clear (&self->changed);
  muster_save_log_unref (self->log);
  g_free (self);
}

const char *
muster_save_ticket_path (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->log->lock);
  const char *path = self->paths->data;
  g_mutex_unlock (&self->log->lock);
  return path;
}

gint64
muster_save_ticket_step (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, 0);

  g_mutex_lock (&self->log->lock);
  const gint64 step = self->step;
  g_mutex_unlock (&self->log->lock);
  return step;
}

MusterSaveState
muster_save_ticket_state (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, 0);

  g_mutex_lock (&self->log->lock);
  const MusterSaveState state = self->told;
  g_mutex_unlock (&self->log->lock);
  return state;
}

char *
muster_save_ticket_why (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->log->lock);
  char *why = g_strdup (self->why);
  g_mutex_unlock (&self->log->lock);
  return why;
}

const MusterSaved *
muster_save_ticket_saved (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->log->lock);
  const MusterSaved *saved = self->has_saved ? &self->saved : NULL;
  g_mutex_unlock (&self->log->lock);
  return saved;
}

const char *const *
muster_save_ticket_left_out (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return (const char *const *)self->left_out;
}

void
muster_save_ticket_cancel (MusterSaveTicket *self)
{
  g_return_if_fail (self != NULL);
  g_cancellable_cancel (self->cancellable);
}

GCancellable *
muster_save_ticket_cancellable (MusterSaveTicket *self)
{
  return self->cancellable;
}

void
muster_save_ticket_set_left_out (MusterSaveTicket *self, char **names)
{
  g_strfreev (self->left_out);
  self->left_out = names;
}

void
muster_save_ticket_tell (MusterSaveTicket *self, MusterSaveState state)
{
  g_mutex_lock (&self->log->lock);
  self->told = state;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->log->lock);
}

void
muster_save_ticket_settle (MusterSaveTicket *self, MusterSaveState state, const char *why,
                           MusterSaved *saved, const GError *error)
{
  muster_save_ticket_end (self, state, 0);
  g_mutex_lock (&self->log->lock);
  self->state = self->told = state;
  self->why = g_strdup (why);
  self->error = error != NULL ? g_error_copy (error) : NULL;
  if (saved != NULL) {
    self->has_saved = TRUE;
    self->saved = *saved;
    *saved = (MusterSaved){0};
  }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->log->lock);
}

void
muster_save_ticket_notify (MusterSaveTicket *self)
{
  g_mutex_lock (&self->log->lock);
  GArray *callers = g_steal_pointer (&self->callers);
  g_mutex_unlock (&self->log->lock);
  for (guint i = 0; callers != NULL && i < callers->len; i++) {
    const Caller *caller = &g_array_index (callers, Caller, i);
    caller->func (self, caller->user_data);
  }
  release_callers (callers);
}

void
muster_save_ticket_when_ended (MusterSaveTicket *self, MusterSaveFinished func, gpointer user_data,
                               GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && func != NULL);

  const Caller caller = {func, user_data, destroy};
  g_mutex_lock (&self->log->lock);
  if (self->callers == NULL)
    self->callers = g_array_new (FALSE, FALSE, sizeof (Caller));
  g_array_append_val (self->callers, caller);
  const gboolean has_ended = self->told >= MUSTER_SAVE_DURABLE;
  g_mutex_unlock (&self->log->lock);
  if (has_ended)
    muster_save_ticket_notify (self);
}

typedef struct {
  MusterSaveTicket *ticket;
  MusterSaveState wanted;
} Waited;

static gboolean
has_come (gpointer data)
{
  const Waited *waited = data;
  return waited->ticket->told >= waited->wanted;
}

gboolean
muster_save_ticket_wait (MusterSaveTicket *self, MusterSaveState state, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  if (self == NULL || state > MUSTER_SAVE_DURABLE)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        self != NULL
                            ? "invalid save state to wait for (use staged, written or durable)"
                            : "no ticket of a save was given");
  Waited waited = {self, state};
  g_autofree char *what = g_strdup_printf ("the save of '%s'", muster_save_ticket_path (self));

  g_mutex_lock (&self->log->lock);
  gboolean come = muster_wait_until_done (&self->log->lock, &self->changed, has_come, &waited, what,
                                          deadline_us, cancellable, error);
  if (come && self->error != NULL) {
    g_propagate_error (error, g_error_copy (self->error));
    come = FALSE;
  }
  g_mutex_unlock (&self->log->lock);
  return come;
}

gboolean
muster_wait_until_done (GMutex *lock, GCond *changed, MusterIsDone is_done, gpointer data,
                        const char *what, gint64 deadline_us, GCancellable *cancellable,
                        GError **error)
{
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  if (muster_wait_for (changed, lock, is_done, data, deadline_us, cancellable))
    return TRUE;
  if (!g_cancellable_set_error_if_cancelled (cancellable, error))
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded: %s wasn't done in time",
                 what);
  return FALSE;
}
