// SPDX-License-Identifier: Apache-2.0
#include "saver/consistent_cut_private.h"

#include "base/log_private.h"
#include "saver/saver_private.h"

/* If the model changes during each of these tries, some task doesn't hold. */
#define MOST_TRIES 5

/* Repeats the work until the model didn't change during it. */
static gboolean
work_quiesced (MusterSaver *self, MusterSession *session, MusterSaverWork work, gpointer data,
               gint64 *step, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < MOST_TRIES; i++) {
    gboolean is_consistent = FALSE;
    if (!self->consistent_cut.quiesce (session, deadline_us, cancellable, self->consistent_cut_data,
                                       error) ||
        !work (data, error) ||
        (step != NULL && self->consistent_cut.number != NULL &&
         !self->consistent_cut.number (session, step, deadline_us, cancellable,
                                       self->consistent_cut_data, error)) ||
        !self->consistent_cut.check (session, &is_consistent, deadline_us, cancellable,
                                     self->consistent_cut_data, error))
      return FALSE;
    if (is_consistent)
      return TRUE;
    muster_log (G_LOG_LEVEL_INFO, "save", "MESSAGE",
                "the model changed during the save; saving again");
  }
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "the model changed during each of %d saves: a task doesn't pause for saves",
                      MOST_TRIES);
}

gboolean
muster_saver_work_in_consistent_cut (MusterSaver *self, MusterSession *session,
                                     MusterSaverWork work, gpointer data, gint64 *step,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (self->consistent_cut.quiesce == NULL)
    return work (data, error);
  gboolean done = work_quiesced (self, session, work, data, step, deadline_us, cancellable, error);
  if (!self->keeps_cut)
    self->consistent_cut.release (session, self->consistent_cut_data);
  return done;
}

gboolean
muster_saver_check_cut (MusterSaver *self, MusterSession *session, gboolean *is_unchanged,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  *is_unchanged = TRUE;
  return self->consistent_cut.check == NULL ||
         self->consistent_cut.check (session, is_unchanged, deadline_us, cancellable,
                                     self->consistent_cut_data, error);
}

void
muster_saver_keep_cut (MusterSaver *self, gboolean keeps)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));
  self->keeps_cut = keeps;
}

void
muster_saver_release_cut (MusterSaver *self, MusterSession *session)
{
  g_return_if_fail (MUSTER_IS_SAVER (self) && session != NULL);
  self->keeps_cut = FALSE;
  if (self->consistent_cut.release != NULL)
    self->consistent_cut.release (session, self->consistent_cut_data);
}
