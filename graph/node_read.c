// SPDX-License-Identifier: Apache-2.0
/* Reads the nodes of a GraphDef: one pass over its bytes, which checks all of them. */
#include "graph/node_table_private.h"

#include "base/hash_private.h"
#include "base/protowire_private.h"
#include "base/unpack_private.h"

enum { GRAPH_NODE = 1, NODE_NAME = 1, NODE_INPUT = 3, NODE_ATTR = 5, ATTR_KEY = 1 };

/* The depth of a node in a graph. */
#define NODE_DEPTH 1

/* Consecutive fields of a node. */
typedef struct {
  const guint8 *data;
  gsize size;
} Span;

/* A node's fields but for its name, inputs and internal attributes: mostly the op, and the device
 * and attributes behind the inputs, before and after the internal ones. Nodes in which they are the
 * same bytes have one kind. */
#define MOST_SPANS 4
typedef struct {
  Span spans[MOST_SPANS];
  gsize n;
} KindBytes;

typedef struct {
  KindBytes bytes;
  const MusterNodeKind *kind; /* NULL: empty */
} Known;

/* Each place holds the last one that fell to it. */
#define MOST_KNOWN 4096

typedef struct {
  MusterNodeTable *table;
  MusterUnpacker *unpacker; /* (owned) */
  Known *known;             /* (owned) */
  gsize n_known;            /* a power of two */
} Reader;

static void
reader_clear (Reader *self)
{
  g_clear_pointer (&self->unpacker, muster_unpacker_free);
  g_clear_pointer (&self->known, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reader, reader_clear)

/* Checks one field of the graph, for its error. */
static gboolean
check (Span field, GError **error)
{
  return muster_unpack_check (&tensorflow__graph_def__descriptor, field.data, field.size, "graph",
                              error);
}

/* --- kinds --- */

static gboolean
same_bytes (const KindBytes *a, const KindBytes *b)
{
  gboolean are_same = a->n == b->n;
  for (gsize i = 0; are_same && i < a->n; i++)
    are_same = a->spans[i].size == b->spans[i].size &&
               memcmp (a->spans[i].data, b->spans[i].data, a->spans[i].size) == 0;
  return are_same;
}

static Known *
place_of (const Reader *self, const KindBytes *bytes)
{
  guint64 hash = 0;
  for (gsize i = 0; i < bytes->n; i++)
    hash = muster_hash_bytes (bytes->spans[i].data, bytes->spans[i].size, hash);
  return &self->known[hash & (self->n_known - 1)];
}

static gboolean
unpack_kind (const Reader *self, const KindBytes *bytes, Tensorflow__NodeDef *def, GError **error)
{
  tensorflow__node_def__init (def);
  for (gsize i = 0; i < bytes->n; i++)
    if (!muster_unpacker_add (self->unpacker, &def->base, bytes->spans[i].data,
                              bytes->spans[i].size, NODE_DEPTH, error))
      return FALSE;
  return TRUE;
}

static const MusterNodeKind *
new_kind (const Reader *self, const Tensorflow__NodeDef *def)
{
  MusterNodeKind *kind = muster_arena_take (self->table->arena, sizeof *kind, 8);
  *kind = (MusterNodeKind){def->op, def->device, def->n_attr, def->attr};
  return kind;
}

static const MusterNodeKind *
kind_of (const Reader *self, const KindBytes *bytes, GError **error)
{
  Known *known = place_of (self, bytes);
  if (known->kind != NULL && same_bytes (&known->bytes, bytes))
    return known->kind;
  Tensorflow__NodeDef def;
  if (!unpack_kind (self, bytes, &def, error))
    return NULL;
  *known = (Known){*bytes, new_kind (self, &def)};
  return known->kind;
}

/* --- nodes --- */

/* The places of a node's fields. */
typedef struct {
  Span name;
  KindBytes kind;
  gsize n_inputs;
  gboolean is_plain; /* the kind is in these few spans */
} Layout;

static void
add_to_kind (Layout *self, const guint8 *start, const guint8 *end)
{
  KindBytes *kind = &self->kind;
  Span *last = kind->n > 0 ? &kind->spans[kind->n - 1] : NULL;
  if (last != NULL && last->data + last->size == start)
    last->size += (gsize)(end - start);
  else if (kind->n < MOST_SPANS)
    kind->spans[kind->n++] = (Span){start, (gsize)(end - start)};
  else
    self->is_plain = FALSE;
}

/* TensorFlow's own attributes, such as "_class", differ in nodes that are the same otherwise. */
static gboolean
is_internal (const MusterProtoField *field)
{
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  MusterProtoField part;
  gboolean is_internal = FALSE;
  if (field->number != NODE_ATTR || field->type != MUSTER_WIRE_BYTES)
    return FALSE;
  while (muster_proto_read_field (&reader, &part))
    if (part.number == ATTR_KEY)
      is_internal = part.type == MUSTER_WIRE_BYTES && part.size > 0 && part.data[0] == '_';
  return is_internal;
}

static gboolean
lay_out_field (const Reader *self, Layout *layout, const MusterProtoField *field, Span whole)
{
  if (field->number != NODE_NAME && field->number != NODE_INPUT) {
    if (is_internal (field))
      return muster_unpacker_check (self->unpacker, &tensorflow__node_def__descriptor, whole.data,
                                    whole.size, NODE_DEPTH);
    add_to_kind (layout, whole.data, whole.data + whole.size);
    return TRUE;
  }
  if (field->type != MUSTER_WIRE_BYTES || !muster_is_text (field->data, field->size))
    return FALSE;
  if (field->number == NODE_NAME)
    layout->name = (Span){field->data, field->size};
  else
    layout->n_inputs++;
  return TRUE;
}

/* FALSE if something but the kind is malformed. */
static gboolean
lay_out (const Reader *self, Layout *layout, Span node)
{
  MusterProtoReader reader = muster_proto_reader (node.data, node.size);
  MusterProtoField field;
  *layout = (Layout){.is_plain = TRUE};
  for (const guint8 *start = reader.at; muster_proto_read_field (&reader, &field);
       start = reader.at)
    if (!lay_out_field (self, layout, &field, (Span){start, (gsize)(reader.at - start)}))
      return FALSE;
  return muster_proto_at_end (&reader);
}

static gboolean
fits (const Reader *self, gsize size, GError **error)
{
  (void)muster_arena_has_room (self->table->arena, size);
  return muster_arena_fits (self->table->arena, error);
}

static const char *
copy_name (const Reader *self, Span name)
{
  char *copy = muster_arena_take (self->table->arena, name.size + 1, 1);
  if (name.size > 0)
    memcpy (copy, name.data, name.size);
  copy[name.size] = '\0';
  return copy;
}

static MusterNodeInput *
note_inputs (const Reader *self, Span node, gsize n)
{
  MusterProtoReader reader = muster_proto_reader (node.data, node.size);
  MusterProtoField field;
  MusterNodeInput *inputs =
      n > 0 ? muster_arena_take (self->table->arena, n * sizeof *inputs, 8) : NULL;
  for (gsize i = 0; i < n;) {
    const guint8 *start = reader.at;
    (void)muster_proto_read_field (&reader, &field); /* which worked before */
    if (field.number == NODE_INPUT)
      muster_node_input_set_raw (&inputs[i++], start);
  }
  return inputs;
}

/* A kind in many pieces, which nobody writes: field by field. */
static const MusterNodeKind *
kind_in_pieces (const Reader *self, Span node, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (node.data, node.size);
  MusterProtoField field;
  Tensorflow__NodeDef def = TENSORFLOW__NODE_DEF__INIT;
  for (const guint8 *start = reader.at; muster_proto_read_field (&reader, &field);
       start = reader.at)
    if (field.number != NODE_NAME && field.number != NODE_INPUT && !is_internal (&field) &&
        !muster_unpacker_add (self->unpacker, &def.base, start, (gsize)(reader.at - start),
                              NODE_DEPTH, error))
      return NULL;
  return new_kind (self, &def);
}

/* field is the graph's, node what is in it. */
static gboolean
read_node (const Reader *self, MusterNode *to, Span field, Span node, GError **error)
{
  Layout layout;
  if (!lay_out (self, &layout, node))
    return check (field, error);
  if (!fits (self, layout.name.size + layout.n_inputs * sizeof (MusterNodeInput), error))
    return FALSE;
  to->kind =
      layout.is_plain ? kind_of (self, &layout.kind, error) : kind_in_pieces (self, node, error);
  if (to->kind == NULL)
    return FALSE;
  to->name = copy_name (self, layout.name);
  to->n_input = layout.n_inputs;
  to->inputs = note_inputs (self, node, layout.n_inputs);
  return muster_arena_fits (self->table->arena, error);
}

static gsize
count_nodes (const void *data, gsize size)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gsize n = 0;
  while (muster_proto_read_field (&reader, &field))
    n += field.number == GRAPH_NODE && field.type == MUSTER_WIRE_BYTES;
  return n;
}

