// SPDX-License-Identifier: Apache-2.0
/* A variable is assigned in parts: zeros first, so that it has its memory, then one slice after the
 * other, by nodes that are added to the session. A part is a range of one dimension, at one index
 * of each dimension before it, so that its bytes are next to each other in the file. */
#include "saver/restore_parts_private.h"

#include "base/error.h"
#include "checkpoint/format/bundle_reader_private.h"
#include "checkpoint/format/slice_private.h"
#include "graph/graph_builder.h"
#include "master/session_private.h"

#include <string.h>

enum { BEGIN, END, STRIDES, VALUE, N_FEEDS };

static const char *const feeds[N_FEEDS] = {"begin", "end", "strides", "value"};

typedef struct {
  const MusterPartsOf *of;
  int n_dims;
  MusterExtent place[MUSTER_MAX_DIMS]; /* of what is assigned, in the checkpoint's tensor */
  gint64 dims[MUSTER_MAX_DIMS];        /* of what is assigned */
  gint64 at[MUSTER_MAX_DIMS];          /* the part that is next begins there */
  int split;                           /* the dimension of the ranges */
  gint64 range;                        /* at most so many of its indexes */
  GHashTable *read;                    /* (owned) muster_bundle_parts_new () */
} Parts;

static void
parts_clear (Parts *self)
{
  g_hash_table_unref (self->read);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parts, parts_clear)

static char *
name_of (const Parts *self, const char *name)
{
  return g_strconcat (self->of->scope, "/", name, NULL);
}

static gboolean
is_reference (const Parts *self)
{
  return strcmp (self->of->assign->kind->op, "Assign") == 0;
}

/* --- which parts --- */

static gboolean
find_place (Parts *self, GError **error)
{
  const MusterBundleEntry *entry = self->of->entry;
  MusterSliceSpec spec;
  self->n_dims = entry->n_dims;
  for (int d = 0; d < entry->n_dims; d++)
    self->place[d] = (MusterExtent){0, entry->dims[d]};
  if (*self->of->slice &&
      (!muster_slice_spec_parse (&spec, self->of->slice, error) || spec.n_dims != entry->n_dims ||
       !muster_slice_resolve (spec.n_dims, entry->dims, spec.extents, self->place)))
    return FALSE;
  for (int d = 0; d < self->n_dims; d++)
    self->dims[d] = self->place[d].length;
  return TRUE;
}

/* Splits at the first dimension of which one index is small enough. */
static void
find_split (Parts *self)
{
  guint64 inner = muster_dtype_size (self->of->entry->dtype);
  self->split = self->n_dims - 1;
  while (self->split > 0 && inner * (guint64)self->dims[self->split] <= self->of->most)
    inner *= (guint64)self->dims[self->split--];
  self->range = MAX ((gint64)(self->of->most / inner), 1);
}

static gint64
length_of (const Parts *self, int d)
{
  if (d > self->split)
    return self->dims[d];
  return d < self->split ? 1 : MIN (self->range, self->dims[d] - self->at[d]);
}

/* "3,1:0,500:0,20": the next part in the checkpoint's tensor. */
static char *
part_text (const Parts *self)
{
  GString *text = g_string_new (NULL);
  for (int d = 0; d < self->n_dims; d++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT, d > 0 ? ":" : "",
                            self->place[d].start + (d <= self->split ? self->at[d] : 0),
                            length_of (self, d));
  return g_string_free (text, FALSE);
}

/* Goes to the part after the present one. FALSE at the end. */
static gboolean
go_on (Parts *self)
{
  for (int d = self->split; d >= 0; d--) {
    self->at[d] += length_of (self, d);
    if (self->at[d] < self->dims[d])
      return TRUE;
    self->at[d] = 0;
  }
  return FALSE;
}

/* --- the nodes --- */

static void
add_node (const Parts *self, MusterGraphBuilder *builder, const char *op, const char *name)
{
  muster_graph_builder_node (builder, op, name);
  if (*self->of->assign->kind->device)
    muster_graph_builder_device (builder, self->of->assign->kind->device);
}

/* Gives the variable zeros, by an op like that which gives it its value. The shape is fed:
 * TensorFlow makes a constant of a Fill of constants, and keeps it as long as the session. */
static void
add_zeros (const Parts *self, MusterGraphBuilder *builder, const char *variable)
{
  const MusterDType dtype = self->of->entry->dtype;
  const gint64 n_dims = self->n_dims;
  g_autofree char *dims = name_of (self, "dims"), *zero = name_of (self, "zero");
  g_autofree char *zeros = name_of (self, "zeros"), *init = name_of (self, "init");
  g_autoptr (MusterTensor) nothing = muster_tensor_new (dtype, 0, NULL);
  memset (muster_tensor_data_mutable (nothing), 0, muster_tensor_n_bytes (nothing));
  muster_graph_builder_placeholder (builder, dims, MUSTER_INT64, 1, &n_dims);
  muster_graph_builder_constant (builder, zero, nothing);
  if (*self->of->assign->kind->device)
    muster_graph_builder_device (builder, self->of->assign->kind->device);
  add_node (self, builder, "Fill", zeros);
  muster_graph_builder_input (builder, dims);
  muster_graph_builder_input (builder, zero);
  muster_graph_builder_attr_type (builder, "T", dtype);
  muster_graph_builder_attr_type (builder, "index_type", MUSTER_INT64);
  add_node (self, builder, self->of->assign->kind->op, init);
  muster_graph_builder_input (builder, variable);
  muster_graph_builder_input (builder, zeros);
  muster_graph_builder_attr_type (builder, is_reference (self) ? "T" : "dtype", dtype);
  if (muster_node_attr (self->of->assign, "validate_shape") != NULL)
    muster_graph_builder_attr_bool (builder, "validate_shape",
                                    muster_node_bool (self->of->assign, "validate_shape", TRUE));
}

