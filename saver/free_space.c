// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_nodes.h"
#include "saver/saver_private.h"

#define FIRST_PAUSE MUSTER_SECOND
#define LAST_PAUSE  (60 * MUSTER_SECOND)

/* Index, side file and names: little beside any checkpoint. */
#define BESIDE_BYTES (64 * 1024)

static guint64
bytes_of (const MusterVariableInfo *variable)
{
  guint64 bytes = muster_dtype_size (variable->dtype);

  for (int i = 0; i < variable->n_dims; i++)
    if (variable->dims[i] < 0 || __builtin_mul_overflow (bytes, (guint64)variable->dims[i], &bytes))
      return 0; /* not known */

  return variable->n_dims >= 0 ? bytes : 0;
}

/* The nodes that the save op needs. */
static GHashTable *
reach (MusterGraph *graph, const char *op)
{
  g_autoptr (GHashTable) reached = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  g_autofree char *first = NULL;

  muster_graph_split_input (op, &first);
  const Tensorflow__NodeDef *node = muster_graph_find_node (graph, first);
  if (node)
    g_ptr_array_add (open, (gpointer)node);
  while (open->len > 0) {
    node = g_ptr_array_remove_index_fast (open, open->len - 1);
    if (!g_hash_table_add (reached, node->name))
      continue;
    for (gsize i = 0; i < node->n_input; i++) {
      g_autofree char *name = NULL;
      muster_graph_split_input (node->input[i], &name);
      const Tensorflow__NodeDef *input = muster_graph_find_node (graph, name);
      if (input && !g_hash_table_contains (reached, input->name))
        g_ptr_array_add (open, (gpointer)input);
    }
  }

  return g_steal_pointer (&reached);
}

static guint64
count_graph (MusterSaver *self)
{
  g_autoptr (GHashTable) reached =
      reach (muster_meta_graph_graph (self->meta_graph), self->info.save_tensor);
  guint64 bytes = 0;
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);

  for (gsize i = 0; i < n; i++)
    if (g_hash_table_contains (reached, variables[i].name) &&
        __builtin_add_overflow (bytes, bytes_of (&variables[i]), &bytes))
      return 0;

  return bytes < G_MAXINT64 ? bytes : 0;
}

guint64
muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors)
{
  guint64 outside = 0;

  g_mutex_lock (&self->lock);
  gint64 known = self->graph_bytes;
  guint64 last = self->last_bytes;
  g_mutex_unlock (&self->lock);
  if (known < 0) {
    known = (gint64)count_graph (self);
    g_mutex_lock (&self->lock);
    self->graph_bytes = known;
    g_mutex_unlock (&self->lock);
  }
  for (guint i = 0; tensors && i < tensors->len; i++)
    outside += muster_tensor_n_bytes (((const MusterNamedTensor *)tensors->pdata[i])->tensor);
  if (self->with_meta_graph)
    outside += g_bytes_get_size (muster_meta_graph_bytes (self->meta_graph));

  return MAX ((guint64)known + outside + BESIDE_BYTES, last);
}

guint64
muster_saver_estimate_bytes (MusterSaver *self)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), 0);

  return self->is_empty ? 0 : muster_saver_estimate (self, NULL);
}

/* G_MAXUINT64 where nobody knows. */
static guint64
look (MusterSaver *self, const MusterRoom *room)
{
  guint64 bytes;

  return muster_storage_room (self->storage, room->directory, &bytes, NULL) ? bytes : G_MAXUINT64;
}

static char *
describe (MusterSaver *self, const MusterRoom *room)
{
  gint64 waited_us = muster_clock_now_us (self->clock) - room->started_us;
  guint64 there = look (self, room);
  g_autofree char *needed = muster_format_size (room->bytes);
  g_autofree char *is_free = there < G_MAXUINT64 ? muster_format_size (there) : g_strdup ("none");
  g_autofree char *waited = muster_format_duration (waited_us);
  g_autofree char *after = self->when_full == MUSTER_WHEN_FULL_PAUSE
                               ? g_strdup_printf (" after %s of waiting", waited)
                               : g_strdup ("");

  return g_strdup_printf ("a checkpoint needs about %s, and %s is free in '%s'%s", needed, is_free,
                          room->directory, after);
}

static gboolean
refuse (MusterSaver *self, const MusterRoom *room, GError **error)
{
  g_autofree char *what = describe (self, room);

  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "There is no room: %s. Make room there, keep fewer checkpoints, or save elsewhere; "
               "what is there already is as it was",
               what);

  return FALSE;
}

/* FALSE at the deadline. */
static gboolean
pause_once (MusterSaver *self, MusterRoom *room, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);

  if (now_us >= room->deadline_us)
    return refuse (self, room, error);
  if (self->paused) {
    g_autofree char *why = describe (self, room);
    self->paused (why, self->paused_data);
  }
  room->pause_us = CLAMP (room->pause_us * 2, FIRST_PAUSE, LAST_PAUSE);
  gint64 wake_us = MIN (muster_deadline_after (now_us, room->pause_us), room->deadline_us);

  return muster_clock_wait_until (self->clock, wake_us, room->cancellable, error);
}

gboolean
muster_saver_find_room (MusterSaver *self, MusterRoom *room, GError **error)
{
  while (look (self, room) < room->bytes) {
    switch (self->when_full) {
    case MUSTER_WHEN_FULL_SKIP:
      room->why = describe (self, room);
      return TRUE;
    case MUSTER_WHEN_FULL_PAUSE:
      if (!pause_once (self, room, error))
        return FALSE;
      break;
    case MUSTER_WHEN_FULL_FAIL:
    default:
      return refuse (self, room, error);
    }
  }

  return TRUE;
}

gboolean
muster_saver_was_full (MusterSaver *self, const MusterRoom *room, const GError *failure)
{
  if (g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOSPC) ||
      g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_NO_SPACE))
    return TRUE;
  /* A master says the same of its memory: ask the directory which it was. */
  return muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED) &&
         look (self, room) < room->bytes;
}

gboolean
muster_saver_after_full (MusterSaver *self, MusterRoom *room, GError *failure, GError **error)
{
  g_autoptr (GError) owned = failure;
  guint64 there = look (self, room);

  switch (self->when_full) {
  case MUSTER_WHEN_FULL_SKIP:
    room->why = g_strdup (failure->message);
    return TRUE;
  case MUSTER_WHEN_FULL_PAUSE:
    /* What there was wasn't enough, whatever was counted. */
    if (there < G_MAXUINT64)
      room->bytes = MAX (room->bytes, there + 1);
    return pause_once (self, room, error) && muster_saver_find_room (self, room, error);
  case MUSTER_WHEN_FULL_FAIL:
  default:
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "There is no room: %s",
                 failure->message);
    return FALSE;
  }
}
