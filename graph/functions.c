// SPDX-License-Identifier: Apache-2.0
/* Looks into the functions of a graph's library, each body once and one at a time: which arguments
 * they change, and which ops they have. Where that can't be found out, an argument may be changed.
 * What a body gives to another function is noted, not followed: functions call themselves. */
#include "graph/functions_private.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/proto/graph.pb-c.h"

#include <string.h>

enum {
  GRAPH_LIBRARY = 2,
  LIBRARY_FUNCTION = 1,
  FUNCTION_SIGNATURE = 1,
  FUNCTION_NODE = 3,
  SIGNATURE_NAME = 1,
  SIGNATURE_ARGUMENT = 2,
  ARGUMENT_NAME = 1
};

/* An argument of a function. */
typedef struct {
  gboolean may_be_written;
  GSList *givers; /* (owned) (element-type Argument) those that are passed to it */
} Argument;

typedef struct {
  MusterProtoField field; /* whose bytes are the graph's: while it is read */
  GPtrArray *names;       /* (owned) (element-type utf8) (nullable elements) the arguments' */
  Argument *arguments;    /* (owned) */
  GHashTable *ops;        /* (owned) (element-type utf8) that the body has */
  GPtrArray *callers;     /* (owned) (element-type utf8) the functions that refer to it */
} Function;

struct _MusterFunctions {
  GHashTable *by_name;    /* (owned) (element-type utf8 Function) */
  GStringChunk *op_names; /* (owned) */
};

static void
function_free (gpointer data)
{
  Function *self = data;
  for (guint i = 0; i < self->names->len; i++)
    g_slist_free (self->arguments[i].givers);
  g_free (self->arguments);
  g_ptr_array_unref (self->names);
  g_hash_table_unref (self->ops);
  g_ptr_array_unref (self->callers);
  g_free (self);
}

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
add_function (MusterFunctions *self, const MusterProtoField *field)
{
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  MusterProtoField signature = {0}, argument;
  char *name = next_of (&reader, FUNCTION_SIGNATURE, &signature)
                   ? text_of (signature.data, signature.size, SIGNATURE_NAME)
                   : NULL;
  if (name == NULL)
    return;
  Function *function = g_new0 (Function, 1);
  function->field = *field;
  function->names = g_ptr_array_new_with_free_func (g_free);
  function->ops = g_hash_table_new (g_str_hash, g_str_equal);
  function->callers = g_ptr_array_new ();
  reader = muster_proto_reader (signature.data, signature.size);
  while (next_of (&reader, SIGNATURE_ARGUMENT, &argument))
    g_ptr_array_add (function->names, text_of (argument.data, argument.size, ARGUMENT_NAME));
  function->arguments = g_new0 (Argument, function->names->len);
  g_hash_table_replace (self->by_name, name, function);
}

static void
read_library (MusterFunctions *self, const GPtrArray *pieces)
{
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
}

/* The nodes of a function (element-type Tensorflow__NodeDef), the arena's; NULL for one that can't
 * be read. */
static GPtrArray *
read_nodes (const Function *function, MusterArena *arena)
{
  MusterProtoReader reader = muster_proto_reader (function->field.data, function->field.size);
  MusterProtoField field;
  g_autoptr (GPtrArray) nodes = g_ptr_array_new ();
  while (next_of (&reader, FUNCTION_NODE, &field)) {
    gpointer node = muster_unpack (&tensorflow__node_def__descriptor, field.data, field.size, arena,
                                   "function", NULL);
    if (node == NULL)
      return NULL;
    g_ptr_array_add (nodes, node);
  }
  return muster_proto_at_end (&reader) ? g_steal_pointer (&nodes) : NULL;
}

/* --- calls --- */

static const struct {
  const char *op;
  gsize first; /* input that is an argument; those before choose the function */
} calls[] = {
    {"StatefulPartitionedCall", 0},
    {"PartitionedCall", 0},
    {"While", 0},
    {"StatelessWhile", 0},
    {"MapDefun", 0},
    {"If", 1},
    {"StatelessIf", 1},
    {"Case", 1},
    {"StatelessCase", 1},
    {"RemoteCall", 1},
    {"For", 2},
};

