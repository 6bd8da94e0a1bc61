// SPDX-License-Identifier: Apache-2.0
#include "session/manager.h"

G_DEFINE_BOXED_TYPE (MusterPrepareOptions, muster_prepare_options, muster_prepare_options_copy,
                     muster_prepare_options_free)

static void
copy_feeds (MusterPrepareOptions *options)
{
  MusterFeed *feeds = g_new0 (MusterFeed, options->n_init_feeds);

  for (gsize i = 0; i < options->n_init_feeds; i++)
    feeds[i] = (MusterFeed){g_strdup (options->init_feeds[i].name),
                            muster_tensor_ref (options->init_feeds[i].tensor)};
  options->init_feeds = feeds;
}

static void
copy_restore (MusterPrepareOptions *options)
{
  if (!options->restore)
    return;
  MusterRestoreOptions *restore = g_memdup2 (options->restore, sizeof *restore);
  if (restore->names)
    g_hash_table_ref (restore->names);
  restore->needs = (const char *const *)g_strdupv ((char **)restore->needs);
  options->restore = restore;
}

static void
clear_restore (MusterPrepareOptions *options)
{
  if (options->restore && options->restore->names)
    g_hash_table_unref (options->restore->names);
  if (options->restore)
    g_strfreev ((char **)options->restore->needs);
  g_free ((MusterRestoreOptions *)options->restore);
}

void
muster_prepare_options_own (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  options->init_op = g_strdup (options->init_op);
  options->init_ops = (const char *const *)g_strdupv ((char **)options->init_ops);
  options->checkpoint_dir = g_strdup (options->checkpoint_dir);
  options->checkpoint_filename = g_strdup (options->checkpoint_filename);
  if (options->saver)
    g_object_ref (options->saver);
  copy_restore (options);
  copy_feeds (options);
}

void
muster_prepare_options_clear (MusterPrepareOptions *options)
{
  g_return_if_fail (options != NULL);
  for (gsize i = 0; i < options->n_init_feeds; i++) {
    g_free ((char *)options->init_feeds[i].name);
    muster_tensor_unref (options->init_feeds[i].tensor);
  }
  g_free ((MusterFeed *)options->init_feeds);
  g_free ((char *)options->init_op);
  g_strfreev ((char **)options->init_ops);
  g_free ((char *)options->checkpoint_dir);
  g_free ((char *)options->checkpoint_filename);
  g_clear_object (&options->saver);
  clear_restore (options);
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
