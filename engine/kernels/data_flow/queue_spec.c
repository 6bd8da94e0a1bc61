// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/data_flow/queue_spec.h"

#include "base/error.h"

#include <string.h>

static const struct {
  MusterQueueKind kind;
  const char *name;
} kinds[] = {{MUSTER_QUEUE_FIFO, "FIFOQueue"},
             {MUSTER_QUEUE_SHUFFLE, "RandomShuffleQueue"},
             {MUSTER_QUEUE_PADDING, "PaddingFIFOQueue"},
             {MUSTER_QUEUE_PRIORITY, "PriorityQueue"}};

const char *
muster_queue_kind_name (MusterQueueKind kind)
{
  return kinds[kind].name;
}

static char *
types_text (const guint8 *dtypes, guint n)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", muster_dtype_name (dtypes[i]));
  return g_string_free (text, FALSE);
}

static char *
shapes_text (const MusterQueueShape *shapes, guint n)
{
  GString *text = g_string_new ("[");
  for (guint i = 0; i < n; i++) {
    g_autofree char *shape = muster_shape_to_string (shapes[i].n_dims, shapes[i].dims);
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", shape);
  }
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

static MusterQueueKind
kind_of (const MusterNode *node)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (g_str_has_prefix (node->kind->op, kinds[i].name))
      return kinds[i].kind;
  return MUSTER_QUEUE_FIFO;
}

static const Tensorflow__AttrValue__ListValue *
list_of (const MusterNode *node, const char *name)
{
  const Tensorflow__AttrValue *attr = muster_node_attr (node, name);
  return attr != NULL && attr->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST ? attr->list : NULL;
}

/* The number of components that the queue's op doesn't list. */
static guint
n_own (const MusterQueueSpec *self)
{
  return self->kind == MUSTER_QUEUE_PRIORITY ? 1 : 0;
}

static gboolean
read_types (MusterQueueSpec *self, const MusterNode *node, GError **error)
{
  const Tensorflow__AttrValue__ListValue *list = list_of (node, "component_types");
  const gsize n = list != NULL ? list->n_type : 0;
  const guint own = n_own (self);
  if (n + own == 0)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Length for attr 'component_types' of 0 must be at least minimum 1\n\t; NodeDef: "
        "{{node %s}}",
        node->name);
  self->n_components = (guint)n + own;
  self->dtypes = g_new (guint8, n + own);
  self->dtypes[0] = MUSTER_INT64;
  for (gsize i = 0; i < n; i++) {
    if (!muster_dtype_is_supported ((MusterDType)list->type[i]))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Queues of dtype %s aren't supported (component %" G_GSIZE_FORMAT
                          " of node '%s')",
                          muster_dtype_name ((MusterDType)list->type[i]), i, node->name);
    self->dtypes[i + own] = (guint8)list->type[i];
  }
  return TRUE;
}

static gboolean
read_shape (const MusterQueueSpec *self, const Tensorflow__TensorShapeProto *from,
            MusterQueueShape *shape, GError **error)
{
  /* A batch has one dimension more. */
  if (from->unknown_rank || from->n_dim >= MUSTER_MAX_DIMS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "A queue's shapes must have a known rank below %d", MUSTER_MAX_DIMS);
  shape->n_dims = (int)from->n_dim;
  shape->dims = g_new (gint64, from->n_dim + 1);
  for (gsize i = 0; i < from->n_dim; i++) {
    shape->dims[i] = from->dim[i]->size;
    if (shape->dims[i] < 0 && (self->kind != MUSTER_QUEUE_PADDING || shape->dims[i] != -1))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Shapes of a %s must be fully defined", kinds[self->kind].name);
  }
  return TRUE;
}