/* The number of the first argument; -1 for another op. Its name may be the function's. */
static gssize
first_argument (const MusterFunctions *self, const char *op)
{
  if (g_hash_table_contains (self->by_name, op))
    return 0;
  for (gsize i = 0; i < G_N_ELEMENTS (calls); i++)
    if (strcmp (calls[i].op, op) == 0)
      return (gssize)calls[i].first;
  return -1;
}

/* The functions that a node refers to. (element-type utf8), the attributes' */
static GPtrArray *
referred (const MusterFunctions *self, const char *op, Tensorflow__NodeDef__AttrEntry *const *attrs,
          gsize n)
{
  GPtrArray *names = g_ptr_array_new ();
  if (g_hash_table_contains (self->by_name, op))
    g_ptr_array_add (names, (gpointer)op);
  for (gsize i = 0; i < n; i++) {
    const Tensorflow__AttrValue *value = attrs[i]->value;
    if (value == NULL)
      continue;
    if (value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC)
      g_ptr_array_add (names, value->func->name);
    for (gsize k = 0;
         value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && k < value->list->n_func; k++)
      g_ptr_array_add (names, value->list->func[k]->name);
  }
  return names;
}

/* A function's argument; NULL if there is none. */
static Argument *
argument_at (const MusterFunctions *self, const char *name, gsize at)
{
  const Function *function = g_hash_table_lookup (self->by_name, name);
  return function != NULL && at < function->names->len && function->names->pdata[at] != NULL
             ? &function->arguments[at]
             : NULL;
}

/* --- what they write --- */

/* Notes that an argument may be written, and so those that are passed to it. */
static void
set_written (Argument *argument)
{
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  g_ptr_array_add (stack, argument);
  while (stack->len > 0) {
    Argument *at = g_ptr_array_steal_index (stack, stack->len - 1);
    for (GSList *of = at->may_be_written ? NULL : at->givers; of != NULL; of = of->next)
      g_ptr_array_add (stack, of->data);
    at->may_be_written = TRUE;
  }
}

/* Notes what a node of a body does with an argument. */
static void
use (const MusterFunctions *self, Argument *argument, const Tensorflow__NodeDef *node, gsize input,
     const GPtrArray *names)
{
  static const char *const readers[] = {"ReadVariableOp",
                                        "ResourceGather",
                                        "ResourceGatherNd",
                                        "VarIsInitializedOp",
                                        "VariableShape",
                                        "DisableCopyOnRead",
                                        NULL};
  const gssize first = first_argument (self, node->op);
  if (first < 0 ? !g_strv_contains (readers, node->op) : names->len == 0)
    set_written (argument);
  for (guint i = 0; first >= 0 && input >= (gsize)first && i < names->len; i++) {
    Argument *to = argument_at (self, names->pdata[i], input - (gsize)first);
    if (to == NULL || to->may_be_written)
      set_written (argument);
    else if (to != argument)
      to->givers = g_slist_prepend (to->givers, argument);
  }
}

static gboolean
passes_on (const Tensorflow__NodeDef *node, gsize input)
{
  static const char *const ops[] = {"Identity", "Enter", "Switch", NULL};
  return input == 0 && g_strv_contains (ops, node->op);
}

/* An input without its output's number. (transfer full) */
static char *
name_of_input (const char *input)
{
  return g_strndup (input, strcspn (input, ":"));
}

static void
add_passer (GHashTable *passers, const Tensorflow__NodeDef *node)
{
  g_autofree char *from = name_of_input (node->input[0]);
  GSList *others = g_hash_table_lookup (passers, from);
  if (others != NULL)
    others->next = g_slist_prepend (others->next, node->name);
  else
    g_hash_table_insert (passers, g_steal_pointer (&from), g_slist_prepend (NULL, node->name));
}

/* The names under which a body passes its arguments on. (element-type utf8 Argument) */
static GHashTable *
find_held (const Function *function, const GPtrArray *nodes)
{
  GHashTable *held = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) passers =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_slist_free);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  for (guint i = 0; i < nodes->len; i++) {
    const Tensorflow__NodeDef *node = nodes->pdata[i];
    if (node->n_input > 0 && passes_on (node, 0))
      add_passer (passers, node);
  }
  for (guint i = 0; i < function->names->len; i++)
    if (function->names->pdata[i] != NULL &&
        g_hash_table_insert (held, function->names->pdata[i], &function->arguments[i]))
      g_ptr_array_add (stack, function->names->pdata[i]);
  while (stack->len > 0) {
    const char *name = g_ptr_array_steal_index (stack, stack->len - 1);
    for (GSList *to = g_hash_table_lookup (passers, name); to != NULL; to = to->next)
      if (!g_hash_table_contains (held, to->data)) {
        g_hash_table_insert (held, to->data, g_hash_table_lookup (held, name));
        g_ptr_array_add (stack, to->data);
      }
  }
  return held;
}

