// SPDX-License-Identifier: Apache-2.0
/* Saves through the session. The names and slices are fetched from the SaveV2 nodes' inputs, and
 * the shapes from nodes that are added to the session. Small tensors are fetched several at a time,
 * a large one in slices of its elements. What a step fetches is written before the next one. */
#include "saver/gather_private.h"

#include "base/log_private.h"
#include "checkpoint/format/bundle_writer_private.h"
#include "graph/graph_builder.h"
#include "saver/builder/save_nodes_private.h"
#include "saver/saver_private.h"

#include <string.h>

/* A tensor that is saved. */
typedef struct {
  MusterGather *gather; /* (not owned) */
  guint index;
  char *name;  /* (owned) in the checkpoint */
  char *slice; /* (owned) "": the whole */
  char *input; /* (owned) the tensor */
  char *shape; /* (owned) the tensor that has its shape */
  char *part;  /* (owned) (nullable) the tensor that is a slice of its elements, once it has one */
  const MusterNode *read; /* (nullable) the graph's: reads a resource variable */
  char *end_copies;   /* (owned) (nullable) the node that ends its copies, if the session has it */
  const char *device; /* the graph's */
  MusterDType dtype;
  /* in this save */
  MusterTensor *dims;  /* (owned) (nullable) */
  MusterTensor *value; /* (owned) (nullable) fetched, and not written yet */
  gint64 n, n_read;    /* elements */
} Item;

struct _MusterGather {
  GWeakRef session;
  MusterGraph *graph;   /* (owned) */
  char *save_tensor;    /* (owned) */
  char *scope;          /* (owned) */
  char *begin, *size;   /* (owned) (nullable) what the slices are fed with */
  GPtrArray *items;     /* (owned) (element-type Item) in the order of the file */
  gboolean is_extended; /* the session has the nodes of all parts */
  /* while it works */
  MusterSession *using; /* (owned) (nullable) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
};

static Item *
item_at (const MusterGather *self, guint i)
{
  return self->items->pdata[i];
}

static void
item_free (gpointer data)
{
  Item *self = data;
  g_free (self->name);
  g_free (self->slice);
  g_free (self->input);
  g_free (self->shape);
  g_free (self->part);
  g_free (self->end_copies);
  g_clear_pointer (&self->dims, muster_tensor_unref);
  g_clear_pointer (&self->value, muster_tensor_unref);
  g_free (self);
}

void
muster_gather_free (MusterGather *self)
{
  if (self == NULL)
    return;
  g_weak_ref_clear (&self->session);
  g_ptr_array_unref (self->items);
  muster_graph_unref (self->graph);
  g_free (self->save_tensor);
  g_free (self->scope);
  g_free (self->begin);
  g_free (self->size);
  g_free (self);
}

static gboolean
is_of (MusterGather *self, MusterSession *session)
{
  g_autoptr (MusterSession) its = g_weak_ref_get (&self->session);
  return its == session;
}

/* --- steps --- */

/* Fetches n tensors; fed is (nullable). */
static gboolean
fetch (const MusterGather *self, const char *const *names, guint n, const MusterFeed *fed,
       gsize n_fed, MusterTensor **fetched, GError **error)
{
  const MusterStep step = {.feeds = fed,
                           .n_feeds = n_fed,
                           .fetches = names,
                           .n_fetches = n,
                           .deadline_us = self->deadline_us};
  return n == 0 || muster_session_run (self->using, &step, fetched, NULL, self->cancellable, error);
}

static gboolean
extend (const MusterGather *self, MusterGraphBuilder *builder, GError **error)
{
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  return extra != NULL &&
         muster_session_extend (self->using, extra, self->deadline_us, self->cancellable, error);
}

static void
add_node (MusterGraphBuilder *builder, const Item *item, const char *op, const char *name)
{
  muster_graph_builder_node (builder, op, name);
  if (*item->device)
    muster_graph_builder_device (builder, item->device);
}

/* --- what is saved --- */

static void
add_item (MusterGather *self, const MusterNode *save, gsize input, MusterString name,
          MusterString slice)
{
  const MusterNode *source = muster_graph_node (self->graph, muster_node_input (save, input, NULL));
  Item *item = g_new0 (Item, 1);
  item->gather = self;
  item->index = self->items->len;
  item->name = g_strndup (name.data, name.size);
  item->slice = g_strndup (slice.data, slice.size);
  item->input = muster_graph_input_text (self->graph, save, input);
  item->shape = g_strdup_printf ("%s/%u/shape", self->scope, item->index);
  item->device = source->kind->device;
  const MusterNode *read = muster_save_node_source (self->graph, save, input);
  if (strcmp (read->kind->op, "ReadVariableOp") == 0 && read->n_input > 0)
    item->read = read;
  item->dtype = muster_save_node_dtype (save, input);
  g_ptr_array_add (self->items, item);
}

static gboolean
refuse (const MusterNode *save, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' can't be saved through the session: its inputs don't match",
                      save->name);
}

