// SPDX-License-Identifier: Apache-2.0
/* A graph as its bytes. Nodes are parsed when they are first needed, once for all users; a graph
 * that extends another refers to it (docs/decisions/0012). */
#include "graph/graph.h"

#include "base/error.h"
#include "base/hash_private.h"
#include "base/require_private.h"
#include "base/rope_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/node_table_private.h"

#include <string.h>

/* Maximum depth of extensions of extensions: a lookup may search each. */
#define MAX_DEPTH 8

struct _MusterGraph {
  gint ref_count; /* atomic */

  /* What an extension is made of, so that the nodes it extends needn't be parsed again. */
  MusterGraph *origin; /* (owned) (nullable) */
  GBytes *extra;       /* (owned) (nullable) the bytes after origin's */
  guint depth;         /* how many origins there are below */

  GMutex lock;   /* held while one of the following is created */
  GBytes *bytes; /* atomic, (owned) (nullable) for an extension until asked for */
  gint has_hash; /* atomic; once set, hash is constant */
  guint64 hash;
  GHashTable *variables;      /* atomic, (owned) (nullable) until asked for */
  MusterFunctions *functions; /* the same */

  GMutex parsing;        /* held while all of the following is created */
  gint is_parsed;        /* atomic; once set, all that follows is constant */
  GError *verdict;       /* (owned) (nullable) */
  MusterNodeTable nodes; /* empty for a malformed graph */
};

G_DEFINE_BOXED_TYPE (MusterGraph, muster_graph, muster_graph_ref, muster_graph_unref)

static MusterGraph *
new_graph (void)
{
  MusterGraph *self = g_new0 (MusterGraph, 1);
  self->ref_count = 1;
  g_mutex_init (&self->lock);
  g_mutex_init (&self->parsing);
  return self;
}

MusterGraph *
muster_graph_new (GBytes *bytes)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  MusterGraph *self = new_graph ();
  self->bytes = g_bytes_ref (bytes);
  return self;
}

MusterGraph *
muster_graph_ref (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
muster_graph_unref (MusterGraph *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->parsing);
  g_clear_pointer (&self->bytes, g_bytes_unref);
  g_clear_pointer (&self->variables, g_hash_table_unref);
  g_clear_pointer (&self->functions, muster_functions_free);
  g_clear_error (&self->verdict);
  muster_node_table_clear (&self->nodes);
  g_clear_pointer (&self->extra, g_bytes_unref);
  g_clear_pointer (&self->origin, muster_graph_unref);
  g_free (self);
}

void
muster_graph_put (MusterGraph *self, MusterRope *rope)
{
  GBytes *bytes = g_atomic_pointer_get (&self->bytes);
  if (bytes != NULL) {
    muster_rope_append (rope, bytes);
    return;
  }
  muster_graph_put (self->origin, rope);
  muster_rope_append (rope, self->extra);
}

GBytes *
muster_graph_bytes (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (g_atomic_pointer_get (&self->bytes) != NULL)
    return self->bytes;
  g_mutex_lock (&self->lock);
  if (self->bytes == NULL) {
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    muster_graph_put (self, &rope);
    g_atomic_pointer_set (&self->bytes, muster_rope_flatten (&rope));
  }
  g_mutex_unlock (&self->lock);
  return self->bytes;
}

gsize
muster_graph_size (MusterGraph *self)
{
  GBytes *bytes = g_atomic_pointer_get (&self->bytes);
  return bytes != NULL ? g_bytes_get_size (bytes)
                       : muster_graph_size (self->origin) + g_bytes_get_size (self->extra);
}

/* An extension isn't put together for it. */
static guint64
hash_pieces (MusterGraph *self)
{
  MusterHash hash;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_graph_put (self, &rope);
  const GPtrArray *pieces = muster_rope_pieces (&rope);
  muster_hash_begin (&hash, 0);
  for (guint i = 0; i < pieces->len; i++) {
    gsize size;
    const void *data = g_bytes_get_data (pieces->pdata[i], &size);
    muster_hash_add (&hash, data, size);
  }
  return muster_hash_end (&hash);
}

guint64
muster_graph_hash (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, 0);
  if (g_atomic_int_get (&self->has_hash))
    return self->hash;
  g_mutex_lock (&self->lock);
  if (!self->has_hash) {
    self->hash = hash_pieces (self);
    g_atomic_int_set (&self->has_hash, TRUE);
  }
  g_mutex_unlock (&self->lock);
  return self->hash;
}

