// SPDX-License-Identifier: Apache-2.0
/* Reads the description of a TensorFlow 2 checkpoint (TrackableObjectGraph): a graph of objects
 * whose names lead to variables. It lists each tensor under the path in its key and under its
 * variable's full name, and finds a key by any other path. */
#include "checkpoint/format/object_graph.h"

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "base/unpack_private.h"

#include <string.h>

#define MAX_GRAPH_BYTES (512u << 20)
#define MAX_OBJECTS     (1u << 22) /* nodes, and children of nodes */

#define ATTRIBUTES "/.ATTRIBUTES/"
#define SLOT       "/.OPTIMIZER_SLOT/"
#define VARIABLE   "VARIABLE_VALUE"

/* TrackableObjectGraph's fields, and those of the messages in it. */
enum { GRAPH_NODES = 1 };
enum { NODE_CHILDREN = 1, NODE_ATTRIBUTES = 2 };
enum { CHILD_NODE_ID = 1, CHILD_LOCAL_NAME = 2 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FULL_NAME = 2, ATTRIBUTE_KEY = 3 };

typedef struct {
  const guint8 *data;
  gsize size;
} Bytes;

typedef struct {
  Bytes name, full_name, key;
} Attribute;

/* An object's child: its name there, and its node. */
typedef struct {
  guint parent, node;
  Bytes name;
} Child;

/* A full name's key, or the number of variables that have the name. */
typedef struct {
  const char *key;
  guint n;
} Called;

struct _MusterObjectNames {
  gatomicrefcount refs;
  MusterBundleReader *reader;
  MusterTensor *graph;    /* (owned) the message's bytes, which nodes point into */
  MusterArena *arena;     /* (owned) the texts */
  GArray *names;          /* (owned) (element-type MusterObjectName) */
  GArray *nodes;          /* (owned) (element-type Bytes) */
  GArray *children;       /* (owned) (element-type Child) sorted */
  GHashTable *by_key;     /* (owned) (element-type utf8 MusterObjectName) */
  GHashTable *by_path;    /* (owned) (element-type utf8 MusterObjectName) */
  GHashTable *full_names; /* (owned) (element-type utf8 Called) */
};

MusterObjectNames *
muster_object_names_ref (MusterObjectNames *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_object_names_free (MusterObjectNames *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->by_key);
  g_hash_table_unref (self->by_path);
  g_hash_table_unref (self->full_names);
  g_array_unref (self->names);
  g_array_unref (self->nodes);
  g_array_unref (self->children);
  muster_arena_free (self->arena);
  g_clear_pointer (&self->graph, muster_tensor_unref);
  muster_bundle_reader_unref (self->reader);
  g_free (self);
}

static gboolean
damaged (const MusterObjectNames *self, const char *why, GError **error)
{
  return muster_fail (
      error, MUSTER_ERROR_DATA_LOSS,
      "The object graph in the checkpoint '%s' (the tensor '" MUSTER_OBJECT_GRAPH_KEY
      "') is damaged: %s",
      muster_bundle_reader_prefix (self->reader), why);
}

static char *
copy_text (MusterObjectNames *self, const void *data, gsize size)
{
  char *copy = muster_arena_alloc (self->arena, size + 1);
  memcpy (copy, data, size);
  copy[size] = '\0';
  return copy;
}

static gboolean
is (Bytes bytes, const char *text)
{
  return bytes.size == strlen (text) && memcmp (bytes.data, text, bytes.size) == 0;
}

/* Restores a name that was escaped in a key: ".S" is '/', ".." is '.'. */
static void
append_unescaped (GString *path, const char *from, const char *to)
{
  for (; from < to; from++) {
    char c = *from;
    if (c == '.' && from + 1 < to && (from[1] == '.' || from[1] == 'S'))
      c = *++from == 'S' ? '/' : '.';
    g_string_append_c (path, c);
  }
}

/* Returns the path in a key. TensorFlow builds a key from the children's names on the shortest
 * way from the root, so the graph, which may have cycles, needn't be traversed. */
static const char *
path_of_key (MusterObjectNames *self, const char *key)
{
  const char *attribute = g_strrstr (key, ATTRIBUTES);
  if (attribute == NULL)
    return key;
  g_autoptr (GString) path = g_string_new (NULL);
  const char *slot = g_strstr_len (key, attribute - key, SLOT);
  if (slot != NULL) { /* KERNEL/.OPTIMIZER_SLOT/OPTIMIZER/m: the optimizer's m of KERNEL */
    append_unescaped (path, slot + strlen (SLOT), attribute);
    g_string_append_c (path, '/');
  }
  append_unescaped (path, key, slot != NULL ? slot : attribute);
  attribute += strlen (ATTRIBUTES);
  if (strcmp (attribute, VARIABLE) != 0) {
    g_string_append_c (path, '/');
    append_unescaped (path, attribute, attribute + strlen (attribute));
  }
  return copy_text (self, path->str, path->len);
}

