// SPDX-License-Identifier: Apache-2.0
/* Describes in words how two graphs differ: the first node that is missing or another, and the
 * attribute or input in which it differs. Names can't be chosen so that comparing takes long. */
#include "graph/graph_difference_private.h"

#include "base/hash_private.h"
#include "base/safe_text_private.h"
#include "graph/device_name_private.h"
#include "graph/graph_nodes_private.h"

#include <string.h>

typedef Tensorflow__AttrValue Attr;
typedef Tensorflow__AttrValue__ListValue List;
typedef Tensorflow__NameAttrList Func;
typedef MusterNode Node;

/* Maximum length of a name or value in the result. */
#define MAX_SHOWN 120
#define MAX_DIMS  8

static gboolean attrs_equal (const Attr *a, const Attr *b);

/* --- attributes --- */

static gboolean
bytes_equal (const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
  return a->len == b->len && (a->len == 0 || memcmp (a->data, b->data, a->len) == 0);
}

static gboolean
shapes_equal (const Tensorflow__TensorShapeProto *a, const Tensorflow__TensorShapeProto *b)
{
  if (!a->unknown_rank != !b->unknown_rank || a->n_dim != b->n_dim)
    return FALSE;
  for (gsize i = 0; i < a->n_dim; i++)
    if (a->dim[i]->size != b->dim[i]->size)
      return FALSE;
  return TRUE;
}

/* The seed is an address, so that no graph can be made whose names all collide. */
static guint
hash_text (gconstpointer text)
{
  static const char seed;
  return (guint)muster_hash_bytes (text, strlen (text), (guint64)(guintptr)&seed);
}

static GHashTable *
table_new (void)
{
  return g_hash_table_new (hash_text, g_str_equal);
}

/* Fills a table with a map's entries; of two with one key the last counts. */
#define FILL_TABLE(table, message)                                                                 \
  for (gsize i_ = 0; i_ < (message)->n_attr; i_++)                                                 \
    if ((message)->attr[i_]->key[0] != '_')                                                        \
  g_hash_table_replace (table, (message)->attr[i_]->key, (message)->attr[i_]->value)

/* The first attribute that differs, in no order, with what each has (NULL: none); NULL where all
 * are the same. */
static const char *
differing_key (GHashTable *a, GHashTable *b, const Attr **in_a, const Attr **in_b)
{
  GHashTableIter iter;
  gpointer key, value;
  g_hash_table_iter_init (&iter, a);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    *in_a = value;
    *in_b = g_hash_table_lookup (b, key);
    if (!attrs_equal (*in_a, *in_b))
      return key;
  }
  g_hash_table_iter_init (&iter, b);
  while (g_hash_table_iter_next (&iter, &key, &value)) {
    *in_a = NULL;
    *in_b = value;
    if (!g_hash_table_contains (a, key))
      return key;
  }
  return NULL;
}

/* Recursion is limited by the graph's nesting, MUSTER_MAX_DEPTH. */
static gboolean
funcs_equal (const Func *a, const Func *b)
{
  g_autoptr (GHashTable) of_a = table_new ();
  g_autoptr (GHashTable) of_b = table_new ();
  const Attr *in_a, *in_b;
  if (strcmp (a->name, b->name) != 0)
    return FALSE;
  FILL_TABLE (of_a, a);
  FILL_TABLE (of_b, b);
  return differing_key (of_a, of_b, &in_a, &in_b) == NULL;
}