static gboolean
read_shapes (MusterQueueSpec *self, const MusterNode *node, GError **error)
{
  const Tensorflow__AttrValue__ListValue *list = list_of (node, "shapes");
  const gsize n = list != NULL ? list->n_shape : 0;
  if (n != self->n_components && self->kind == MUSTER_QUEUE_PADDING)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shapes must be provided for all components, but received %u dtypes and "
                        "%" G_GSIZE_FORMAT " shapes.",
                        self->n_components, n);
  if (n == 0)
    return TRUE;
  const guint own = n_own (self); /* g_new0 () makes its shape a scalar's */
  self->n_shapes = (guint)n + own;
  self->shapes = g_new0 (MusterQueueShape, n + own);
  for (gsize i = 0; i < n; i++)
    if (!read_shape (self, list->shape[i], &self->shapes[i + own], error))
      return FALSE;
  if (self->n_shapes == self->n_components)
    return TRUE;
  g_autofree char *types = types_text (self->dtypes, self->n_components);
  g_autofree char *shapes = shapes_text (self->shapes, self->n_shapes);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Different number of component types.  Types: %s, Shapes: %s", types, shapes);
}

static gboolean
read_numbers (MusterQueueSpec *self, const MusterNode *node, GError **error)
{
  const gint64 capacity = muster_node_int (node, "capacity", -1);
  const gint64 min = muster_node_int (node, "min_after_dequeue", 0);
  self->capacity = capacity < 0 || capacity > G_MAXINT32 ? G_MAXINT32 : (gint32)capacity;
  if (self->kind != MUSTER_QUEUE_SHUFFLE)
    return TRUE;
  self->seed = muster_node_int (node, "seed", 0);
  self->seed2 = muster_node_int (node, "seed2", 0);
  if (min < 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "min_after_dequeue %" G_GINT64_FORMAT " must be >= 0", min);
  if (min >= self->capacity)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "min_after_dequeue %" G_GINT64_FORMAT " must be < capacity %d", min,
                        self->capacity);
  self->min_after_dequeue = (gint32)min;
  return TRUE;
}

gboolean
muster_queue_spec_read (MusterQueueSpec *self, const MusterNode *node, GError **error)
{
  g_auto (MusterQueueSpec) spec = {.kind = kind_of (node)};
  if (!read_numbers (&spec, node, error) || !read_types (&spec, node, error) ||
      !read_shapes (&spec, node, error))
    return FALSE;
  *self = spec;
  spec = (MusterQueueSpec){0};
  return TRUE;
}

void
muster_queue_spec_clear (MusterQueueSpec *self)
{
  for (guint i = 0; i < self->n_shapes; i++)
    g_free (self->shapes[i].dims);
  g_free (self->shapes);
  g_free (self->dtypes);
  *self = (MusterQueueSpec){0};
}

static gboolean
same_shapes (const MusterQueueSpec *a, const MusterQueueSpec *b)
{
  if (a->shapes == NULL || b->shapes == NULL)
    return a->shapes == b->shapes;
  for (guint i = 0; i < a->n_components; i++) {
    const MusterQueueShape *left = &a->shapes[i], *right = &b->shapes[i];
    if (left->n_dims != right->n_dims)
      return FALSE;
    for (int j = 0; j < left->n_dims; j++)
      if (left->dims[j] != right->dims[j] && left->dims[j] >= 0 && right->dims[j] >= 0)
        return FALSE;
  }
  return TRUE;
}

static gboolean
check_shuffle (const MusterQueueSpec *self, const char *name, const MusterQueueSpec *other,
               GError **error)
{
  if (self->min_after_dequeue != other->min_after_dequeue)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Shared queue '%s' has min_after_dequeue %d but requested min_after_dequeue was "
        "%d.",
        name, self->min_after_dequeue, other->min_after_dequeue);
  if ((other->seed != 0 || other->seed2 != 0) &&
      (self->seed != other->seed || self->seed2 != other->seed2))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shared queue '%s' has random seeds (%" G_GINT64_FORMAT
                        ", %" G_GINT64_FORMAT ") but requested seeds are (%" G_GINT64_FORMAT
                        ", %" G_GINT64_FORMAT ").",
                        name, self->seed, self->seed2, other->seed, other->seed2);
  return TRUE;
}