static void
list_keys (MusterObjectNames *self)
{
  const gsize n = muster_bundle_reader_n_entries (self->reader);
  for (gsize i = 0; i < n; i++) {
    const char *key = muster_bundle_reader_entry (self->reader, i)->name;
    if (strcmp (key, MUSTER_OBJECT_GRAPH_KEY) == 0)
      continue;
    const MusterObjectName name = {.key = key, .path = path_of_key (self, key)};
    g_array_append_val (self->names, name);
  }
  for (guint i = 0; i < self->names->len; i++) {
    MusterObjectName *name = &g_array_index (self->names, MusterObjectName, i);
    g_hash_table_insert (self->by_key, (gpointer)name->key, name);
    g_hash_table_insert (self->by_path, (gpointer)name->path, name);
  }
}

static Bytes
bytes_of (const MusterProtoField *field)
{
  return field->type == MUSTER_WIRE_BYTES ? (Bytes){field->data, field->size} : (Bytes){0};
}

static gboolean
read_attribute (Bytes bytes, Attribute *attribute)
{
  MusterProtoReader reader = muster_proto_reader (bytes.data, bytes.size);
  MusterProtoField field;
  *attribute = (Attribute){0};
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == ATTRIBUTE_NAME)
      attribute->name = bytes_of (&field);
    else if (field.number == ATTRIBUTE_FULL_NAME)
      attribute->full_name = bytes_of (&field);
    else if (field.number == ATTRIBUTE_KEY)
      attribute->key = bytes_of (&field);
  }
  return muster_proto_at_end (&reader);
}

/* Gives a tensor the name that its variable had. */
static gboolean
note_attribute (MusterObjectNames *self, const Attribute *attribute, GError **error)
{
  const Bytes *full = &attribute->full_name, *key = &attribute->key;
  if (full->size == 0 || key->size == 0)
    return TRUE;
  if (!g_utf8_validate_len ((const char *)full->data, full->size, NULL) ||
      memchr (full->data, '\0', full->size) != NULL)
    return damaged (self, "a variable's name isn't UTF-8", error);
  g_autofree char *key_text = g_strndup ((const char *)key->data, key->size);
  MusterObjectName *name = g_hash_table_lookup (self->by_key, key_text);
  if (name == NULL ||
      name->full_name != NULL) /* the key of a table has a suffix; or another alias */
    return TRUE;
  name->full_name = copy_text (self, full->data, full->size);
  Called *called = g_hash_table_lookup (self->full_names, name->full_name);
  if (called == NULL) {
    called = muster_arena_alloc (self->arena, sizeof *called);
    *called = (Called){.key = name->key};
    g_hash_table_insert (self->full_names, (gpointer)name->full_name, called);
  }
  called->n++;
  return TRUE;
}

static gboolean
too_many (const MusterObjectNames *self, const char *what, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "The object graph in the checkpoint '%s' has more than %u %s",
                      muster_bundle_reader_prefix (self->reader), MAX_OBJECTS, what);
}

static gboolean
note_child (MusterObjectNames *self, Bytes bytes, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (bytes.data, bytes.size);
  MusterProtoField field;
  Child child = {.parent = self->nodes->len - 1};
  guint64 node = 0;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == CHILD_NODE_ID && field.type == MUSTER_WIRE_VARINT)
      node = field.value;
    else if (field.number == CHILD_LOCAL_NAME)
      child.name = bytes_of (&field);
  }
  if (!muster_proto_at_end (&reader))
    return damaged (self, "a child is truncated", error);
  if (self->children->len == MAX_OBJECTS)
    return too_many (self, "children", error);
  child.node = (guint)MIN (node, G_MAXUINT);
  g_array_append_val (self->children, child);
  return TRUE;
}

static gboolean
note_node (MusterObjectNames *self, Bytes node, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (node.data, node.size);
  MusterProtoField field;
  Attribute attribute;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == NODE_CHILDREN && !note_child (self, bytes_of (&field), error))
      return FALSE;
    if (field.number != NODE_ATTRIBUTES)
      continue;
    if (!read_attribute (bytes_of (&field), &attribute))
      return damaged (self, "an attribute is truncated", error);
    if (!note_attribute (self, &attribute, error))
      return FALSE;
  }
  return muster_proto_at_end (&reader) || damaged (self, "a node is truncated", error);
}

static int
compare_children (gconstpointer a, gconstpointer b)
{
  const Child *x = a, *y = b;
  if (x->parent != y->parent)
    return x->parent < y->parent ? -1 : 1;
  if (x->name.size != y->name.size)
    return x->name.size < y->name.size ? -1 : 1;
  return x->name.size == 0 ? 0 : memcmp (x->name.data, y->name.data, x->name.size);
}

