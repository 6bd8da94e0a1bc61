// SPDX-License-Identifier: Apache-2.0
/* Reads nodes: attributes by type, constants, a graph's versions, and the shape that a tensor
 * may be fed with. */
#include "graph/graph_nodes_private.h"

#include "base/protowire_private.h"
#include "graph/tensor_proto_private.h"

#include <string.h>

/* tensorflow.GraphDef, VersionDef */
enum { GRAPH_VERSIONS = 4, VERSION_PRODUCER = 1, VERSION_MIN_CONSUMER = 2, VERSION_BAD = 3 };

/* TensorFlow's shape function of Placeholder has this bound. */
#define LAST_SHAPELESS_PRODUCER 21

const Tensorflow__AttrValue *
muster_attr_find (Tensorflow__NodeDef__AttrEntry *const *attrs, gsize n, const char *name)
{
  for (gsize i = n; i > 0; i--)
    if (strcmp (attrs[i - 1]->key, name) == 0)
      return attrs[i - 1]->value;
  return NULL;
}

const Tensorflow__AttrValue *
muster_node_attr (const MusterNode *node, const char *name)
{
  return muster_attr_find (node->kind->attr, node->kind->n_attr, name);
}

char *
muster_graph_input_text (MusterGraph *self, const MusterNode *node, gsize i)
{
  int output;
  const char *name = muster_graph_node (self, muster_node_input (node, i, &output))->name;
  if (output < 0)
    return g_strconcat ("^", name, NULL);
  if (output == 0 && node->inputs[i].output != MUSTER_NODE_ZERO)
    return g_strdup (name);
  return g_strdup_printf ("%s:%d", name, output);
}

static const Tensorflow__AttrValue *
attr_of_kind (const MusterNode *node, const char *name, Tensorflow__AttrValue__ValueCase kind)
{
  const Tensorflow__AttrValue *attr = muster_node_attr (node, name);
  return attr != NULL && attr->value_case == kind ? attr : NULL;
}

MusterDType
muster_node_dtype (const MusterNode *node, const char *name, MusterDType fallback)
{
  const Tensorflow__AttrValue *attr = attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_TYPE);
  return attr != NULL ? (MusterDType)attr->type : fallback;
}

gint64
muster_node_int (const MusterNode *node, const char *name, gint64 fallback)
{
  const Tensorflow__AttrValue *attr = attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_I);
  return attr != NULL ? attr->i : fallback;
}

gboolean
muster_node_bool (const MusterNode *node, const char *name, gboolean fallback)
{
  const Tensorflow__AttrValue *attr = attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_B);
  return attr != NULL ? attr->b != 0 : fallback;
}

float
muster_node_float (const MusterNode *node, const char *name, float fallback)
{
  const Tensorflow__AttrValue *attr = attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_F);
  return attr != NULL ? attr->f : fallback;
}

char *
muster_node_string (const MusterNode *node, const char *name)
{
  const Tensorflow__AttrValue *attr = attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_S);
  return attr != NULL ? g_strndup ((const char *)attr->s.data, attr->s.len) : NULL;
}

int
muster_node_shape (const MusterNode *node, const char *name, gint64 *dims, int max)
{
  const Tensorflow__AttrValue *attr =
      attr_of_kind (node, name, TENSORFLOW__ATTR_VALUE__VALUE_SHAPE);
  if (attr == NULL || attr->shape->unknown_rank || attr->shape->n_dim > G_MAXINT)
    return -1;
  const int n_dims = (int)attr->shape->n_dim;
  for (int i = 0; i < MIN (n_dims, max); i++)
    dims[i] = attr->shape->dim[i]->size;
  return n_dims;
}

/* GraphDef's field of nodes, and NodeDef's of inputs, of which the control inputs are the last. */
enum { GRAPH_NODE = 1, NODE_INPUT = 3 };

MusterNodeBytes *
muster_graph_node_bytes (MusterGraph *self)
{
  if (!muster_graph_parse (self, NULL))
    return NULL;
  MusterNodeBytes *nodes = g_new (MusterNodeBytes, muster_graph_n_nodes (self) + 1), *to = nodes;
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (self), &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == GRAPH_NODE)
      *to++ = (MusterNodeBytes){field.data, field.size};
  return nodes;
}

