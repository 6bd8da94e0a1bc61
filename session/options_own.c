// SPDX-License-Identifier: Apache-2.0
#include "graph/step_copy_private.h"
#include "session/manager.h"
#include "session/options_own_private.h"
#include "session/session_private.h"

G_DEFINE_BOXED_TYPE (MusterPrepareOptions, muster_prepare_options, muster_prepare_options_copy,
                     muster_prepare_options_free)

void
muster_prepare_options_own (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  options->init_op = g_strdup (options->init_op);
  options->init_ops = (const char *const *)g_strdupv ((char **)options->init_ops);
  options->checkpoint_dir = g_strdup (options->checkpoint_dir);
  options->checkpoint_filename = g_strdup (options->checkpoint_filename);
  if (options->saver != NULL)
    g_object_ref (options->saver);
  if (options->taken_by != NULL)
    g_object_ref (options->taken_by);
  if (options->restore != NULL)
    options->restore = muster_restore_options_copy (options->restore);
  options->init_feeds = muster_feeds_copy (options->init_feeds, options->n_init_feeds);
  for (gsize i = 0; i < G_N_ELEMENTS (options->owners); i++)
    if (options->owners[i] != NULL)
      g_bytes_ref (options->owners[i]);
}

void
muster_prepare_options_clear (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  muster_feeds_free (options->init_feeds, options->n_init_feeds);
  g_free ((char *)options->init_op);
  g_strfreev ((char **)options->init_ops);
  g_free ((char *)options->checkpoint_dir);
  g_free ((char *)options->checkpoint_filename);
  g_clear_object (&options->saver);
  g_clear_object (&options->taken_by);
  muster_restore_options_free ((MusterRestoreOptions *)options->restore);
  for (gsize i = 0; i < G_N_ELEMENTS (options->owners); i++)
    g_clear_pointer (&options->owners[i], g_bytes_unref);
}

MusterPrepareOptions *
muster_prepare_options_new (const char *init_op, MusterSaver *saver, const char *checkpoint_dir)
{
  MusterPrepareOptions options = {
      .init_op = init_op, .saver = saver, .checkpoint_dir = checkpoint_dir};
  return muster_prepare_options_copy (&options);
}

MusterPrepareOptions *
muster_prepare_options_copy (const MusterPrepareOptions *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterPrepareOptions *copy = g_memdup2 (self, sizeof *self);

  muster_prepare_options_own (copy);
  return copy;
}

void
muster_prepare_options_free (MusterPrepareOptions *self)
{
  if (self == NULL)
    return;
  muster_prepare_options_clear (self);
  g_free (self);
}