#define SAME_NUMBERS(a, b, field)                                                                  \
  ((a)->n_##field == (b)->n_##field &&                                                             \
   ((a)->n_##field == 0 ||                                                                         \
    memcmp ((a)->field, (b)->field, (a)->n_##field * sizeof (a)->field[0]) == 0))

static gboolean
lists_equal (const List *a, const List *b)
{
  if (!SAME_NUMBERS (a, b, i) || !SAME_NUMBERS (a, b, f) || !SAME_NUMBERS (a, b, b) ||
      !SAME_NUMBERS (a, b, type) || a->n_s != b->n_s || a->n_shape != b->n_shape ||
      a->n_tensor != b->n_tensor || a->n_func != b->n_func)
    return FALSE;
  gboolean are_equal = TRUE;
  for (gsize i = 0; i < a->n_s && are_equal; i++)
    are_equal = bytes_equal (&a->s[i], &b->s[i]);
  for (gsize i = 0; i < a->n_shape && are_equal; i++)
    are_equal = shapes_equal (a->shape[i], b->shape[i]);
  for (gsize i = 0; i < a->n_tensor && are_equal; i++)
    are_equal = bytes_equal (&a->tensor[i], &b->tensor[i]);
  for (gsize i = 0; i < a->n_func && are_equal; i++)
    are_equal = funcs_equal (a->func[i], b->func[i]);
  return are_equal;
}

static gboolean
attrs_equal (const Attr *a, const Attr *b)
{
  if (a == NULL || b == NULL || a->value_case != b->value_case)
    return a == b;
  switch ((int)a->value_case) {
  case TENSORFLOW__ATTR_VALUE__VALUE_LIST:
    return lists_equal (a->list, b->list);
  case TENSORFLOW__ATTR_VALUE__VALUE_S:
    return bytes_equal (&a->s, &b->s);
  case TENSORFLOW__ATTR_VALUE__VALUE_I:
    return a->i == b->i;
  case TENSORFLOW__ATTR_VALUE__VALUE_F:
    return memcmp (&a->f, &b->f, sizeof a->f) == 0; /* also for NaN */
  case TENSORFLOW__ATTR_VALUE__VALUE_B:
    return !a->b == !b->b;
  case TENSORFLOW__ATTR_VALUE__VALUE_TYPE:
    return a->type == b->type;
  case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE:
    return shapes_equal (a->shape, b->shape);
  case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR:
    return bytes_equal (&a->tensor, &b->tensor);
  case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER:
    return strcmp (a->placeholder, b->placeholder) == 0;
  case TENSORFLOW__ATTR_VALUE__VALUE_FUNC:
    return funcs_equal (a->func, b->func);
  default:
    return TRUE; /* neither has a value */
  }
}

/* --- in words --- */

/* A text in a form for messages: short, on one line. */
static char *
shown (const char *text, gsize size)
{
  return muster_safe_text (text, (gssize)size, MAX_SHOWN);
}

static char *
shape_text (const Tensorflow__TensorShapeProto *shape)
{
  gint64 dims[MAX_DIMS];
  if (shape->unknown_rank || shape->n_dim > MAX_DIMS)
    return g_strdup (shape->unknown_rank ? "of unknown rank" : "of many dimensions");
  for (gsize i = 0; i < shape->n_dim; i++)
    dims[i] = shape->dim[i]->size;
  return muster_shape_to_string ((int)shape->n_dim, dims);
}

/* A short form of a value, or NULL. */
static char *
value_text (const Attr *attr)
{
  switch ((int)attr->value_case) {
  case TENSORFLOW__ATTR_VALUE__VALUE_S: {
    g_autofree char *text = shown ((const char *)attr->s.data, attr->s.len);
    return g_strdup_printf ("'%s'", text);
  }
  case TENSORFLOW__ATTR_VALUE__VALUE_I:
    return g_strdup_printf ("%" G_GINT64_FORMAT, attr->i);
  case TENSORFLOW__ATTR_VALUE__VALUE_F:
    return g_strdup_printf ("%g", (double)attr->f);
  case TENSORFLOW__ATTR_VALUE__VALUE_B:
    return g_strdup (attr->b ? "true" : "false");
  case TENSORFLOW__ATTR_VALUE__VALUE_TYPE:
    return g_strdup (muster_dtype_name ((MusterDType)attr->type));
  case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE:
    return shape_text (attr->shape);
  default:
    return NULL;
  }
}

static char *
attr_difference (const char *key, const Attr *mine, const Attr *chiefs)
{
  g_autofree char *name = shown (key, strlen (key));
  if (mine == NULL || chiefs == NULL)
    return g_strdup_printf ("attr %s is only %s", name, mine != NULL ? "here" : "in the chief's");
  g_autofree char *value = value_text (mine);
  g_autofree char *other = value_text (chiefs);
  if (value == NULL || other == NULL || strcmp (value, other) == 0)
    return g_strdup_printf ("attr %s differs", name);
  return g_strdup_printf ("attr %s is %s, but %s in the chief's", name, value, other);
}

/* --- nodes --- */

static char *
attrs_difference (const Node *mine, const Node *chiefs)
{
  g_autoptr (GHashTable) own_attrs = table_new ();
  g_autoptr (GHashTable) chief_attrs = table_new ();
  const Attr *own_attr, *chief_attr;
  FILL_TABLE (own_attrs, mine->kind);
  FILL_TABLE (chief_attrs, chiefs->kind);
  const char *key = differing_key (own_attrs, chief_attrs, &own_attr, &chief_attr);
  return key != NULL ? attr_difference (key, own_attr, chief_attr) : NULL;
}

/* A node of a graph, in which its inputs are. */
typedef struct {
  MusterGraph *graph;
  const Node *node;
} Place;

/* The name of the node that an input comes from. */
static const char *
source_name (const Place *self, gsize i, int *output)
{
  return muster_graph_node (self->graph, muster_node_input (self->node, i, output))->name;
}

/* "x" and "x:0" are one output. */
static gboolean
inputs_equal (const Place *a, const Place *b, gsize i)
{
  int output_a, output_b;
  const char *name_a = source_name (a, i, &output_a), *name_b = source_name (b, i, &output_b);
  return output_a == output_b && strcmp (name_a, name_b) == 0;
}

/* The control inputs, which stand last, as a set. */
static GHashTable *
controls_of (const Place *self, gsize n_data)
{
  GHashTable *controls = table_new ();
  for (gsize i = n_data; i < self->node->n_input; i++)
    g_hash_table_add (controls, (gpointer)source_name (self, i, NULL));
  return controls;
}

static gsize
n_data_inputs (const Node *node)
{
  gsize n = 0;
  while (n < node->n_input && !muster_node_input_is_control (node, n))
    n++;
  return n;
}

static char *
input_shown (const Place *self, gsize i)
{
  g_autofree char *text = muster_graph_input_text (self->graph, self->node, i);
  return shown (text, strlen (text));
}

static char *
input_difference (const Place *mine, const Place *chiefs)
{
  const gsize n = n_data_inputs (mine->node);
  if (n != n_data_inputs (chiefs->node))
    return g_strdup_printf ("it has %" G_GSIZE_FORMAT " inputs, but %" G_GSIZE_FORMAT
                            " in the chief's",
                            n, n_data_inputs (chiefs->node));
  for (gsize i = 0; i < n; i++) {
    if (inputs_equal (mine, chiefs, i))
      continue;
    g_autofree char *input = input_shown (mine, i);
    g_autofree char *other = input_shown (chiefs, i);
    return g_strdup_printf ("input %" G_GSIZE_FORMAT " is '%s', but '%s' in the chief's", i, input,
                            other);
  }
  g_autoptr (GHashTable) controls = controls_of (mine, n);
  g_autoptr (GHashTable) others = controls_of (chiefs, n);
  gboolean are_equal = g_hash_table_size (controls) == g_hash_table_size (others);
  for (gsize i = n; i < mine->node->n_input && are_equal; i++)
    are_equal = g_hash_table_contains (others, source_name (mine, i, NULL));
  return are_equal ? NULL : g_strdup ("its control inputs differ");
}

static gboolean
is_on_ps (const Node *node)
{
  MusterDeviceName name;
  return muster_device_name_parse (node->kind->device, &name) && name.job != NULL &&
         g_str_has_prefix (name.job, "ps");
}

static char *
device_difference (const Node *mine, const Node *chiefs)
{
  if (strcmp (mine->kind->device, chiefs->kind->device) == 0 ||
      (!is_on_ps (mine) && !is_on_ps (chiefs)))
    return NULL;
  g_autofree char *device = shown (mine->kind->device, strlen (mine->kind->device));
  g_autofree char *other = shown (chiefs->kind->device, strlen (chiefs->kind->device));
  return g_strdup_printf ("it is placed on '%s', but on '%s' in the chief's", device, other);
}

static char *
node_difference (const Place *my_place, const Place *chiefs_place)
{
  const Node *mine = my_place->node, *chiefs = chiefs_place->node;
  if (strcmp (mine->kind->op, chiefs->kind->op) != 0) {
    g_autofree char *op = shown (chiefs->kind->op, strlen (chiefs->kind->op));
    return g_strdup_printf ("it is of op %s in the chief's", op);
  }
  char *difference = attrs_difference (mine, chiefs);
  if (difference == NULL)
    difference = input_difference (my_place, chiefs_place);
  return difference != NULL ? difference : device_difference (mine, chiefs);
}

static char *
of_node (const Node *node, const char *separator, const char *what)
{
  g_autofree char *name = shown (node->name, strlen (node->name));
  g_autofree char *op = shown (node->kind->op, strlen (node->kind->op));
  return g_strdup_printf ("node '%s' (%s)%s %s", name, op, separator, what);
}

/* --- graphs --- */

static char *
common_difference (MusterGraph *graph, MusterGraph *chiefs)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const Node *node = muster_graph_node (graph, i);
    const Node *other = muster_graph_find_node (chiefs, node->name);
    g_autofree char *difference =
        other != NULL ? node_difference (&(Place){graph, node}, &(Place){chiefs, other}) : NULL;
    if (difference != NULL)
      return of_node (node, ":", difference);
  }
  return NULL;
}

static const Node *
first_only_in (MusterGraph *graph, MusterGraph *other)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const Node *node = muster_graph_node (graph, i);
    if (!muster_graph_has_node (other, node->name))
      return node;
  }
  return NULL;
}

char *
muster_graph_difference (MusterGraph *graph, MusterGraph *chiefs)
{
  if (muster_graph_equal (graph, chiefs))
    return NULL;
  if (!muster_graph_parse (graph, NULL))
    return g_strdup ("this graph can't be read");
  if (!muster_graph_parse (chiefs, NULL))
    return g_strdup ("the chief's graph can't be read");
  char *difference = common_difference (graph, chiefs);
  if (difference != NULL)
    return difference;
  const Node *node = first_only_in (graph, chiefs);
  if (node != NULL)
    return of_node (node, "", "is not in the chief's");
  node = first_only_in (chiefs, graph);
  return node != NULL ? of_node (node, "", "is only in the chief's") : NULL;
}
