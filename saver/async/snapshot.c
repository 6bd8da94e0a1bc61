// SPDX-License-Identifier: Apache-2.0
/* A snapshot: nodes that are added to the session and copy each saved variable to a shadow on
 * its device, and a copy of the save op over the shadows. One step takes it, while training goes on
 * another saves it. */
#include "saver/async/snapshot_private.h"

#include "base/log_private.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/graph_builder.h"
#include "master/session_private.h"
#include "saver/builder/save_nodes_private.h"

/* GraphDef's and NodeDef's fields. */
enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, NODE_NAME = 1, NODE_INPUT = 3 };

struct _MusterSnapshot {
  MusterSession *session; /* (owned) */
  char *stage_op;         /* (owned) */
  char *drop_op;          /* (owned) */
  char *reserve_op;       /* (owned) */
  char *flat;             /* (owned) what that is fed with */
  char *save_tensor;      /* (owned) */
  char *device;           /* (owned) */
  MusterGraph *graph;     /* (owned) with the snapshot's nodes */
};

/* --- which nodes --- */

/* The nodes that a save op needs: the SaveV2s, and whatever waits for one of them, inputs first.
 * */
typedef struct {
  MusterGraph *graph;
  GArray *order;       /* (owned) (element-type gsize) indexes of nodes */
  GHashTable *visited; /* (owned) index + 1 to whether the node is or waits for a SaveV2 */
} Walk;

