// SPDX-License-Identifier: Apache-2.0
/* Looks into the functions that a graph's nodes call: which of their arguments they change, and
 * which ops they have. Where that can't be found out, an argument may be changed. */
#include "graph/functions_private.h"

#include "base/protowire_private.h"
#include "base/rope_private.h"
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"

#include <string.h>

#define MOST_BODIES 10000 /* read for one question: functions may call one another in circles */

enum {
  GRAPH_LIBRARY = 2,
  LIBRARY_FUNCTION = 1,
  FUNCTION_SIGNATURE = 1,
  FUNCTION_NODE = 3,
  SIGNATURE_NAME = 1,
  SIGNATURE_ARGUMENT = 2,
  ARGUMENT_NAME = 1
};

struct _MusterFunctions {
  MusterRope rope;                     /* (owned) the graph's bytes */
  GHashTable *by_name;                 /* (owned) (element-type utf8 MusterNodeBytes) */
  guint n_left;                        /* bodies that may still be read */
  gboolean (*writes) (const char *op); /* (nullable) */
};

/* A function's body. */
typedef struct {
  MusterArena *arena;   /* (owned) */
  GPtrArray *arguments; /* (owned) (element-type utf8) names */
  GPtrArray *nodes;     /* (owned) (element-type Tensorflow__NodeDef), the arena's */
} Body;

static void
body_clear (Body *self)
{
  g_clear_pointer (&self->nodes, g_ptr_array_unref);
  g_clear_pointer (&self->arguments, g_ptr_array_unref);
  g_clear_pointer (&self->arena, muster_arena_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Body, body_clear)

/* --- the library --- */

/* Reads the next field of a number that has bytes. FALSE at the end, and for malformed bytes. */
static gboolean
next_of (MusterProtoReader *reader, guint32 number, MusterProtoField *field)
{
  while (muster_proto_read_field (reader, field))
    if (field->number == number && field->type == MUSTER_WIRE_BYTES)
      return TRUE;
  return FALSE;
}

/* The text of a field in a message in another one's bytes. (transfer full) (nullable) */
static char *
text_of (const guint8 *data, gsize size, guint32 number)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  return next_of (&reader, number, &field) ? g_strndup ((const char *)field.data, field.size)
                                           : NULL;
}

static void
add_function (MusterFunctions *self, const MusterProtoField *function)
{
  const MusterNodeBytes bytes = {function->data, function->size};
  MusterProtoReader reader = muster_proto_reader (bytes.data, bytes.size);
  MusterProtoField signature;
  char *name = next_of (&reader, FUNCTION_SIGNATURE, &signature)
                   ? text_of (signature.data, signature.size, SIGNATURE_NAME)
                   : NULL;
  if (name != NULL)
    g_hash_table_replace (self->by_name, name, g_memdup2 (&bytes, sizeof bytes));
}

MusterFunctions *
muster_functions_new (MusterGraph *graph)
{
  MusterFunctions *self = g_new0 (MusterFunctions, 1);
  self->by_name = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  muster_graph_put (graph, &self->rope);
  const GPtrArray *pieces = muster_rope_pieces (&self->rope);
  for (guint i = 0; i < pieces->len; i++) {
    gsize size;
    const guint8 *data = g_bytes_get_data (pieces->pdata[i], &size);
    MusterProtoReader whole = muster_proto_reader (data, size);
    MusterProtoField library, function;
    while (next_of (&whole, GRAPH_LIBRARY, &library)) {
      MusterProtoReader reader = muster_proto_reader (library.data, library.size);
      while (next_of (&reader, LIBRARY_FUNCTION, &function))
        add_function (self, &function);
    }
  }
  return self;
}

void
muster_functions_free (MusterFunctions *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->by_name);
  muster_rope_clear (&self->rope);
  g_free (self);
}

/* FALSE for a function that can't be read, or is one too many. */
static gboolean
read_body (MusterFunctions *self, const char *name, Body *body)
{
  const MusterNodeBytes *bytes = g_hash_table_lookup (self->by_name, name);
  MusterProtoField field, argument;
  *body = (Body){.arena = muster_arena_new (),
                 .arguments = g_ptr_array_new_with_free_func (g_free),
                 .nodes = g_ptr_array_new ()};
  if (bytes == NULL || self->n_left == 0)
    return FALSE;
  self->n_left--;
  MusterProtoReader reader = muster_proto_reader (bytes->data, bytes->size);
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == FUNCTION_SIGNATURE && field.type == MUSTER_WIRE_BYTES) {
      MusterProtoReader signature = muster_proto_reader (field.data, field.size);
      while (next_of (&signature, SIGNATURE_ARGUMENT, &argument))
        g_ptr_array_add (body->arguments, text_of (argument.data, argument.size, ARGUMENT_NAME));
    }
    if (field.number != FUNCTION_NODE || field.type != MUSTER_WIRE_BYTES)
      continue;
    gpointer node = muster_unpack (&tensorflow__node_def__descriptor, field.data, field.size,
                                   body->arena, "function", NULL);
    if (node == NULL)
      return FALSE;
    g_ptr_array_add (body->nodes, node);
  }
  return TRUE;
}

