// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_nodes.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterQueueSpec is what a queue's op says of it, and what may go in. TensorFlow's words in all
 * errors, which are INVALID_ARGUMENT. A plain struct. */

typedef enum {
  MUSTER_QUEUE_FIFO,
  MUSTER_QUEUE_SHUFFLE,
  MUSTER_QUEUE_PADDING,
  MUSTER_QUEUE_PRIORITY, /* component 0, which its op doesn't list, is an int64: least first */
} MusterQueueKind;

typedef struct {
  int n_dims;
  gint64 *dims; /* (owned) (nullable) -1, of a padding queue's: any size */
} MusterQueueShape;

typedef struct {
  MusterQueueKind kind;
  gint32 capacity;          /* elements; G_MAXINT32: no limit */
  gint32 min_after_dequeue; /* 0 for all but a shuffle queue */
  gint64 seed, seed2;
  guint n_components;       /* tensors in an element, at least one */
  guint8 *dtypes;           /* (owned) */
  guint n_shapes;           /* 0, or as many as components */
  MusterQueueShape *shapes; /* (owned) (nullable) NULL: anything goes, but for batches */
} MusterQueueSpec;

/* "FIFOQueue" and so on. */
const char *muster_queue_kind_name (MusterQueueKind kind);

gboolean muster_queue_spec_read (MusterQueueSpec *self, const Tensorflow__NodeDef *node,
                                 GError **error);
void muster_queue_spec_clear (MusterQueueSpec *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterQueueSpec, muster_queue_spec_clear)

/* FALSE if a node asks for another queue than the one of that name. */
gboolean muster_queue_spec_fits (const MusterQueueSpec *self, const char *name,
                                 const Tensorflow__NodeDef *node, GError **error);

/* Whether an element, or a batch of them, may go in: its n_components tensors are of the right
 * dtypes already. */
gboolean muster_queue_spec_check (const MusterQueueSpec *self, MusterTensor *const *element,
                                  GError **error);
gboolean muster_queue_spec_check_many (const MusterQueueSpec *self, MusterTensor *const *batch,
                                       GError **error);

G_END_DECLS