static void
walk_clear (Walk *self)
{
  g_clear_pointer (&self->order, g_array_unref);
  g_clear_pointer (&self->visited, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Walk, walk_clear)

static gboolean
is_save (const MusterNode *node)
{
  return g_str_equal (node->kind->op, "SaveV2");
}

static gboolean
is_in (Walk *self, gsize index)
{
  return GPOINTER_TO_INT (g_hash_table_lookup (self->visited, GSIZE_TO_POINTER (index + 1)));
}

/* Handles a node whose inputs were all visited. */
static void
leave (Walk *self, gsize index)
{
  const MusterNode *node = muster_graph_node (self->graph, index);
  gboolean waits = is_save (node);
  for (gsize i = 0; !waits && i < node->n_input; i++)
    waits = is_in (self, muster_node_input (node, i, NULL));
  g_hash_table_insert (self->visited, GSIZE_TO_POINTER (index + 1), GINT_TO_POINTER (waits));
  if (waits)
    g_array_append_val (self->order, index);
}

typedef struct {
  gsize node, next_input;
} Step;

/* Walks depth first, without recursion, because a graph may be a long chain. */
static void
walk (Walk *self, gsize start)
{
  g_autoptr (GArray) path = g_array_new (FALSE, FALSE, sizeof (Step));
  Step first = {start, 0};
  g_hash_table_insert (self->visited, GSIZE_TO_POINTER (start + 1), GINT_TO_POINTER (FALSE));
  g_array_append_val (path, first);
  while (path->len > 0) {
    Step *top = &g_array_index (path, Step, path->len - 1);
    const MusterNode *node = muster_graph_node (self->graph, top->node);
    if (is_save (node) || top->next_input == node->n_input) {
      leave (self, top->node);
      g_array_set_size (path, path->len - 1);
      continue;
    }
    const gsize input = muster_node_input (node, top->next_input++, NULL);
    if (g_hash_table_contains (self->visited, GSIZE_TO_POINTER (input + 1)))
      continue;
    Step next = {input, 0};
    g_hash_table_insert (self->visited, GSIZE_TO_POINTER (input + 1), GINT_TO_POINTER (FALSE));
    g_array_append_val (path, next);
  }
}

static gboolean
walk_from (Walk *self, MusterGraph *graph, const char *save_tensor, GError **error)
{
  *self = (Walk){.graph = graph,
                 .order = g_array_new (FALSE, FALSE, sizeof (gsize)),
                 .visited = g_hash_table_new (NULL, NULL)};
  if (!muster_graph_parse (graph, error))
    return FALSE;
  const gssize start = muster_graph_find_named (graph, save_tensor);
  if (start >= 0)
    walk (self, (gsize)start);
  if (self->order->len > 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' can't be saved from a snapshot: it has no SaveV2 input", save_tensor);
}

/* --- the graph to add --- */

typedef struct {
  Walk walk; /* (owned) */
  const char *scope;
  char *container;             /* (owned) ends with the session */
  char *flat;                  /* (owned) a shape that is fed */
  MusterGraphBuilder *builder; /* (owned) shadows */
  GByteArray *clones;          /* (owned) nodes of a GraphDef */
  GHashTable *shadows;         /* (owned) (element-type utf8 utf8) an input to its shadow's read */
  GPtrArray *assigns;          /* (owned) (element-type utf8) */
  GPtrArray *destroys;         /* (owned) (element-type utf8) */
  GPtrArray *reservations;     /* (owned) (element-type utf8) */
  MusterNodeBytes *raw;        /* (owned) by index */
} Extension;

static void
extension_clear (Extension *self)
{
  walk_clear (&self->walk);
  g_clear_pointer (&self->container, g_free);
  g_clear_pointer (&self->flat, g_free);
  g_clear_pointer (&self->builder, muster_graph_builder_free);
  g_clear_pointer (&self->clones, g_byte_array_unref);
  g_clear_pointer (&self->shadows, g_hash_table_unref);
  g_clear_pointer (&self->assigns, g_ptr_array_unref);
  g_clear_pointer (&self->destroys, g_ptr_array_unref);
  g_clear_pointer (&self->reservations, g_ptr_array_unref);
  g_clear_pointer (&self->raw, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Extension, extension_clear)

/* Adds a value that doesn't change under the shadow. TensorFlow updates a reference variable in
 * place even if its memory is shared, so that must be copied; a resource variable is updated in a
 * copy if its memory is shared. (The op Snapshot copies shared memory, and doesn't support
 * strings.) */
static char *
add_value (Extension *self, const char *base, const char *input, MusterDType dtype,
           const char *device)
{
  char *value = g_strconcat (base, "/value", NULL);
  const gboolean is_string = dtype == MUSTER_STRING;
  muster_graph_builder_node (self->builder, is_string ? "StringJoin" : "Snapshot", value);
  muster_graph_builder_device (self->builder, device);
  muster_graph_builder_input (self->builder, input);
  if (is_string)
    muster_graph_builder_attr_int (self->builder, "N", 1);
  else
    muster_graph_builder_attr_type (self->builder, "T", dtype);
  return value;
}

/* Allocates as much memory as the value has, for the duration of the step. The shape isn't known
 * before: else TensorFlow makes a constant of the zeros, and keeps it as long as the session. */
static void
add_reservation (Extension *self, const char *base, const char *value, MusterDType dtype,
                 const char *device)
{
  char *reservation = g_strconcat (base, "/Room", NULL);
  g_autofree char *flat = g_strconcat (base, "/Flat", NULL);
  muster_graph_builder_node (self->builder, "Reshape", flat);
  muster_graph_builder_device (self->builder, device);
  muster_graph_builder_input (self->builder, value);
  muster_graph_builder_input (self->builder, self->flat);
  muster_graph_builder_attr_type (self->builder, "T", dtype);
  muster_graph_builder_attr_type (self->builder, "Tshape", MUSTER_INT32);
  muster_graph_builder_node (self->builder, "ZerosLike", reservation);
  muster_graph_builder_device (self->builder, device);
  muster_graph_builder_input (self->builder, flat);
  muster_graph_builder_attr_type (self->builder, "T", dtype);
  g_ptr_array_add (self->reservations, reservation);
}

/* Adds a node that takes a handle. */
static char *
add_use (Extension *self, const char *op, const char *base, const char *name, const char *device)
{
  char *node = g_strconcat (base, "/", name, NULL);
  muster_graph_builder_node (self->builder, op, node);
  muster_graph_builder_device (self->builder, device);
  muster_graph_builder_input (self->builder, base);
  return node;
}

/* Adds the shadow of input i of a SaveV2, which is called input. */
static char *
add_shadow (Extension *self, const MusterNode *save, gsize i, const char *input)
{
  MusterGraph *graph = self->walk.graph;
  const MusterDType dtype = muster_save_node_dtype (save, i);
  const MusterNode *node = muster_graph_node (graph, muster_node_input (save, i, NULL));
  const char *device = node->kind->device;
  g_autofree char *base = g_strdup_printf ("%s/%u/%s", self->scope, self->assigns->len, node->name);
  g_autofree char *value =
      g_str_equal (muster_save_node_source (graph, save, i)->kind->op, "ReadVariableOp")
          ? g_strdup (input)
          : add_value (self, base, input, dtype, device);

  if (dtype != MUSTER_STRING)
    add_reservation (self, base, value, dtype, device);
  muster_graph_builder_node (self->builder, "VarHandleOp", base);
  muster_graph_builder_device (self->builder, device);
  muster_graph_builder_attr_type (self->builder, "dtype", dtype);
  muster_graph_builder_attr_shape (self->builder, "shape", -1, NULL);
  muster_graph_builder_attr_string (self->builder, "container", self->container);
  muster_graph_builder_attr_string (self->builder, "shared_name", base);
  g_ptr_array_add (self->assigns, add_use (self, "AssignVariableOp", base, "Assign", device));
  muster_graph_builder_input (self->builder, value);
  muster_graph_builder_attr_type (self->builder, "dtype", dtype);
  g_ptr_array_add (self->destroys, add_use (self, "DestroyResourceOp", base, "Destroy", device));
  muster_graph_builder_attr_bool (self->builder, "ignore_lookup_error", TRUE);
  char *read = add_use (self, "ReadVariableOp", base, "Read", device);
  muster_graph_builder_attr_type (self->builder, "dtype", dtype);
  return read;
}

/* Returns the shadow of a tensor; one that is saved twice has one shadow. */
static const char *
shadow_for (Extension *self, const MusterNode *save, gsize i, const char *input)
{
  char *read = g_hash_table_lookup (self->shadows, input);
  if (read == NULL) {
    read = add_shadow (self, save, i, input);
    g_hash_table_insert (self->shadows, g_strdup (input), read);
  }
  return read;
}

/* Returns an input of a copied node: another copy's, a shadow's, or the same. */
static char *
renamed_input (Extension *self, const MusterNode *node, gsize i)
{
  g_autofree char *input = muster_graph_input_text (self->walk.graph, node, i);

  if (is_save (node) && i >= MUSTER_SAVE_TENSORS && input[0] != '^')
    return g_strdup (shadow_for (self, node, i, input));
  if (!is_in (&self->walk, muster_node_input (node, i, NULL)))
    return g_steal_pointer (&input);
  return input[0] == '^' ? g_strdup_printf ("^%s/graph/%s", self->scope, input + 1)
                         : g_strdup_printf ("%s/graph/%s", self->scope, input);
}

/* Copies other fields unchanged. */
static void
put_field (GByteArray *out, const MusterProtoField *field)
{
  if (field->type == MUSTER_WIRE_BYTES)
    muster_proto_put_bytes (out, field->number, field->data, field->size);
}

static void
add_clone (Extension *self, gsize index)
{
  const MusterNode *node = muster_graph_node (self->walk.graph, index);
  const MusterNodeBytes *raw = &self->raw[index];
  MusterProtoReader reader = muster_proto_reader (raw->data, raw->size);
  g_autoptr (GByteArray) clone = g_byte_array_new ();
  g_autofree char *name = g_strdup_printf ("%s/graph/%s", self->scope, node->name);
  MusterProtoField field;

  muster_proto_put_string (clone, NODE_NAME, name);
  for (gsize i = 0; i < node->n_input; i++) {
    g_autofree char *input = renamed_input (self, node, i);
    muster_proto_put_string (clone, NODE_INPUT, input);
  }
  while (muster_proto_read_field (&reader, &field))
    if (field.number != NODE_NAME && field.number != NODE_INPUT)
      put_field (clone, &field);
  muster_proto_put_bytes (self->clones, GRAPH_NODE, clone->data, clone->len);
}

/* Finds each node's bytes. The versions are copied, because TensorFlow extends a graph only by
 * one with the same version. */
static void
index_bytes (Extension *self, MusterGraph *session_graph)
{
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (session_graph), &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  self->raw = muster_graph_node_bytes (self->walk.graph);
  while (muster_proto_read_field (&reader, &field))
    if (field.number == GRAPH_VERSIONS)
      put_field (self->clones, &field);
}

static char *
add_group (Extension *self, const char *name, GPtrArray *ops)
{
  char *group = g_strconcat (self->scope, "/", name, NULL);
  g_ptr_array_add (ops, NULL);
  muster_graph_builder_group (self->builder, group, (const char *const *)ops->pdata);
  return group;
}

static void
extension_init (Extension *self, const char *scope)
{
  self->scope = scope;
  self->container = g_strconcat (MUSTER_SESSION_CONTAINER, scope, NULL);
  self->builder = muster_graph_builder_new ();
  self->flat = g_strconcat (scope, "/flat", NULL);
  muster_graph_builder_placeholder (self->builder, self->flat, MUSTER_INT32, 1, (gint64[]){2});
  self->clones = g_byte_array_new ();
  self->shadows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->assigns = g_ptr_array_new_with_free_func (g_free);
  self->destroys = g_ptr_array_new_with_free_func (g_free);
  self->reservations = g_ptr_array_new_with_free_func (g_free);
}

/* Joins the shadows, then the copies. */
static MusterGraph *
extension_end (Extension *self, GError **error)
{
  g_autoptr (MusterGraph) shadows = muster_graph_builder_end (self->builder, error);
  if (shadows == NULL)
    return NULL;
  GByteArray *both = g_byte_array_new ();
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_graph_bytes (shadows), &size);
  g_byte_array_append (both, data, (guint)size);
  g_byte_array_append (both, self->clones->data, self->clones->len);
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (both);
  return muster_graph_new (bytes);
}

static const char *
first_device (const Walk *walk)
{
  for (guint i = 0; i < walk->order->len; i++) {
    const MusterNode *node = muster_graph_node (walk->graph, g_array_index (walk->order, gsize, i));
    if (is_save (node))
      return node->kind->device;
  }
  return "";
}

MusterSnapshot *
muster_snapshot_new (MusterSession *session, MusterGraph *graph, const char *save_tensor,
                     const char *scope, gint64 deadline_us, GCancellable *cancellable,
                     GError **error)
{
  muster_require (error, NULL, session, graph, save_tensor, scope);

  g_auto (Extension) extension = {0};
  g_autoptr (MusterSnapshot) self = g_new0 (MusterSnapshot, 1);
  MusterGraph *session_graph = muster_session_graph (session);
  if (!walk_from (&extension.walk, graph, save_tensor, error))
    return NULL;
  extension_init (&extension, scope);
  index_bytes (&extension, session_graph != NULL ? session_graph : graph);
  for (guint i = 0; i < extension.walk.order->len; i++)
    add_clone (&extension, g_array_index (extension.walk.order, gsize, i));
  self->session = g_object_ref (session);
  self->stage_op = add_group (&extension, "stage", extension.assigns);
  self->drop_op = add_group (&extension, "drop", extension.destroys);
  self->reserve_op = add_group (&extension, "room", extension.reservations);
  self->flat = g_strdup (extension.flat);
  self->save_tensor = g_strdup_printf ("%s/graph/%s", scope, save_tensor);
  self->device = g_strdup (first_device (&extension.walk));
  g_autoptr (MusterGraph) extra = extension_end (&extension, error);
  if (extra == NULL || !muster_session_extend (session, extra, deadline_us, cancellable, error))
    return NULL;
  self->graph = muster_graph_extended (graph, extra);
  return g_steal_pointer (&self);
}

void
muster_snapshot_free (MusterSnapshot *self)
{
  if (self == NULL)
    return;
  g_clear_object (&self->session);
  g_free (self->stage_op);
  g_free (self->drop_op);
  g_free (self->reserve_op);
  g_free (self->flat);
  g_free (self->save_tensor);
  g_free (self->device);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_free (self);
}

gboolean
muster_snapshot_must_block (const GError *failure, const char *what, gboolean *for_good)
{
  *for_good = muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT) ||
              muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
              muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED);
  if (!*for_good && !muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED))
    return FALSE;
  muster_log (G_LOG_LEVEL_MESSAGE, "save-blocking", "MESSAGE",
              "%s can't be saved in the background, so training waits for %s: %s", what,
              *for_good ? "each save" : "this save", failure->message);
  return TRUE;
}

