// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/hooks_private.h"

static const MusterSaverListener *
at (const GArray *self, guint i)
{
  return &g_array_index (self, MusterSaverListener, i);
}

void
muster_saver_listeners_begin (const GArray *self)
{
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->begin != NULL)
      at (self, i)->begin (at (self, i)->user_data);
}

void
muster_saver_listeners_before_save (const GArray *self, MusterSession *session, gint64 step,
                                    gint64 deadline_us, GCancellable *cancellable)
{
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->before_save != NULL)
      at (self, i)->before_save (session, step, deadline_us, cancellable, at (self, i)->user_data);
}

gboolean
muster_saver_listeners_saved (const GArray *self, const MusterSaved *saved)
{
  gboolean is_heard = FALSE;
  for (guint i = 0; i < self->len; i++) {
    if (at (self, i)->saved == NULL)
      continue;
    at (self, i)->saved (saved, at (self, i)->user_data);
    is_heard = TRUE;
  }
  return is_heard;
}

void
muster_saver_listeners_failed (const GArray *self, const MusterFailedSave *failed)
{
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->failed != NULL)
      at (self, i)->failed (failed, at (self, i)->user_data);
}

void
muster_saver_listeners_copied (const GArray *self, const MusterTierCopied *copied)
{
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->copied != NULL)
      at (self, i)->copied (copied, at (self, i)->user_data);
}

gboolean
muster_saver_listeners_after_save (const GArray *self, MusterSession *session,
                                   const MusterSaved *saved, gint64 deadline_us,
                                   GCancellable *cancellable)
{
  gboolean wants_stop = FALSE;
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->after_save != NULL &&
        !at (self, i)->after_save (session, saved->step, saved->prefix, deadline_us, cancellable,
                                   at (self, i)->user_data))
      wants_stop = TRUE;
  return wants_stop;
}

void
muster_saver_listeners_end (const GArray *self, MusterSession *session, gint64 step,
                            gint64 deadline_us, GCancellable *cancellable)
{
  for (guint i = 0; i < self->len; i++)
    if (at (self, i)->end != NULL)
      at (self, i)->end (session, step, deadline_us, cancellable, at (self, i)->user_data);
}