static void
add_put (const Parts *self, MusterGraphBuilder *builder, const char *variable)
{
  const MusterDType dtype = self->of->entry->dtype;
  const gint64 n_bounds = self->split + 1;
  g_autofree char *put = name_of (self, "put");
  for (int i = 0; i < N_FEEDS; i++) {
    g_autofree char *fed = name_of (self, feeds[i]);
    muster_graph_builder_placeholder (builder, fed, i == VALUE ? dtype : MUSTER_INT64,
                                      i == VALUE ? -1 : 1, i == VALUE ? NULL : &n_bounds);
  }
  add_node (self, builder,
            is_reference (self) ? "StridedSliceAssign" : "ResourceStridedSliceAssign", put);
  muster_graph_builder_input (builder, variable);
  for (int i = 0; i < N_FEEDS; i++) {
    g_autofree char *fed = name_of (self, feeds[i]);
    muster_graph_builder_input (builder, fed);
  }
  muster_graph_builder_attr_type (builder, "T", dtype);
  muster_graph_builder_attr_type (builder, "Index", MUSTER_INT64);
}

static gboolean
add_nodes (const Parts *self, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autofree char *variable = muster_graph_input_text (self->of->graph, self->of->assign, 0);
  add_zeros (self, builder, variable);
  add_put (self, builder, variable);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  return extra != NULL && muster_session_extend (self->of->session, extra, self->of->deadline_us,
                                                 self->of->cancellable, error);
}

/* --- the steps --- */

static MusterTensor *
read_part (const Parts *self, GError **error)
{
  g_autofree char *text = part_text (self);
  return muster_bundle_reader_read_part (self->of->reader, self->read, self->of->entry, text,
                                         self->of->cancellable, error);
}

static MusterTensor *
bounds (int n, const gint64 *values)
{
  const gint64 dims = n;
  return muster_tensor_new_from_data (MUSTER_INT64, 1, &dims, values, (gsize)n * sizeof *values,
                                      NULL);
}

static gboolean
put_zeros (const Parts *self, GError **error)
{
  g_autofree char *dims = name_of (self, "dims"), *init = name_of (self, "init");
  g_autoptr (MusterTensor) shape = bounds (self->n_dims, self->dims);
  return muster_session_run_op_fed (self->of->session, init, dims, shape, self->of->deadline_us,
                                    self->of->cancellable, error);
}

static gboolean
put_part (const Parts *self, MusterTensor *part, GError **error)
{
  gint64 end[MUSTER_MAX_DIMS], strides[MUSTER_MAX_DIMS];
  const int n = self->split + 1;
  for (int d = 0; d < n; d++) {
    end[d] = self->at[d] + length_of (self, d);
    strides[d] = 1;
  }
  MusterTensor *values[N_FEEDS] = {bounds (n, self->at), bounds (n, end), bounds (n, strides),
                                   part};
  char *names[N_FEEDS];
  MusterFeed fed[N_FEEDS];
  g_autofree char *put = name_of (self, "put");
  const char *target = put;
  const MusterStep step = {.feeds = fed,
                           .n_feeds = N_FEEDS,
                           .targets = &target,
                           .n_targets = 1,
                           .deadline_us = self->of->deadline_us};
  for (int i = 0; i < N_FEEDS; i++) {
    names[i] = name_of (self, feeds[i]);
    fed[i] = (MusterFeed){names[i], values[i]};
  }
  const gboolean is_put =
      muster_session_run (self->of->session, &step, NULL, NULL, self->of->cancellable, error);
  for (int i = 0; i < N_FEEDS; i++) {
    g_free (names[i]);
    if (i != VALUE)
      muster_tensor_unref (values[i]);
  }
  return is_put;
}

/* Since a slice was assigned, TensorFlow copies a resource variable whenever it is read or updated.
 * This ends it. A master that lacks the op has no such mode, as muster's engine, or keeps it. */
static void
end_copies (const Parts *self)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autofree char *variable = muster_graph_input_text (self->of->graph, self->of->assign, 0);
  g_autofree char *end = name_of (self, "end_copies");
  add_node (self, builder, "DisableCopyOnRead", end);
  muster_graph_builder_input (builder, variable);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, NULL);
  if (extra != NULL && muster_session_extend (self->of->session, extra, self->of->deadline_us,
                                              self->of->cancellable, NULL))
    (void)muster_session_run_op (self->of->session, end, self->of->deadline_us,
                                 self->of->cancellable, NULL);
}

gboolean
muster_restore_in_parts (const MusterPartsOf *of, gboolean *is_masters, GError **error)
{
  g_auto (Parts) self = {.of = of, .read = muster_bundle_parts_new ()};
  *is_masters = FALSE;
  if (!find_place (&self, error))
    return FALSE;
  find_split (&self);
  *is_masters = TRUE;
  if (!add_nodes (&self, error) || !put_zeros (&self, error))
    return FALSE;
  do {
    *is_masters = FALSE;
    g_autoptr (MusterTensor) part = read_part (&self, error);
    if (part == NULL)
      return FALSE;
    *is_masters = TRUE;
    if (!put_part (&self, part, error))
      return FALSE;
  } while (go_on (&self));
  if (!is_reference (&self))
    end_copies (&self);
  return TRUE;
}