MusterGraph *
muster_graph_with_control_input (MusterGraph *self, const guint8 *chosen, const char *after)
{
  if (!muster_graph_parse (self, NULL))
    return NULL;
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (self), &size);
  g_autofree char *control = g_strconcat ("^", after, NULL);
  g_autoptr (GByteArray) input = g_byte_array_new ();
  GByteArray *out = g_byte_array_sized_new ((guint)size);
  muster_proto_put_string (input, NODE_INPUT, control);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gsize node = 0;
  for (const guint8 *from = reader.at; muster_proto_read_field (&reader, &field);
       from = reader.at) {
    if (field.number != GRAPH_NODE || !chosen[node++]) {
      g_byte_array_append (out, from, (guint)(reader.at - from));
      continue;
    }
    muster_proto_put_head (out, GRAPH_NODE, field.size + input->len);
    g_byte_array_append (out, field.data, (guint)field.size);
    g_byte_array_append (out, input->data, input->len);
  }
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (out);
  return muster_graph_new (bytes);
}

MusterDType
muster_graph_placeholder_dtype (MusterGraph *self, const char *tensor)
{
  g_return_val_if_fail (self != NULL && tensor != NULL, MUSTER_INVALID);
  g_autofree char *name = NULL;
  if (muster_graph_split_input (tensor, &name) != 0)
    return MUSTER_INVALID;
  const MusterNode *node = muster_graph_find_node (self, name);
  if (node == NULL || !g_str_has_prefix (node->kind->op, "Placeholder"))
    return MUSTER_INVALID;
  return muster_node_dtype (node, "dtype", MUSTER_INVALID);
}

gssize
muster_graph_find_named (MusterGraph *self, const char *name)
{
  g_autofree char *op = NULL;

  if (name == NULL)
    return -1;
  (void)muster_graph_split_input (name, &op);
  return muster_graph_find (self, op, strlen (op));
}

MusterTensor *
muster_node_constant (const MusterNode *node)
{
  const Tensorflow__AttrValue *value = muster_node_attr (node, "value");
  if (value == NULL || strcmp (node->kind->op, "Const") != 0 ||
      value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR)
    return NULL;
  return muster_tensor_proto_read (value->tensor.data, value->tensor.len, NULL, NULL);
}

/* --- versions --- */

static gboolean
has_bad_consumer (const MusterProtoField *field, gint32 consumer)
{
  guint64 value = field->value;
  gboolean is_bad = field->type == MUSTER_WIRE_VARINT && (gint32)value == consumer;
  if (field->type != MUSTER_WIRE_BYTES)
    return is_bad;
  MusterProtoReader packed = muster_proto_reader (field->data, field->size);
  while (!muster_proto_at_end (&packed) && muster_proto_read_varint (&packed, &value))
    is_bad = is_bad || (gint32)value == consumer;
  return is_bad;
}

static void
read_versions (const MusterProtoField *from, gint32 consumer, MusterGraphVersions *versions)
{
  MusterProtoReader reader = muster_proto_reader (from->data, from->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == VERSION_PRODUCER && field.type == MUSTER_WIRE_VARINT)
      versions->producer = (gint32)field.value;
    else if (field.number == VERSION_MIN_CONSUMER && field.type == MUSTER_WIRE_VARINT)
      versions->min_consumer = (gint32)field.value;
    else if (field.number == VERSION_BAD && has_bad_consumer (&field, consumer))
      versions->is_bad = TRUE;
  }
}

static void
read_graph_versions (GBytes *graph, gint32 consumer, MusterGraphVersions *versions)
{
  gsize size;
  const void *data = g_bytes_get_data (graph, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == GRAPH_VERSIONS && field.type == MUSTER_WIRE_BYTES)
      read_versions (&field, consumer, versions);
}

MusterGraphVersions
muster_graph_versions (MusterGraph *self, gint32 consumer)
{
  MusterGraphVersions versions = {0};
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_graph_put (self, &rope);
  const GPtrArray *pieces = muster_rope_pieces (&rope);
  for (guint i = 0; i < pieces->len; i++)
    read_graph_versions (pieces->pdata[i], consumer, &versions);
  return versions;
}

int
muster_graph_feed_shape (MusterGraph *self, const MusterNode *placeholder, gint64 *dims, int max)
{
  const int n_dims = muster_node_shape (placeholder, "shape", dims, max);
  if (n_dims == 0 && strcmp (placeholder->kind->op, "Placeholder") == 0 &&
      muster_graph_versions (self, 0).producer <= LAST_SHAPELESS_PRODUCER)
    return -1;
  return n_dims;
}
