// SPDX-License-Identifier: Apache-2.0
/* A hook of one's own: it stops the training of a model once its loss is low enough.
 *
 *   hook MODEL.meta LOSS
 *
 * The model's data is beside it, as that of the installed example:
 *
 *   hook /usr/share/muster/examples/digits.meta 0.5 */
#include "engine/session/local_master.h"
#include "graph/npy.h"
#include "train/monitored_training.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the hook --- */

static gboolean
is_not_good_enough (MusterTensor *loss, gint64 step, gpointer user_data, GError **error)
{
  const double *wanted = user_data;
  double value;
  if (!muster_tensor_get_double (loss, &value, error))
    return FALSE; /* with an error: the training has failed */
  printf ("step %" G_GINT64_FORMAT ": %g\n", step, value);

  return value > *wanted; /* FALSE asks for a stop */
}

/* --- what it is used in --- */

static MusterTensor *
load (const char *model, const char *name, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (model);
  g_autofree char *path = g_build_filename (directory, name, NULL);
  return muster_npy_load (path, error);
}

typedef struct {
  MusterTensor *images, *labels; /* (owned) */
} Data;

static void
data_clear (Data *self)
{
  g_clear_pointer (&self->images, muster_tensor_unref);
  g_clear_pointer (&self->labels, muster_tensor_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Data, data_clear)

/* All rows in each step. The hook owns what it is given. */
static gboolean
feed (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  const Data *data = user_data;
  feeds[0] = muster_tensor_ref (data->images);
  feeds[1] = muster_tensor_ref (data->labels);
  return TRUE;
}

static gboolean
train (const char *path, double wanted, GError **error)
{
  static const char *const inputs[] = {"x:0", "y:0", NULL};
  g_auto (Data) data = {.images = load (path, "images.npy", error)};
  data.labels = data.images != NULL ? load (path, "labels.npy", error) : NULL;
  g_autoptr (MusterScaffold) scaffold =
      data.labels != NULL ? muster_scaffold_load (path, error) : NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterHook) input = muster_feed_func_hook_new (inputs, feed, &data, NULL);
  g_autoptr (MusterHook) stop =
      muster_hook_new_for_step ("loss:0", is_not_good_enough, &wanted, NULL);
  MusterHook *const hooks[] = {input, stop};

  if (scaffold == NULL)
    return FALSE;
  MusterMonitoredTrainingOptions options = {
      .scaffold = scaffold, .master = master, .hooks = hooks, .n_hooks = 2};
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&options, NULL, NULL, error);
  const char *targets[] = {muster_scaffold_train_op (scaffold)};
  MusterStep step = {.targets = targets, .n_targets = 1};
  g_autoptr (GError) failure = NULL;

  while (session != NULL && !muster_monitored_session_should_stop (session) && failure == NULL)
    (void)muster_monitored_session_run (session, &step, NULL, NULL, &failure);
  return session != NULL &&
         muster_monitored_session_finish (session, failure, MUSTER_WAIT_FOREVER, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc != 3) {
    fprintf (stderr, "usage: hook MODEL.meta LOSS\n");
    return 3;
  }
  if (train (argv[1], g_ascii_strtod (argv[2], NULL), &error))
    return 0;
  fprintf (stderr, "hook: %s\n", error->message);
  return 4;
}