static gboolean
read_nodes (MusterObjectNames *self, GError **error)
{
  const MusterString message = muster_tensor_string (self->graph, 0);
  MusterProtoReader reader = muster_proto_reader (message.data, message.size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != GRAPH_NODES)
      continue;
    const Bytes node = bytes_of (&field);
    if (self->nodes->len == MAX_OBJECTS)
      return too_many (self, "objects", error);
    g_array_append_val (self->nodes, node);
    if (!note_node (self, node, error))
      return FALSE;
  }
  g_array_sort (self->children, compare_children);
  return muster_proto_at_end (&reader) || damaged (self, "it is truncated", error);
}

static gboolean
load (MusterObjectNames *self, const MusterBundleEntry *entry, GError **error)
{
  if (entry->dtype != MUSTER_STRING || entry->n_dims != 0)
    return damaged (self, "it is not a string", error);
  if (entry->size > MAX_GRAPH_BYTES) {
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "The object graph in the checkpoint '%s' has %" G_GINT64_FORMAT
                        " bytes; muster reads at most %u",
                        muster_bundle_reader_prefix (self->reader), entry->size, MAX_GRAPH_BYTES);
  }
  self->graph = muster_bundle_reader_read (self->reader, MUSTER_OBJECT_GRAPH_KEY, error);
  if (self->graph == NULL)
    return FALSE;
  list_keys (self);
  return read_nodes (self, error);
}

MusterObjectNames *
muster_object_names_read (MusterBundleReader *reader, GError **error)
{
  muster_require (error, NULL, reader);
  const MusterBundleEntry *entry = muster_bundle_reader_find (reader, MUSTER_OBJECT_GRAPH_KEY);
  if (entry == NULL)
    return NULL;
  g_autoptr (MusterObjectNames) self = g_new0 (MusterObjectNames, 1);
  g_atomic_ref_count_init (&self->refs);
  self->reader = muster_bundle_reader_ref (reader);
  self->arena = muster_arena_new ();
  self->names = g_array_new (FALSE, FALSE, sizeof (MusterObjectName));
  self->nodes = g_array_new (FALSE, FALSE, sizeof (Bytes));
  self->children = g_array_new (FALSE, FALSE, sizeof (Child));
  self->by_key = g_hash_table_new (g_str_hash, g_str_equal);
  self->by_path = g_hash_table_new (g_str_hash, g_str_equal);
  self->full_names = g_hash_table_new (g_str_hash, g_str_equal);
  return load (self, entry, error) ? g_steal_pointer (&self) : NULL;
}

gsize
muster_object_names_n (const MusterObjectNames *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->names->len;
}

const MusterObjectName *
muster_object_names_at (const MusterObjectNames *self, gsize i)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (i < self->names->len, NULL);
  return &g_array_index (self->names, MusterObjectName, i);
}

const MusterObjectName *
muster_object_names_find (const MusterObjectNames *self, const char *key)
{
  g_return_val_if_fail (self != NULL && key != NULL, NULL);
  return g_hash_table_lookup (self->by_key, key);
}

/* Finds a variable's key by another path. The number of steps is that of the name's parts, so
 * cycles don't matter. */
static const char *
walk (const MusterObjectNames *self, const char *path)
{
  g_auto (GStrv) parts = g_strsplit (path, "/", -1);
  guint node = 0, at;
  for (char **part = parts; *part != NULL; part++) {
    const Child wanted = {.parent = node, .name = {(const guint8 *)*part, strlen (*part)}};
    if (!g_array_binary_search (self->children, &wanted, compare_children, &at))
      return NULL;
    node = g_array_index (self->children, Child, at).node;
  }
  if (node >= self->nodes->len)
    return NULL;
  const Bytes bytes = g_array_index (self->nodes, Bytes, node);
  MusterProtoReader reader = muster_proto_reader (bytes.data, bytes.size);
  MusterProtoField field;
  Attribute attribute;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != NODE_ATTRIBUTES || !read_attribute (bytes_of (&field), &attribute) ||
        !is (attribute.name, VARIABLE) || attribute.key.size == 0)
      continue;
    g_autofree char *key = g_strndup ((const char *)attribute.key.data, attribute.key.size);
    const MusterObjectName *name = g_hash_table_lookup (self->by_key, key);
    return name != NULL ? name->key : NULL;
  }
  return NULL;
}

const char *
muster_object_names_key_of (const MusterObjectNames *self, const char *name, guint *n_found)
{
  g_return_val_if_fail (self != NULL && name != NULL, NULL);
  const MusterObjectName *found = g_hash_table_lookup (self->by_key, name);
  const Called *called = g_hash_table_lookup (self->full_names, name);
  const char *key = NULL;
  guint n = 0;
  if (found == NULL && (called == NULL || called->n > 1))
    found = g_hash_table_lookup (self->by_path, name);
  if (found != NULL)
    key = found->key;
  else if (called != NULL)
    n = called->n, key = n == 1 ? called->key : NULL;
  else
    key = walk (self, name);
  if (n_found != NULL)
    *n_found = key != NULL ? 1 : n;
  return key;
}
