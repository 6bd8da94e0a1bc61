// SPDX-License-Identifier: Apache-2.0
#include "graph/step_copy_private.h"

static MusterTensor *
copy_tensor (MusterTensor *tensor)
{
  return tensor != NULL ? muster_tensor_ref (tensor) : NULL;
}

static void
free_tensor (MusterTensor *tensor)
{
  if (tensor != NULL)
    muster_tensor_unref (tensor);
}

static const char *const *
copy_names (const char *const *names, gsize n)
{
  if (names == NULL)
    return NULL;
  const char **copy = g_new0 (const char *, n);
  for (gsize i = 0; i < n; i++)
    copy[i] = g_strdup (names[i]);
  return copy;
}

static void
free_names (const char *const *names, gsize n)
{
  for (gsize i = 0; names != NULL && i < n; i++)
    g_free ((char *)names[i]);
  g_free ((gpointer)names);
}

const MusterFeed *
muster_feeds_copy (const MusterFeed *feeds, gsize n)
{
  if (feeds == NULL)
    return NULL;
  MusterFeed *copy = g_new0 (MusterFeed, n);
  for (gsize i = 0; i < n; i++)
    copy[i] = (MusterFeed){g_strdup (feeds[i].name), copy_tensor (feeds[i].tensor)};
  return copy;
}

void
muster_feeds_free (const MusterFeed *feeds, gsize n)
{
  for (gsize i = 0; feeds != NULL && i < n; i++) {
    g_free ((char *)feeds[i].name);
    free_tensor (feeds[i].tensor);
  }
  g_free ((gpointer)feeds);
}

const MusterFeed *
muster_feeds_append (const MusterFeed *feeds, gsize *n, const char *name, MusterTensor *tensor)
{
  MusterFeed *more = g_renew (MusterFeed, (MusterFeed *)feeds, *n + 1);
  more[(*n)++] = (MusterFeed){g_strdup (name), muster_tensor_ref (tensor)};
  return more;
}

const MusterStep *
muster_step_copy (const MusterStep *self)
{
  MusterStep *copy = g_memdup2 (self, sizeof *self);
  copy->feeds = muster_feeds_copy (self->feeds, self->n_feeds);
  copy->fetches = copy_names (self->fetches, self->n_fetches);
  copy->targets = copy_names (self->targets, self->n_targets);
  copy->options = self->options != NULL ? g_bytes_ref (self->options) : NULL;
  return copy;
}

void
muster_step_free (const MusterStep *self)
{
  muster_feeds_free (self->feeds, self->n_feeds);
  free_names (self->fetches, self->n_fetches);
  free_names (self->targets, self->n_targets);
  g_bytes_unref (self->options);
  g_free ((gpointer)self);
}

MusterTensor **
muster_tensors_copy (MusterTensor *const *tensors, gsize n)
{
  MusterTensor **copy = g_new0 (MusterTensor *, n);
  for (gsize i = 0; i < n; i++)
    copy[i] = copy_tensor (tensors[i]);
  return copy;
}

GPtrArray *
muster_tensors_take (MusterTensor **tensors, gsize n)
{
  GPtrArray *array = g_ptr_array_new_full ((guint)n, (GDestroyNotify)muster_tensor_unref);
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (array, tensors[i]);
  return array;
}