gboolean
muster_snapshot_take (MusterSnapshot *self, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  muster_require (error, FALSE, self);
  return muster_session_run_op (self->session, self->stage_op, deadline_us, cancellable, error);
}

gboolean
muster_snapshot_reserve_memory (MusterSnapshot *self, gint64 deadline_us, GCancellable *cancellable,
                                GError **error)
{
  muster_require (error, FALSE, self);
  const gint32 column[] = {-1, 1};
  const gint64 two = 2;
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &two, column, sizeof column, NULL);
  return muster_session_run_op_fed (self->session, self->reserve_op, self->flat, shape, deadline_us,
                                    cancellable, error);
}

void
muster_snapshot_drop (MusterSnapshot *self, gint64 timeout_us)
{
  g_return_if_fail (self != NULL);

  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), timeout_us);

  (void)muster_session_run_op (self->session, self->drop_op, deadline_us, NULL, NULL);
}

const char *
muster_snapshot_save_tensor (MusterSnapshot *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->save_tensor;
}

const char *
muster_snapshot_device (MusterSnapshot *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->device;
}

MusterGraph *
muster_snapshot_graph (MusterSnapshot *self)
{
  return self->graph;
}

/* --- size --- */

/* Adds the size of the variable behind an input, whose node has the shape. */
static gboolean
add_size (MusterGraph *graph, const MusterNode *save, gsize i, guint64 *size)
{
  const MusterDType dtype = muster_save_node_dtype (save, i);
  const MusterNode *node = muster_save_node_source (graph, save, i);
  gint64 dims[MUSTER_MAX_DIMS];
  if (g_str_equal (node->kind->op, "ReadVariableOp") && node->n_input > 0)
    node = muster_save_node_source (graph, node, 0);
  const int n_dims = muster_node_shape (node, "shape", dims, MUSTER_MAX_DIMS);
  const gint64 n =
      n_dims >= 0 && n_dims <= MUSTER_MAX_DIMS ? muster_shape_n_elements (n_dims, dims) : -1;
  const gsize each = muster_dtype_size (dtype);
  if (n < 0 || each == 0 || (guint64)n > (G_MAXUINT64 / 2 - *size) / each)
    return FALSE;
  *size += (guint64)n * each;
  return TRUE;
}

guint64
muster_snapshot_size (MusterGraph *graph, const char *save_tensor, gboolean *is_exact)
{
  g_return_val_if_fail (graph != NULL && save_tensor != NULL && is_exact != NULL, 0);

  g_auto (Walk) walk = {0};
  guint64 size = 0;
  *is_exact = walk_from (&walk, graph, save_tensor, NULL);
  for (guint i = 0; i < walk.order->len; i++) {
    const MusterNode *node = muster_graph_node (graph, g_array_index (walk.order, gsize, i));
    for (gsize j = MUSTER_SAVE_TENSORS; is_save (node) && j < node->n_input; j++)
      if (!muster_node_input_is_control (node, j) && !add_size (graph, node, j, &size))
        *is_exact = FALSE;
  }
  return size;
}
