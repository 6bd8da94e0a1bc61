// SPDX-License-Identifier: Apache-2.0
/* Saves that are cuts: see muster_saver_set_cut (). */
#include "saver/saver_private.h"

/* A model that moves each time has somebody who won't rest. */
#define MOST_TRIES 5

void
muster_saver_set_cut (MusterSaver *self, const MusterSaverCut *cut, gpointer user_data,
                      GDestroyNotify destroy)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));

  muster_saver_clear_cut (self);
  if (cut)
    self->cut = *cut;
  self->cut_data = user_data;
  self->cut_destroy = destroy;
}

void
muster_saver_clear_cut (MusterSaver *self)
{
  if (self->cut_destroy)
    self->cut_destroy (self->cut_data);
  self->cut = (MusterSaverCut){0};
  self->cut_data = NULL;
  self->cut_destroy = NULL;
}

/* Until the model has been at rest all through the work. */
static gboolean
work_at_rest (MusterSaver *self, MusterSession *session, MusterSaverWork work, gpointer data,
              gint64 *step, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < MOST_TRIES; i++) {
    gboolean is_cut = FALSE;
    if (!self->cut.rest (session, deadline_us, cancellable, self->cut_data, error) ||
        !work (data, error) ||
        (step && self->cut.number &&
         !self->cut.number (session, step, deadline_us, cancellable, self->cut_data, error)) ||
        !self->cut.check (session, &is_cut, deadline_us, cancellable, self->cut_data, error))
      return FALSE;
    if (is_cut)
      return TRUE;
    g_info ("The model has moved while it was saved: it is saved again");
  }
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "the model has moved during each of %d saves: some task doesn't wait while it is "
               "told to hold",
               MOST_TRIES);

  return FALSE;
}

gboolean
muster_saver_work_in_cut (MusterSaver *self, MusterSession *session, MusterSaverWork work,
                          gpointer data, gint64 *step, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  if (!self->cut.rest)
    return work (data, error);
  gboolean done = work_at_rest (self, session, work, data, step, deadline_us, cancellable, error);
  self->cut.release (session, self->cut_data);

  return done;
}
