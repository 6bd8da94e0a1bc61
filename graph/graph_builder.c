// SPDX-License-Identifier: Apache-2.0
/* Writes a graph node by node, as a GraphDef's bytes. A mistake is noted and reported at the
 * end. */
#include "graph/graph_builder.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/tensor_proto_private.h"

#include <string.h>

/* GraphDef's, NodeDef's and AttrValue's fields. */
enum {
  GRAPH_NODE = 1,
  GRAPH_VERSIONS = 4,
  VERSIONS_PRODUCER = 1,

  NODE_NAME = 1,
  NODE_OP = 2,
  NODE_INPUT = 3,
  NODE_DEVICE = 4,
  NODE_ATTR = 5,

  ENTRY_KEY = 1,
  ENTRY_VALUE = 2,

  ATTR_LIST = 1,
  ATTR_S = 2,
  ATTR_I = 3,
  ATTR_F = 4,
  ATTR_B = 5,
  ATTR_TYPE = 6,
  ATTR_SHAPE = 7,
  ATTR_TENSOR = 8,

  LIST_S = 2,
  LIST_TYPE = 6,
  LIST_SHAPE = 7,

  SHAPE_DIM = 2,
  SHAPE_UNKNOWN_RANK = 3,
  DIM_SIZE = 1,
};

/* TensorFlow 1.15's version: every later consumer accepts it, with the current meaning of ops. */
#define PRODUCER 134

struct _MusterGraphBuilder {
  gatomicrefcount refs;
  GByteArray *nodes; /* (owned) finished ones, as fields of a GraphDef */
  GByteArray *node;  /* (owned) the one begun last */
  gboolean has_node;
  gboolean is_extension;
  GHashTable *names; /* (owned) a set */
  GError *mistake;   /* (owned) (nullable) the first */
};

G_DEFINE_BOXED_TYPE (MusterGraphBuilder, muster_graph_builder, muster_graph_builder_ref,
                     muster_graph_builder_free)