/* Adds the tensors of one SaveV2. */
static gboolean
add_items (MusterGather *self, const MusterNode *save, MusterTensor *names, MusterTensor *slices,
           GError **error)
{
  const gint64 n = muster_tensor_n_elements (names);
  if (muster_tensor_dtype (names) != MUSTER_STRING ||
      muster_tensor_dtype (slices) != MUSTER_STRING || muster_tensor_n_elements (slices) != n ||
      (gsize)n + MUSTER_SAVE_TENSORS > save->n_input)
    return refuse (save, error);
  for (gint64 i = 0; i < n; i++) {
    const gsize input = MUSTER_SAVE_TENSORS + (gsize)i;
    if (muster_node_input_is_control (save, input) ||
        !muster_dtype_is_supported (muster_save_node_dtype (save, input)))
      return refuse (save, error);
    add_item (self, save, input, muster_tensor_string (names, i), muster_tensor_string (slices, i));
  }
  return TRUE;
}

static gboolean
find_items_of (MusterGather *self, const MusterNode *save, GError **error)
{
  if (save->n_input < MUSTER_SAVE_TENSORS)
    return refuse (save, error);
  g_autofree char *names = muster_graph_input_text (self->graph, save, MUSTER_SAVE_NAMES);
  g_autofree char *slices = muster_graph_input_text (self->graph, save, MUSTER_SAVE_SLICES);
  const char *const both[] = {names, slices};
  MusterTensor *fetched[2] = {NULL};
  if (!fetch (self, both, 2, NULL, 0, fetched, error))
    return FALSE;
  const gboolean is_added = add_items (self, save, fetched[0], fetched[1], error);
  muster_tensor_unref (fetched[0]);
  muster_tensor_unref (fetched[1]);
  return is_added;
}

static gboolean
find_items (MusterGather *self, GError **error)
{
  g_autoptr (GPtrArray) saves = muster_save_nodes_behind (self->graph, self->save_tensor);
  for (guint i = 0; i < saves->len; i++)
    if (!find_items_of (self, saves->pdata[i], error))
      return FALSE;
  return self->items->len > 0 ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' can't be saved through the session: it has no SaveV2 input",
                      self->save_tensor);
}

static gboolean
add_shapes (MusterGather *self, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  for (guint i = 0; i < self->items->len; i++) {
    const Item *item = item_at (self, i);
    add_node (builder, item, "Shape", item->shape);
    muster_graph_builder_input (builder, item->input);
    muster_graph_builder_attr_type (builder, "T", item->dtype);
    muster_graph_builder_attr_type (builder, "out_type", MUSTER_INT64);
  }
  return extend (self, builder, error);
}

static void
use (MusterGather *self, MusterSession *session, gint64 deadline_us, GCancellable *cancellable)
{
  g_set_object (&self->using, session);
  self->deadline_us = deadline_us;
  self->cancellable = cancellable;
}

static MusterGather *
gather_new (MusterSession *session, MusterGraph *graph, const char *save_tensor, const char *scope,
            gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterGather) self = g_new0 (MusterGather, 1);
  g_weak_ref_init (&self->session, session);
  self->graph = muster_graph_ref (graph);
  self->save_tensor = g_strdup (save_tensor);
  self->scope = g_strdup (scope);
  self->items = g_ptr_array_new_with_free_func (item_free);
  use (self, session, deadline_us, cancellable);
  const gboolean is_made =
      muster_graph_parse (graph, error) && find_items (self, error) && add_shapes (self, error);
  use (self, NULL, 0, NULL);
  return is_made ? g_steal_pointer (&self) : NULL;
}

/* --- how large it is --- */