static gboolean
read_fields (const Reader *self, const void *data, gsize size, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  MusterNode *to = self->table->nodes;
  while (!muster_proto_at_end (&reader)) {
    const guint8 *start = reader.at;
    const gboolean is_read = muster_proto_read_field (&reader, &field);
    const Span bytes = {start, (gsize)((is_read ? reader.at : reader.end) - start)};
    if (!is_read || field.number != GRAPH_NODE || field.type != MUSTER_WIRE_BYTES) {
      if (!check (bytes, error))
        return FALSE;
    } else if (!read_node (self, to++, bytes, (Span){field.data, field.size}, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

static void
reader_init (Reader *self, MusterNodeTable *table, gsize size)
{
  *self = (Reader){
      .table = table, .unpacker = muster_unpacker_new (table->arena, "graph", size), .n_known = 16};
  while (self->n_known < MIN (table->n_nodes, MOST_KNOWN))
    self->n_known *= 2;
  self->known = g_new0 (Known, self->n_known);
}

gboolean
muster_node_table_read_nodes (MusterNodeTable *self, const void *data, gsize size, GError **error)
{
  g_auto (Reader) reader = {0};
  self->n_nodes = count_nodes (data, size);
  reader_init (&reader, self, size);
  if (!fits (&reader, self->n_nodes * sizeof (MusterNode), error))
    return FALSE;
  self->nodes = muster_arena_alloc (self->arena, self->n_nodes * sizeof (MusterNode));
  return read_fields (&reader, data, size, error);
}