gboolean
muster_graph_equal (MusterGraph *a, MusterGraph *b)
{
  g_return_val_if_fail (a != NULL && b != NULL, FALSE);
  if (a == b)
    return TRUE;
  if (muster_graph_size (a) != muster_graph_size (b) ||
      muster_graph_hash (a) != muster_graph_hash (b))
    return FALSE;
  g_auto (MusterRope) one = MUSTER_ROPE_INIT, other = MUSTER_ROPE_INIT;
  muster_graph_put (a, &one);
  muster_graph_put (b, &other);
  return muster_rope_equal (&one, &other);
}

/* --- parsing --- */

/* An extension's own nodes where its origin is well formed by itself, all of it otherwise. */
static gboolean
parse (MusterGraph *self, GError **error)
{
  if (self->origin == NULL || !muster_graph_parse (self->origin, NULL))
    return muster_node_table_read (&self->nodes, NULL, muster_graph_bytes (self), error);
  return muster_node_table_read (&self->nodes, &self->origin->nodes, self->extra, error);
}

/* FALSE if there isn't enough memory now, which says nothing about the graph. */
static gboolean
parse_once (MusterGraph *self, GError **error)
{
  g_autoptr (GError) verdict = NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->parsing);
  if (self->is_parsed)
    return TRUE;
  (void)parse (self, &verdict);
  if (muster_error_is (verdict, MUSTER_ERROR_RESOURCE_EXHAUSTED)) {
    g_propagate_error (error, g_steal_pointer (&verdict));
    return FALSE;
  }
  self->verdict = g_steal_pointer (&verdict);
  g_atomic_int_set (&self->is_parsed, TRUE);
  return TRUE;
}

gboolean
muster_graph_parse (MusterGraph *self, GError **error)
{
  muster_require (error, FALSE, self);
  if (!g_atomic_int_get (&self->is_parsed) && !parse_once (self, error))
    return FALSE;
  if (self->verdict == NULL)
    return TRUE;
  if (error != NULL)
    *error = g_error_copy (self->verdict);
  return FALSE;
}

gsize
muster_graph_n_nodes (MusterGraph *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return muster_graph_parse (self, NULL) ? self->nodes.n_base + self->nodes.n_nodes : 0;
}

gboolean
muster_graph_has_node (MusterGraph *self, const char *name)
{
  g_return_val_if_fail (self != NULL && name != NULL, FALSE);
  return muster_graph_find (self, name, strlen (name)) >= 0;
}

const MusterNode *
muster_graph_node (MusterGraph *self, gsize index)
{
  return index < muster_graph_n_nodes (self) ? muster_node_table_at (&self->nodes, index) : NULL;
}

gssize
muster_graph_find (MusterGraph *self, const char *name, gsize name_size)
{
  if (name_size == 0 || !muster_graph_parse (self, NULL))
    return -1;
  return muster_node_table_find (&self->nodes, name, name_size);
}

const MusterNode *
muster_graph_find_node (MusterGraph *self, const char *name)
{
  const gssize index = muster_graph_find (self, name, strlen (name));
  return index >= 0 ? muster_node_table_at (&self->nodes, (gsize)index) : NULL;
}

/* Joins the graph to one piece, without an origin. */
static void
flatten (MusterGraph *self)
{
  (void)muster_graph_bytes (self);
  g_clear_pointer (&self->extra, g_bytes_unref);
  g_clear_pointer (&self->origin, muster_graph_unref);
  self->depth = 0;
}

MusterGraph *
muster_graph_extended (MusterGraph *self, MusterGraph *extra)
{
  g_return_val_if_fail (self != NULL && extra != NULL, NULL);
  GBytes *more = muster_graph_bytes (extra);
  if (g_bytes_get_size (more) == 0)
    return muster_graph_ref (self);
  MusterGraph *both = new_graph ();
  both->origin = muster_graph_ref (self);
  both->extra = g_bytes_ref (more);
  both->depth = self->depth + 1;
  if (both->depth > MAX_DEPTH)
    flatten (both);
  return both;
}

MusterGraph *
muster_graph_added (MusterGraph *self, MusterGraph *before)
{
  if (self->origin == before)
    return muster_graph_new (self->extra);
  const gsize size = g_bytes_get_size (muster_graph_bytes (before));
  GBytes *bytes = muster_graph_bytes (self);
  g_autoptr (GBytes) added = g_bytes_new_from_bytes (bytes, size, g_bytes_get_size (bytes) - size);
  return muster_graph_new (added);
}