MusterGraphBuilder *
muster_graph_builder_new (void)
{
  MusterGraphBuilder *self = g_new0 (MusterGraphBuilder, 1);
  g_atomic_ref_count_init (&self->refs);
  self->nodes = g_byte_array_new ();
  self->node = g_byte_array_new ();
  self->names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

MusterGraphBuilder *
muster_graph_builder_new_extension (void)
{
  MusterGraphBuilder *self = muster_graph_builder_new ();
  self->is_extension = TRUE;
  return self;
}

MusterGraphBuilder *
muster_graph_builder_ref (MusterGraphBuilder *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_graph_builder_free (MusterGraphBuilder *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_byte_array_unref (self->nodes);
  g_byte_array_unref (self->node);
  g_hash_table_unref (self->names);
  g_clear_error (&self->mistake);
  g_free (self);
}

static void
end_node (MusterGraphBuilder *self)
{
  if (self->has_node)
    muster_proto_put_bytes (self->nodes, GRAPH_NODE, self->node->data, self->node->len);
  self->has_node = FALSE;
  g_byte_array_set_size (self->node, 0);
}

static void
note_mistake (MusterGraphBuilder *self, const char *what, const char *name)
{
  if (self->mistake == NULL)
    muster_fail (&self->mistake, MUSTER_ERROR_INVALID_ARGUMENT, "Building a graph: %s '%s'", what,
                 name);
}

void
muster_graph_builder_node (MusterGraphBuilder *self, const char *op, const char *name)
{
  g_return_if_fail (self != NULL && op != NULL && name != NULL);
  end_node (self);
  if (*name == '\0')
    note_mistake (self, "a node has no name, a", op);
  else if (!g_hash_table_add (self->names, g_strdup (name)))
    note_mistake (self, "two nodes are named", name);
  self->has_node = TRUE;
  muster_proto_put_string (self->node, NODE_NAME, name);
  muster_proto_put_string (self->node, NODE_OP, op);
}

/* Notes a mistake and returns FALSE if no node was begun. */
static gboolean
check_node (MusterGraphBuilder *self, const char *what)
{
  if (!self->has_node)
    note_mistake (self, "begin a node before its", what);
  return self->has_node;
}

void
muster_graph_builder_input (MusterGraphBuilder *self, const char *input)
{
  g_return_if_fail (self != NULL && input != NULL);
  if (check_node (self, input))
    muster_proto_put_string (self->node, NODE_INPUT, input);
}

void
muster_graph_builder_device (MusterGraphBuilder *self, const char *device)
{
  g_return_if_fail (self != NULL && device != NULL);
  if (check_node (self, device))
    muster_proto_put_string (self->node, NODE_DEVICE, device);
}

/* --- attributes --- */

static void
put_attr (MusterGraphBuilder *self, const char *name, const GByteArray *value)
{
  if (!check_node (self, name))
    return;
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  muster_proto_put_string (entry, ENTRY_KEY, name);
  muster_proto_put_bytes (entry, ENTRY_VALUE, value->data, value->len);
  muster_proto_put_bytes (self->node, NODE_ATTR, entry->data, entry->len);
}

/* A number, also 0: in a oneof an absent field differs from a zero. */
static void
put_number (MusterGraphBuilder *self, const char *name, guint32 field, guint64 number)
{
  g_autoptr (GByteArray) value = g_byte_array_new ();
  muster_proto_put_varint (value, (guint64)field << 3 | MUSTER_WIRE_VARINT);
  muster_proto_put_varint (value, number);
  put_attr (self, name, value);
}

void
muster_graph_builder_attr_type (MusterGraphBuilder *self, const char *name, MusterDType value)
{
  g_return_if_fail (self != NULL && name != NULL);
  put_number (self, name, ATTR_TYPE, value);
}

void
muster_graph_builder_attr_types (MusterGraphBuilder *self, const char *name,
                                 const MusterDType *values, gsize n)
{
  g_return_if_fail (self != NULL && name != NULL && (n == 0 || values != NULL));
  g_autoptr (GByteArray) packed = g_byte_array_new ();
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  for (gsize i = 0; i < n; i++)
    muster_proto_put_varint (packed, values[i]);
  if (n > 0)
    muster_proto_put_bytes (list, LIST_TYPE, packed->data, packed->len);
  muster_proto_put_bytes (value, ATTR_LIST, list->data, list->len);
  put_attr (self, name, value);
}

void
muster_graph_builder_attr_int (MusterGraphBuilder *self, const char *name, gint64 value)
{
  g_return_if_fail (self != NULL && name != NULL);
  put_number (self, name, ATTR_I, (guint64)value);
}

void
muster_graph_builder_attr_float (MusterGraphBuilder *self, const char *name, float value)
{
  g_return_if_fail (self != NULL && name != NULL);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint32 bits;
  memcpy (&bits, &value, sizeof bits);
  bits = GUINT32_TO_LE (bits);
  muster_proto_put_varint (bytes, ATTR_F << 3 | MUSTER_WIRE_FIXED32);
  g_byte_array_append (bytes, (const guint8 *)&bits, sizeof bits);
  put_attr (self, name, bytes);
}

void
muster_graph_builder_attr_bool (MusterGraphBuilder *self, const char *name, gboolean value)
{
  g_return_if_fail (self != NULL && name != NULL);
  put_number (self, name, ATTR_B, value ? 1 : 0);
}

void
muster_graph_builder_attr_string (MusterGraphBuilder *self, const char *name, const char *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  muster_proto_put_bytes (bytes, ATTR_S, value, strlen (value));
  put_attr (self, name, bytes);
}

static void
put_shape (GByteArray *to, guint32 field, int n_dims, const gint64 *dims)
{
  g_autoptr (GByteArray) shape = g_byte_array_new ();
  if (n_dims < 0)
    muster_proto_put_uint (shape, SHAPE_UNKNOWN_RANK, 1);
  for (int i = 0; i < n_dims; i++) {
    g_autoptr (GByteArray) dim = g_byte_array_new ();
    muster_proto_put_uint (dim, DIM_SIZE, (guint64)dims[i]);
    muster_proto_put_bytes (shape, SHAPE_DIM, dim->data, dim->len);
  }
  muster_proto_put_bytes (to, field, shape->data, shape->len);
}

void
muster_graph_builder_attr_shape (MusterGraphBuilder *self, const char *name, int n_dims,
                                 const gint64 *dims)
{
  g_return_if_fail (self != NULL && name != NULL && (n_dims <= 0 || dims != NULL));
  g_autoptr (GByteArray) value = g_byte_array_new ();
  put_shape (value, ATTR_SHAPE, n_dims, dims);
  put_attr (self, name, value);
}

void
muster_graph_builder_attr_shapes (MusterGraphBuilder *self, const char *name, gsize n, int n_dims,
                                  const gint64 *dims)
{
  g_return_if_fail (self != NULL && name != NULL && (n_dims <= 0 || dims != NULL));
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  for (gsize i = 0; i < n; i++)
    put_shape (list, LIST_SHAPE, n_dims, n_dims > 0 ? dims + i * (gsize)n_dims : NULL);
  muster_proto_put_bytes (value, ATTR_LIST, list->data, list->len);
  put_attr (self, name, value);
}

void
muster_graph_builder_attr_tensor (MusterGraphBuilder *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autoptr (GBytes) proto = muster_tensor_proto_write (value);
  muster_proto_put_bytes (bytes, ATTR_TENSOR, g_bytes_get_data (proto, NULL),
                          g_bytes_get_size (proto));
  put_attr (self, name, bytes);
}

void
muster_graph_builder_colocate (MusterGraphBuilder *self, const char *with)
{
  g_return_if_fail (self != NULL && with != NULL);
  g_autofree char *class = g_strconcat ("loc:@", with, NULL);
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  muster_proto_put_string (list, LIST_S, class);
  muster_proto_put_bytes (value, ATTR_LIST, list->data, list->len);
  put_attr (self, "_class", value);
}

/* --- whole nodes --- */

void
muster_graph_builder_constant (MusterGraphBuilder *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);
  muster_graph_builder_node (self, "Const", name);
  muster_graph_builder_attr_type (self, "dtype", muster_tensor_dtype (value));
  muster_graph_builder_attr_tensor (self, "value", value);
}

void
muster_graph_builder_placeholder (MusterGraphBuilder *self, const char *name, MusterDType dtype,
                                  int n_dims, const gint64 *dims)
{
  g_return_if_fail (self != NULL && name != NULL && (n_dims <= 0 || dims != NULL));
  muster_graph_builder_node (self, "Placeholder", name);
  muster_graph_builder_attr_type (self, "dtype", dtype);
  muster_graph_builder_attr_shape (self, "shape", n_dims, dims);
}

void
muster_graph_builder_variable (MusterGraphBuilder *self, const char *name,
                               MusterTensor *initial_value)
{
  g_return_if_fail (self != NULL && name != NULL && initial_value != NULL);

  const MusterDType dtype = muster_tensor_dtype (initial_value);
  g_autofree char *initial = g_strconcat (name, "/initial_value", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/read", NULL);

  muster_graph_builder_constant (self, initial, initial_value);
  muster_graph_builder_node (self, "VariableV2", name);
  muster_graph_builder_attr_type (self, "dtype", dtype);
  muster_graph_builder_attr_shape (self, "shape", muster_tensor_n_dims (initial_value),
                                   muster_tensor_dims (initial_value));
  muster_graph_builder_attr_string (self, "container", "");
  muster_graph_builder_attr_string (self, "shared_name", "");
  muster_graph_builder_node (self, "Assign", assign);
  muster_graph_builder_input (self, name);
  muster_graph_builder_input (self, initial);
  muster_graph_builder_attr_type (self, "T", dtype);
  muster_graph_builder_attr_bool (self, "use_locking", TRUE);
  muster_graph_builder_attr_bool (self, "validate_shape", TRUE);
  muster_graph_builder_colocate (self, name);
  muster_graph_builder_node (self, "Identity", read);
  muster_graph_builder_input (self, name);
  muster_graph_builder_attr_type (self, "T", dtype);
  muster_graph_builder_colocate (self, name);
}

void
muster_graph_builder_group (MusterGraphBuilder *self, const char *name, const char *const *ops)
{
  g_return_if_fail (self != NULL && name != NULL && ops != NULL);
  muster_graph_builder_node (self, "NoOp", name);
  for (; *ops != NULL; ops++) {
    g_autofree char *control = g_strconcat ("^", *ops, NULL);
    muster_graph_builder_input (self, control);
  }
}

static void
put_versions (MusterGraphBuilder *self)
{
  g_autoptr (GByteArray) versions = g_byte_array_new ();
  muster_proto_put_uint (versions, VERSIONS_PRODUCER, PRODUCER);
  muster_proto_put_bytes (self->nodes, GRAPH_VERSIONS, versions->data, versions->len);
}

MusterGraph *
muster_graph_builder_end (MusterGraphBuilder *self, GError **error)
{
  muster_require (error, NULL, self);
  end_node (self);
  if (self->mistake != NULL) {
    g_propagate_error (error, g_steal_pointer (&self->mistake));
    return NULL;
  }
  if (!self->is_extension)
    put_versions (self);
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (self->nodes);
  self->nodes = g_byte_array_new ();
  return muster_graph_new (bytes);
}