gboolean
muster_queue_spec_fits (const MusterQueueSpec *self, const char *name, const MusterNode *node,
                        GError **error)
{
  g_auto (MusterQueueSpec) other = {0};
  if (kind_of (node) != self->kind)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected %s, found %s",
                        kinds[self->kind].name, node->kind->op);
  if (!muster_queue_spec_read (&other, node, error))
    return FALSE;
  if (self->capacity != other.capacity)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shared queue '%s' has capacity %d but requested capacity was %d", name,
                        self->capacity, other.capacity);
  if (!check_shuffle (self, name, &other, error))
    return FALSE;
  if (self->n_components != other.n_components ||
      memcmp (self->dtypes, other.dtypes, self->n_components) != 0) {
    g_autofree char *a = types_text (self->dtypes, self->n_components);
    g_autofree char *b = types_text (other.dtypes, other.n_components);
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Shared queue '%s' has component types %s but requested component types were %s", name, a,
        b);
  }
  if (!same_shapes (self, &other)) {
    g_autofree char *a = shapes_text (self->shapes, self->n_shapes);
    g_autofree char *b = shapes_text (other.shapes, other.n_shapes);
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Shared queue '%s' has component shapes %s but requested component shapes were %s", name, a,
        b);
  }
  return TRUE;
}

/* dims is the shape of an element, without the batch. */
static gboolean
shape_fits (const MusterQueueShape *shape, int n_dims, const gint64 *dims)
{
  if (n_dims != shape->n_dims)
    return FALSE;
  for (int i = 0; i < n_dims; i++)
    if (shape->dims[i] >= 0 && shape->dims[i] != dims[i])
      return FALSE;
  return TRUE;
}

gboolean
muster_queue_spec_check (const MusterQueueSpec *self, MusterTensor *const *element, GError **error)
{
  for (guint i = 0; self->shapes != NULL && i < self->n_components; i++) {
    const MusterQueueShape *shape = &self->shapes[i];
    const int n_dims = muster_tensor_n_dims (element[i]);
    const gint64 *dims = muster_tensor_dims (element[i]);
    if (shape_fits (shape, n_dims, dims))
      continue;
    g_autofree char *expected = muster_shape_to_string (shape->n_dims, shape->dims);
    g_autofree char *got = muster_shape_to_string (n_dims, dims);
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Shape mismatch in tuple component %u. Expected %s, got %s", i, expected,
                        got);
  }
  return TRUE;
}

static gboolean
check_batch (const MusterQueueSpec *self, guint i, const MusterTensor *batch, gint64 n,
             GError **error)
{
  const int n_dims = muster_tensor_n_dims (batch);
  const gint64 *dims = muster_tensor_dims (batch);
  if (self->shapes == NULL) {
    if (dims[0] == n)
      return TRUE;
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "All input tensors must have the same size in the 0th dimension. Component %u has "
        "%" G_GINT64_FORMAT ", and should have %" G_GINT64_FORMAT,
        i, dims[0], n);
  }
  const MusterQueueShape *shape = &self->shapes[i];
  if (dims[0] == n && shape_fits (shape, n_dims - 1, dims + 1))
    return TRUE;
  gint64 wanted[MUSTER_MAX_DIMS] = {n};
  if (shape->n_dims > 0)
    memcpy (wanted + 1, shape->dims, (gsize)shape->n_dims * sizeof *wanted);
  g_autofree char *expected = muster_shape_to_string (shape->n_dims + 1, wanted);
  g_autofree char *got = muster_shape_to_string (n_dims, dims);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Shape mismatch in tuple component %u. Expected %s, got %s", i, expected,
                      got);
}

gboolean
muster_queue_spec_check_many (const MusterQueueSpec *self, MusterTensor *const *batch,
                              GError **error)
{
  for (guint i = 0; i < self->n_components; i++)
    if (muster_tensor_n_dims (batch[i]) == 0)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Component %u of a batch is a scalar: it has no elements to enqueue", i);
  const gint64 n = muster_tensor_dims (batch[0])[0];
  for (guint i = 0; i < self->n_components; i++)
    if (!check_batch (self, i, batch[i], n, error))
      return FALSE;
  return TRUE;
}