static guint64
bytes_of (const Item *item)
{
  return (guint64)item->n * muster_dtype_size (item->dtype);
}

static gboolean
is_large (const Item *item)
{
  return item->dtype != MUSTER_STRING && bytes_of (item) > MUSTER_GATHER_BYTES;
}

/* Takes the fetched shape (transfer full). */
static gboolean
take_shape (Item *item, MusterTensor *shape, GError **error)
{
  g_clear_pointer (&item->dims, muster_tensor_unref);
  g_clear_pointer (&item->value, muster_tensor_unref);
  item->dims = shape;
  item->n_read = 0;
  const gint64 n_dims = muster_tensor_n_elements (shape);
  const gboolean is_shape =
      muster_tensor_dtype (shape) == MUSTER_INT64 && n_dims <= MUSTER_MAX_DIMS;
  item->n = is_shape ? muster_shape_n_elements ((int)n_dims, muster_tensor_data (shape)) : -1;
  return item->n >= 0 || muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                                      "'%s' has an invalid shape", item->name);
}

static gboolean
read_shapes (MusterGather *self, GError **error)
{
  const guint n = self->items->len;
  g_autofree const char **names = g_new (const char *, n);
  g_autofree MusterTensor **shapes = g_new0 (MusterTensor *, n);
  gboolean are_read = TRUE;
  for (guint i = 0; i < n; i++)
    names[i] = item_at (self, i)->shape;
  if (!fetch (self, names, n, NULL, 0, shapes, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    are_read = take_shape (item_at (self, i), shapes[i], are_read ? error : NULL) && are_read;
  return are_read;
}

/* Adds the nodes that take slices of a tensor's elements. */
static void
add_part (MusterGather *self, MusterGraphBuilder *builder, Item *item)
{
  g_autofree char *all = g_strdup_printf ("%s/%u/all", self->scope, item->index);
  g_autofree char *flat = g_strdup_printf ("%s/%u/flat", self->scope, item->index);
  g_autoptr (MusterTensor) rest = muster_tensor_new_from_data (
      MUSTER_INT32, 1, (gint64[]){1}, &(gint32){-1}, sizeof (gint32), NULL);
  item->part = g_strdup_printf ("%s/%u/part", self->scope, item->index);
  muster_graph_builder_constant (builder, all, rest);
  if (*item->device)
    muster_graph_builder_device (builder, item->device);
  add_node (builder, item, "Reshape", flat);
  muster_graph_builder_input (builder, item->input);
  muster_graph_builder_input (builder, all);
  muster_graph_builder_attr_type (builder, "T", item->dtype);
  muster_graph_builder_attr_type (builder, "Tshape", MUSTER_INT32);
  add_node (builder, item, "Slice", item->part);
  muster_graph_builder_input (builder, flat);
  muster_graph_builder_input (builder, self->begin);
  muster_graph_builder_input (builder, self->size);
  muster_graph_builder_attr_type (builder, "T", item->dtype);
  muster_graph_builder_attr_type (builder, "Index", MUSTER_INT64);
}

static void
add_bounds (MusterGather *self, MusterGraphBuilder *builder)
{
  const gint64 one = 1;
  self->begin = g_strconcat (self->scope, "/begin", NULL);
  self->size = g_strconcat (self->scope, "/size", NULL);
  muster_graph_builder_placeholder (builder, self->begin, MUSTER_INT64, 1, &one);
  muster_graph_builder_placeholder (builder, self->size, MUSTER_INT64, 1, &one);
}

/* Adds nodes for the large tensors that have none yet. */
static gboolean
add_parts (MusterGather *self, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = NULL;
  for (guint i = 0; i < self->items->len; i++) {
    Item *item = item_at (self, i);
    if (!is_large (item) || item->part != NULL)
      continue;
    if (builder == NULL)
      builder = muster_graph_builder_new_extension ();
    if (self->begin == NULL)
      add_bounds (self, builder);
    add_part (self, builder, item);
  }
  self->is_extended = builder == NULL || extend (self, builder, error);
  return self->is_extended;
}

/* Adds a node that ends the copies of its variable. A master may lack the op. */
static void
add_end_copies (MusterGather *self, Item *item)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autofree char *name = g_strdup_printf ("%s/%u/end_copies", self->scope, item->index);
  g_autofree char *handle = muster_graph_input_text (self->graph, item->read, 0);
  muster_graph_builder_node (builder, "DisableCopyOnRead", name);
  if (*item->read->kind->device)
    muster_graph_builder_device (builder, item->read->kind->device);
  muster_graph_builder_input (builder, handle);
  if (extend (self, builder, NULL))
    item->end_copies = g_steal_pointer (&name);
  item->read = NULL;
}

/* --- reading --- */

/* Once a slice or some rows of a resource variable were updated, TensorFlow copies all of it
 * whenever it is read. This ends it until the next such update. */
static void
end_copies (MusterGather *self, Item *item)
{
  if (item->read != NULL)
    add_end_copies (self, item);
  if (item->end_copies != NULL)
    (void)muster_session_run_op (self->using, item->end_copies, self->deadline_us,
                                 self->cancellable, NULL);
}

/* The index has been told the shape. */
static gboolean
check_shape (const Item *item, gsize n_dims, const gint64 *dims, GError **error)
{
  return (n_dims == (gsize)muster_tensor_n_elements (item->dims) &&
          memcmp (dims, muster_tensor_data (item->dims), n_dims * sizeof *dims) == 0) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' got another shape while it was saved; save it again", item->name);
}

static MusterTensor *
read_slice (MusterGather *self, Item *item, GError **error)
{
  const gint64 one = 1;
  const gint64 most = (gint64)(MUSTER_GATHER_BYTES / muster_dtype_size (item->dtype));
  const gint64 n = MIN (most, item->n - item->n_read);
  g_autoptr (MusterTensor) begin =
      muster_tensor_new_from_data (MUSTER_INT64, 1, &one, &item->n_read, sizeof (gint64), NULL);
  g_autoptr (MusterTensor) size =
      muster_tensor_new_from_data (MUSTER_INT64, 1, &one, &n, sizeof (gint64), NULL);
  const MusterFeed bounds[] = {{self->begin, begin}, {self->size, size}};
  const char *const names[] = {item->part, item->shape};
  MusterTensor *fetched[2] = {NULL};
  end_copies (self, item);
  if (!fetch (self, names, 2, bounds, G_N_ELEMENTS (bounds), fetched, error))
    return NULL;
  g_autoptr (MusterTensor) value = fetched[0];
  g_autoptr (MusterTensor) shape = fetched[1];
  item->n_read += n;
  return check_shape (item, (gsize)muster_tensor_n_elements (shape), muster_tensor_data (shape),
                      error)
             ? g_steal_pointer (&value)
             : NULL;
}

/* Fetches tensors from an item on: the small ones, as many as fit. */
static gboolean
read_group (MusterGather *self, guint first, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) items = g_ptr_array_new ();
  guint64 bytes = 0;
  for (guint i = first; i < self->items->len; i++) {
    Item *item = item_at (self, i);
    if (item->dtype == MUSTER_STRING || is_large (item))
      continue;
    bytes += bytes_of (item);
    if (items->len > 0 && bytes > MUSTER_GATHER_BYTES)
      break;
    g_ptr_array_add (names, item->input);
    g_ptr_array_add (items, item);
  }
  g_autofree MusterTensor **values = g_new0 (MusterTensor *, items->len);
  if (!fetch (self, (const char *const *)names->pdata, names->len, NULL, 0, values, error))
    return FALSE;
  for (guint i = 0; i < items->len; i++)
    ((Item *)items->pdata[i])->value = values[i];
  return TRUE;
}