int
muster_graph_split_input (const char *input, char **name)
{
  g_return_val_if_fail (input != NULL && name != NULL, 0);
  const char *start;
  gsize size = strlen (input);
  const gint32 output = muster_node_input_split (input, &start, &size);
  *name = g_strndup (start, size);
  return output == MUSTER_NODE_ZERO ? 0 : output;
}

/* What TensorFlow adds to read a variable is the op to fetch. */
gboolean
muster_graph_refuse_fetch (MusterGraph *self, const MusterNode *node, const char *fetch,
                           MusterDType dtype, GError **error)
{
  g_autofree char *reader = g_strconcat (node->name, "/Read/ReadVariableOp", NULL);
  const gboolean has_reader = muster_graph_find_node (self, reader) != NULL;
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "'%s' (op '%s') is a %s, which can't be fetched; fetch an op that reads "
                      "it%s%s%s",
                      fetch, node->kind->op, muster_dtype_name (dtype),
                      has_reader ? ", such as '" : "", has_reader ? reader : "",
                      has_reader ? ":0'" : "");
}

/* --- variables --- */

/* A variable's key has these parts, a line each. */
enum { KIND_PART, DEVICE_PART, CONTAINER_PART, NAME_PART, N_KEY_PARTS };

/* The container of a variable that names none. */
#define DEFAULT_CONTAINER "localhost"

/* By TensorFlow's rules, as in set_resource () of engine/run/plan_make.c: a reference variable
 * without a shared name has the node's. */
static char *
name_of_variable (const MusterNode *node, gboolean is_handle)
{
  g_autofree char *name = muster_node_string (node, "shared_name");
  if (name != NULL && *name != '\0')
    return g_steal_pointer (&name);
  return is_handle ? NULL : g_strdup (node->name);
}

static void
add_variable (GHashTable *variables, const MusterNode *node)
{
  const gboolean is_handle = strcmp (node->kind->op, "VarHandleOp") == 0;
  g_autofree char *container = muster_node_string (node, "container");
  char *name = name_of_variable (node, is_handle);
  if (name == NULL)
    return;
  char *key = g_strdup_printf ("%s\n%s\n%s\n%s", is_handle ? "resource" : "reference",
                               node->kind->device, container != NULL ? container : "", name);
  g_hash_table_replace (variables, key, name);
}

static GHashTable *
find_variables (MusterGraph *self)
{
  static const char *const ops[] = {"VarHandleOp", "VariableV2", "Variable", NULL};
  GHashTable *variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  const gsize n = muster_graph_n_nodes (self);
  for (gsize i = 0; i < n; i++) {
    const MusterNode *node = muster_graph_node (self, i);
    if (g_strv_contains (ops, node->kind->op))
      add_variable (variables, node);
  }
  return variables;
}

GHashTable *
muster_graph_variables (MusterGraph *self)
{
  if (g_atomic_pointer_get (&self->variables) != NULL)
    return self->variables;
  g_autoptr (GHashTable) variables = find_variables (self);
  g_mutex_lock (&self->lock);
  if (self->variables == NULL)
    g_atomic_pointer_set (&self->variables, g_steal_pointer (&variables));
  g_mutex_unlock (&self->lock);
  return self->variables;
}

gboolean
muster_graph_has_variable_in (MusterGraph *self, const char *const *containers)
{
  GHashTableIter iter;
  gpointer key;
  g_hash_table_iter_init (&iter, muster_graph_variables (self));
  while (g_hash_table_iter_next (&iter, &key, NULL)) {
    g_auto (GStrv) parts = g_strsplit (key, "\n", N_KEY_PARTS);
    const char *container = parts[CONTAINER_PART];
    if (g_strv_contains (containers, *container != '\0' ? container : DEFAULT_CONTAINER))
      return TRUE;
  }
  return FALSE;
}

/* --- functions --- */

const MusterFunctions *
muster_graph_functions (MusterGraph *self)
{
  if (g_atomic_pointer_get (&self->functions) != NULL)
    return self->functions;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_graph_put (self, &rope);
  g_autoptr (MusterFunctions) functions = muster_functions_new (muster_rope_pieces (&rope));
  g_mutex_lock (&self->lock);
  if (self->functions == NULL)
    g_atomic_pointer_set (&self->functions, g_steal_pointer (&functions));
  g_mutex_unlock (&self->lock);
  return self->functions;
}
