// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_nodes_private.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterQueueSpec is a queue's attributes, and what may be enqueued. All errors are
 * INVALID_ARGUMENT in TensorFlow's words. A plain struct. */

typedef enum {
  MUSTER_QUEUE_FIFO,
  MUSTER_QUEUE_SHUFFLE,
  MUSTER_QUEUE_PADDING,
  MUSTER_QUEUE_PRIORITY, /* component 0, which the op doesn't list, is an int64: lowest first */
} MusterQueueKind;

typedef struct {
  int n_dims;
  gint64 *dims; /* (owned) (nullable) -1 for a padding queue: any size */
} MusterQueueShape;

typedef struct {
  MusterQueueKind kind;
  gint32 capacity;          /* elements; G_MAXINT32: no limit */
  gint32 min_after_dequeue; /* 0 for all but a shuffle queue */
  gint64 seed, seed2;
  guint n_components;       /* number of tensors in an element, at least one */
  guint8 *dtypes;           /* (owned) */
  guint n_shapes;           /* 0, or as many as components */
  MusterQueueShape *shapes; /* (owned) (nullable) NULL: any shape, except for batches */
} MusterQueueSpec;

/* "FIFOQueue" and so on. */
const char *muster_queue_kind_name (MusterQueueKind kind);

gboolean muster_queue_spec_read (MusterQueueSpec *self, const MusterNode *node, GError **error);
void muster_queue_spec_clear (MusterQueueSpec *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterQueueSpec, muster_queue_spec_clear)

/* FALSE if a node requests a queue that differs from the existing one with that name. */
gboolean muster_queue_spec_fits (const MusterQueueSpec *self, const char *name,
                                 const MusterNode *node, GError **error);

/* Check an element, or a batch of them; its n_components tensors already have the right dtypes. */
gboolean muster_queue_spec_check (const MusterQueueSpec *self, MusterTensor *const *element,
                                  GError **error);
gboolean muster_queue_spec_check_many (const MusterQueueSpec *self, MusterTensor *const *batch,
                                       GError **error);

G_END_DECLS