/* A MusterBundleNext. */
static MusterTensor *
next (gpointer data, GError **error)
{
  Item *item = data;
  if (is_large (item))
    return read_slice (item->gather, item, error);
  if (item->value == NULL && !read_group (item->gather, item->index, error))
    return NULL;
  g_autoptr (MusterTensor) value = g_steal_pointer (&item->value);
  return check_shape (item, (gsize)muster_tensor_n_dims (value), muster_tensor_dims (value), error)
             ? g_steal_pointer (&value)
             : NULL;
}

/* A string's size isn't known before it is there. */
static gboolean
read_strings (MusterGather *self, GError **error)
{
  for (guint i = 0; i < self->items->len; i++) {
    Item *item = item_at (self, i);
    const char *input = item->input;
    if (item->dtype == MUSTER_STRING && !fetch (self, &input, 1, NULL, 0, &item->value, error))
      return FALSE;
  }
  return TRUE;
}

/* --- writing --- */

static gboolean
add_to (MusterBundleWriter *writer, Item *item, GError **error)
{
  if (item->dtype == MUSTER_STRING)
    return *item->slice ? muster_bundle_writer_add_slice (writer, item->name, item->slice,
                                                          item->value, error)
                        : muster_bundle_writer_add (writer, item->name, item->value, error);
  const MusterBundleParts parts = {.dtype = item->dtype,
                                   .n_dims = (int)muster_tensor_n_elements (item->dims),
                                   .dims = muster_tensor_data (item->dims),
                                   .next = next,
                                   .user_data = item};
  return muster_bundle_writer_add_parts (writer, item->name, item->slice, &parts, error);
}

