// SPDX-License-Identifier: Apache-2.0
#include "saver/async/save_ticket.h"

#include "base/require_private.h"
#include "base/wait_private.h"
#include "saver/async/save_ticket_private.h"

/* Who is called when the save has ended. */
typedef struct {
  MusterSaveFinished func;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
} Caller;

struct _MusterSaveTicket {
  gatomicrefcount refs;
  char *path; /* (owned) */
  gint64 step;
  GCancellable *cancellable; /* (owned) */
  char **left_out;           /* (owned) (nullable) set before the ticket is shared */
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  MusterSaveState state;
  char *why;       /* (owned) (nullable) */
  GError *error;   /* (owned) (nullable) */
  GArray *callers; /* (owned) (nullable) (element-type Caller) */
  gboolean has_saved;
  MusterSaved saved; /* constant once has_saved is set */
};

MusterSaveTicket *
muster_save_ticket_new (const char *path, gint64 step)
{
  MusterSaveTicket *self = g_new0 (MusterSaveTicket, 1);
  g_atomic_ref_count_init (&self->refs);
  self->path = g_strdup (path);
  self->step = step;
  self->cancellable = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  return self;
}

MusterSaveTicket *
muster_save_ticket_ref (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_atomic_ref_count_inc (&self->refs);
  return self;
}

/* (nullable) Takes them. */
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
  release_callers (self->callers);
  g_free (self->path);
  g_object_unref (self->cancellable);
  g_strfreev (self->left_out);
  g_free (self->why);
  g_clear_error (&self->error);
  muster_saved_clear (&self->saved);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

const char *
muster_save_ticket_path (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->path;
}

gint64
muster_save_ticket_step (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->step;
}

MusterSaveState
muster_save_ticket_state (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, 0);

  g_mutex_lock (&self->lock);
  MusterSaveState state = self->state;
  g_mutex_unlock (&self->lock);
  return state;
}

char *
muster_save_ticket_why (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->lock);
  char *why = g_strdup (self->why);
  g_mutex_unlock (&self->lock);
  return why;
}

const MusterSaved *
muster_save_ticket_saved (MusterSaveTicket *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_mutex_lock (&self->lock);
  const MusterSaved *saved = self->has_saved ? &self->saved : NULL;
  g_mutex_unlock (&self->lock);
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
muster_save_ticket_rename (MusterSaveTicket *self, const char *path, gint64 step)
{
  g_free (self->path);
  self->path = g_strdup (path);
  self->step = step;
}

void
muster_save_ticket_take_saved (MusterSaveTicket *self, MusterSaved *saved)
{
  g_mutex_lock (&self->lock);
  self->saved = *saved;
  self->has_saved = TRUE;
  g_mutex_unlock (&self->lock);
  *saved = (MusterSaved){0};
}

void
muster_save_ticket_set_why (MusterSaveTicket *self, const char *why)
{
  g_mutex_lock (&self->lock);
  g_free (self->why);
  self->why = g_strdup (why);
  g_mutex_unlock (&self->lock);
}

void
muster_save_ticket_advance (MusterSaveTicket *self, MusterSaveState state)
{
  g_mutex_lock (&self->lock);
  self->state = state;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_save_ticket_end (MusterSaveTicket *self, MusterSaveState state, const GError *error)
{
  g_mutex_lock (&self->lock);
  self->state = state;
  g_clear_error (&self->error);
  self->error = g_error_copy (error);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_save_ticket_notify (MusterSaveTicket *self)
{
  g_mutex_lock (&self->lock);
  GArray *callers = g_steal_pointer (&self->callers);
  g_mutex_unlock (&self->lock);
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
  g_mutex_lock (&self->lock);
  if (self->callers == NULL)
    self->callers = g_array_new (FALSE, FALSE, sizeof (Caller));
  g_array_append_val (self->callers, caller);
  const gboolean has_ended = self->state >= MUSTER_SAVE_DURABLE;
  g_mutex_unlock (&self->lock);
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
  return waited->ticket->state >= waited->wanted;
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
  g_autofree char *what = g_strdup_printf ("the save of '%s'", self->path);

  g_mutex_lock (&self->lock);
  gboolean come = muster_wait_until_done (&self->lock, &self->changed, has_come, &waited, what,
                                          deadline_us, cancellable, error);
  if (come && self->error != NULL) {
    g_propagate_error (error, g_error_copy (self->error));
    come = FALSE;
  }
  g_mutex_unlock (&self->lock);
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