/* Adds the functions that attributes name. */
static void
add_called (GPtrArray *names, Tensorflow__NodeDef__AttrEntry *const *attrs, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    const Tensorflow__AttrValue *value = attrs[i]->value;
    if (value == NULL)
      continue;
    if (value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC)
      g_ptr_array_add (names, g_strdup (value->func->name));
    for (gsize k = 0;
         value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && k < value->list->n_func; k++)
      g_ptr_array_add (names, g_strdup (value->list->func[k]->name));
  }
}

static GPtrArray *
called_by (Tensorflow__NodeDef__AttrEntry *const *attrs, gsize n)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  add_called (names, attrs, n);
  return names;
}

/* --- what they write --- */

/* The first input of these ops chooses the function. */
static gsize
first_argument (const char *op)
{
  return g_str_has_suffix (op, "If") || g_str_has_suffix (op, "Case") ? 1 : 0;
}

/* TRUE if a node's input is one of the tensors. */
static gboolean
is_held (GHashTable *held, const char *input)
{
  g_autofree char *name = g_strndup (input, strcspn (input, ":"));

  return g_hash_table_contains (held, name);
}

/* Adds the names under which a body passes an argument on. */
static void
hold (const Body *body, GHashTable *held)
{
  static const char *const pass[] = {"Identity", "Enter", "Switch", NULL};
  for (gboolean changed = TRUE; changed;) {
    changed = FALSE;
    for (guint i = 0; i < body->nodes->len; i++) {
      const Tensorflow__NodeDef *node = body->nodes->pdata[i];
      if (node->n_input > 0 && g_strv_contains (pass, node->op) && is_held (held, node->input[0]))
        changed |= g_hash_table_add (held, node->name);
    }
  }
}

static gboolean may_write (MusterFunctions *self, const GPtrArray *names, gsize argument);

static gboolean
body_may_write (MusterFunctions *self, const Body *body, GHashTable *held)
{
  for (guint i = 0; i < body->nodes->len; i++) {
    const Tensorflow__NodeDef *node = body->nodes->pdata[i];
    g_autoptr (GPtrArray) called = called_by (node->attr, node->n_attr);
    for (gsize k = 0; k < node->n_input; k++) {
      if (!is_held (held, node->input[k]))
        continue;
      if (self->writes (node->op) || (k >= first_argument (node->op) &&
                                      may_write (self, called, k - first_argument (node->op))))
        return TRUE;
    }
  }
  return FALSE;
}

static gboolean
may_write (MusterFunctions *self, const GPtrArray *names, gsize argument)
{
  for (guint i = 0; i < names->len; i++) {
    g_auto (Body) body = {0};
    g_autoptr (GHashTable) held = g_hash_table_new (g_str_hash, g_str_equal);
    if (!read_body (self, names->pdata[i], &body) || argument >= body.arguments->len ||
        body.arguments->pdata[argument] == NULL)
      return TRUE;
    g_hash_table_add (held, body.arguments->pdata[argument]);
    hold (&body, held);
    if (body_may_write (self, &body, held))
      return TRUE;
  }
  return FALSE;
}

gboolean
muster_functions_may_write (MusterFunctions *self, const MusterNode *call, gsize input,
                            gboolean (*writes) (const char *op))
{
  const gsize first = first_argument (call->kind->op);
  g_autoptr (GPtrArray) called = called_by (call->kind->attr, call->kind->n_attr);
  self->n_left = MOST_BODIES;
  self->writes = writes;
  return called->len == 0 || (input >= first && may_write (self, called, input - first));
}

/* --- which ops they have --- */

gboolean
muster_functions_have (MusterFunctions *self, const MusterNode *node,
                       gboolean (*wanted) (const char *op))
{
  g_autoptr (GPtrArray) names = called_by (node->kind->attr, node->kind->n_attr);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  self->n_left = MOST_BODIES;
  for (guint i = 0; i < names->len; i++) {
    g_auto (Body) body = {0};
    if (!g_hash_table_add (seen, names->pdata[i]) || !read_body (self, names->pdata[i], &body))
      continue;
    for (guint k = 0; k < body.nodes->len; k++) {
      const Tensorflow__NodeDef *inner = body.nodes->pdata[k];
      if (wanted (inner->op))
        return TRUE;
      add_called (names, inner->attr, inner->n_attr);
    }
  }
  return FALSE;
}