static gboolean
write_items (MusterGather *self, MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  if (writer == NULL)
    return FALSE;
  muster_bundle_writer_set_n_shards (writer, 1);
  muster_bundle_writer_set_cancellable (writer, self->cancellable);
  for (guint i = 0; i < self->items->len; i++)
    if (!add_to (writer, item_at (self, i), error))
      return FALSE;
  return muster_bundle_writer_finish (writer, error);
}

static gboolean
gather_write (MusterGather *self, const MusterGathering *what, MusterStorage *storage,
              const char *prefix, GError **error)
{
  use (self, what->session, what->deadline_us, what->cancellable);
  const gboolean is_written = read_shapes (self, error) && add_parts (self, error) &&
                              read_strings (self, error) &&
                              write_items (self, storage, prefix, error);
  use (self, NULL, 0, NULL);
  for (guint i = 0; i < self->items->len; i++)
    g_clear_pointer (&item_at (self, i)->value, muster_tensor_unref);
  return is_written;
}

/* --- the saver's --- */

static void
say_so (MusterSaver *self, const MusterGathering *what)
{
  g_autofree char *size = muster_format_size (muster_saver_estimate_bytes (self));
  g_autofree char *part = muster_format_size (MUSTER_GATHER_BYTES);
  muster_log (G_LOG_LEVEL_MESSAGE, "save-gathered", "MESSAGE",
              "checkpoints in '%s' are written by the chief, because %s; for each one it reads %s "
              "through its session, %s at a time",
              what->directory, what->why, size, part);
}

/* A snapshot has a save op of its own, so a session may have several. */
static MusterGather *
gather_for (MusterSaver *self, const MusterGathering *what, GError **error)
{
  MusterGraph *graph =
      what->save_tensor != NULL ? what->graph : muster_meta_graph_graph (self->meta_graph);
  const char *save_tensor = what->save_tensor != NULL ? what->save_tensor : self->info.save_tensor;
  if (self->gathers == NULL)
    self->gathers = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_gather_free);
  if (self->gathers->len > 0 && !is_of (self->gathers->pdata[0], what->session))
    g_ptr_array_set_size (self->gathers, 0);
  for (guint i = 0; i < self->gathers->len; i++)
    if (strcmp (((MusterGather *)self->gathers->pdata[i])->save_tensor, save_tensor) == 0)
      return self->gathers->pdata[i];
  if (graph == NULL) {
    muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                 "'%s' isn't of the saver's graph, and can't be saved through the session: %s",
                 save_tensor, what->why);
    return NULL;
  }
  g_autofree char *scope = g_strdup_printf (
      "muster_gather/%08x", (guint32)(muster_clock_random (self->clock) * G_MAXUINT32));
  MusterGather *gather = gather_new (what->session, graph, save_tensor, scope, what->deadline_us,
                                     what->cancellable, error);
  if (gather == NULL)
    return NULL;
  if (self->gathers->len == 0)
    say_so (self, what);
  g_ptr_array_add (self->gathers, gather);
  return gather;
}

gboolean
muster_saver_gather (MusterSaver *self, const MusterGathering *what, MusterStorage *storage,
                     const char *prefix, GError **error)
{
  MusterGather *gather = gather_for (self, what, error);
  const gboolean is_written = gather != NULL && gather_write (gather, what, storage, prefix, error);
  /* Whether the session has the nodes isn't known: the next save adds others. */
  if (gather != NULL && !gather->is_extended)
    g_ptr_array_remove (self->gathers, gather);
  return is_written;
}
