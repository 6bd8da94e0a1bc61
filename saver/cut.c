// SPDX-License-Identifier: Apache-2.0
#include "saver/cut.h"

#include "base/require_private.h"

G_DEFINE_INTERFACE (MusterCut, muster_cut, G_TYPE_OBJECT)

static void
muster_cut_default_init (MusterCutInterface *iface G_GNUC_UNUSED)
{
}

static gboolean
quiesce (MusterSession *session, gint64 deadline_us, GCancellable *cancellable, gpointer cut,
         GError **error)
{
  const MusterCutInterface *iface = MUSTER_CUT_GET_IFACE (cut);
  return iface->quiesce == NULL ||
         muster_require_error (error,
                               iface->quiesce (cut, session, deadline_us, cancellable, error),
                               G_OBJECT_TYPE_NAME (cut), "quiesce");
}

static gboolean
check (MusterSession *session, gboolean *is_consistent, gint64 deadline_us,
       GCancellable *cancellable, gpointer cut, GError **error)
{
  const MusterCutInterface *iface = MUSTER_CUT_GET_IFACE (cut);
  if (iface->check != NULL)
    return muster_require_error (
        error, iface->check (cut, session, is_consistent, deadline_us, cancellable, error),
        G_OBJECT_TYPE_NAME (cut), "check");
  *is_consistent = TRUE;
  return TRUE;
}

static gboolean
number (MusterSession *session, gint64 *step, gint64 deadline_us, GCancellable *cancellable,
        gpointer cut, GError **error)
{
  return muster_require_error (
      error,
      MUSTER_CUT_GET_IFACE (cut)->number (cut, session, step, deadline_us, cancellable, error),
      G_OBJECT_TYPE_NAME (cut), "number");
}

static void
release (MusterSession *session, gpointer cut)
{
  const MusterCutInterface *iface = MUSTER_CUT_GET_IFACE (cut);
  if (iface->release != NULL)
    iface->release (cut, session);
}

void
muster_saver_set_cut (MusterSaver *self, MusterCut *cut)
{
  g_return_if_fail (self != NULL);

  if (cut == NULL) {
    muster_saver_set_consistent_cut (self, NULL, NULL, NULL);
    return;
  }
  const MusterSaverConsistentCut functions = {
      .quiesce = quiesce,
      .check = check,
      .number = MUSTER_CUT_GET_IFACE (cut)->number != NULL ? number : NULL,
      .release = release};
  muster_saver_set_consistent_cut (self, &functions, g_object_ref (cut), g_object_unref);
}