static void
read_body (MusterFunctions *self, const char *name, Function *function)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GPtrArray) nodes = read_nodes (function, arena);
  for (guint i = 0; nodes == NULL && i < function->names->len; i++)
    set_written (&function->arguments[i]);
  if (nodes == NULL)
    return;
  g_autoptr (GHashTable) held = find_held (function, nodes);
  for (guint i = 0; i < nodes->len; i++) {
    const Tensorflow__NodeDef *node = nodes->pdata[i];
    g_autoptr (GPtrArray) names = referred (self, node->op, node->attr, node->n_attr);
    g_hash_table_add (function->ops, g_string_chunk_insert_const (self->op_names, node->op));
    for (guint k = 0; k < names->len; k++) {
      Function *other = g_hash_table_lookup (self->by_name, names->pdata[k]);
      if (other != NULL)
        g_ptr_array_add (other->callers, (gpointer)name);
    }
    for (gsize k = 0; k < node->n_input; k++) {
      g_autofree char *input = name_of_input (node->input[k]);
      Argument *argument = g_hash_table_lookup (held, input);
      if (argument != NULL && !argument->may_be_written && !passes_on (node, k))
        use (self, argument, node, k, names);
    }
  }
}

MusterFunctions *
muster_functions_new (const GPtrArray *graph)
{
  MusterFunctions *self = g_new0 (MusterFunctions, 1);
  GHashTableIter iter;
  gpointer name, function;
  self->by_name = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, function_free);
  self->op_names = g_string_chunk_new (1024);
  read_library (self, graph);
  g_hash_table_iter_init (&iter, self->by_name);
  while (g_hash_table_iter_next (&iter, &name, &function))
    read_body (self, name, function);
  return self;
}

void
muster_functions_free (MusterFunctions *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->by_name);
  g_string_chunk_free (self->op_names);
  g_free (self);
}

gboolean
muster_functions_are_called (const MusterFunctions *self, const char *op)
{
  return first_argument (self, op) >= 0;
}

gboolean
muster_functions_may_write (const MusterFunctions *self, const MusterNode *call, gsize input)
{
  const gssize first = first_argument (self, call->kind->op);
  g_autoptr (GPtrArray) names =
      referred (self, call->kind->op, call->kind->attr, call->kind->n_attr);
  for (guint i = 0; first >= 0 && input >= (gsize)first && i < names->len; i++) {
    const Argument *to = argument_at (self, names->pdata[i], input - (gsize)first);
    if (to == NULL || to->may_be_written)
      return TRUE;
  }
  return first < 0 || names->len == 0;
}

/* --- which ops they have --- */

GHashTable *
muster_functions_with_op (const MusterFunctions *self, gboolean (*wanted) (const char *op))
{
  GHashTable *found = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  GHashTableIter iter, ops;
  gpointer name, function, op;
  g_hash_table_iter_init (&iter, self->by_name);
  while (g_hash_table_iter_next (&iter, &name, &function)) {
    g_hash_table_iter_init (&ops, ((Function *)function)->ops);
    while (g_hash_table_iter_next (&ops, &op, NULL))
      if (wanted (op))
        g_ptr_array_add (stack, name);
  }
  while (stack->len > 0) {
    gpointer at = g_ptr_array_steal_index (stack, stack->len - 1);
    const Function *of = g_hash_table_lookup (self->by_name, at);
    const gboolean is_new = g_hash_table_add (found, at);
    for (guint i = 0; is_new && i < of->callers->len; i++)
      g_ptr_array_add (stack, of->callers->pdata[i]);
  }
  return found;
}

gboolean
muster_functions_refer (const MusterFunctions *self, const MusterNode *node, GHashTable *names)
{
  g_autoptr (GPtrArray) own = referred (self, node->kind->op, node->kind->attr, node->kind->n_attr);
  for (guint i = 0; i < own->len; i++)
    if (g_hash_table_contains (names, own->pdata[i]))
      return TRUE;
  return FALSE;
}
