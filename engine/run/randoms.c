// SPDX-License-Identifier: Apache-2.0
#include "engine/run/randoms.h"

#include "base/clock.h"
#include "graph/graph_nodes_private.h"

/* The number of draws (of four words) that TensorFlow's kernels reserve for each number of the
 * output. */
#define DRAWS_PER_OUTPUT 256
/* The number of draws reserved if the size of the output is unknown: more than a kernel can use. */
#define DRAWS_UNKNOWN ((guint64)1 << 40)

struct _MusterRandoms {
  GMutex lock;
  GHashTable *by_node; /* (owned) graph index to MusterPhilox; guarded by lock */
};

MusterRandoms *
muster_randoms_new (void)
{
  MusterRandoms *self = g_new0 (MusterRandoms, 1);
  g_mutex_init (&self->lock);
  self->by_node = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  return self;
}

void
muster_randoms_free (MusterRandoms *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->by_node);
  g_mutex_clear (&self->lock);
  g_free (self);
}

guint64
muster_randoms_chance (void)
{
  MusterClock *clock = muster_system_clock ();
  guint64 word = 0;
  for (int i = 0; i < 4; i++)
    word = word << 16 | (guint64)(muster_clock_random (clock) * 65536.0);
  return word;
}

static MusterPhilox *
seeded (const MusterNode *def)
{
  guint64 seed = (guint64)muster_node_int (def, "seed", 0);
  guint64 seed2 = (guint64)muster_node_int (def, "seed2", 0);
  if (seed == 0 && seed2 == 0) {
    seed = muster_randoms_chance ();
    seed2 = muster_randoms_chance ();
  }
  const MusterPhilox philox = muster_philox_new (seed, seed2);
  return g_memdup2 (&philox, sizeof philox);
}

MusterPhilox
muster_randoms_take_blocks (MusterRandoms *self, const MusterPlanNode *node, guint64 n_blocks)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  gpointer key = GUINT_TO_POINTER (node->graph_index);
  MusterPhilox *state = g_hash_table_lookup (self->by_node, key);
  if (state == NULL) {
    state = seeded (node->def);
    g_hash_table_insert (self->by_node, key, state);
  }
  const MusterPhilox taken = *state;
  muster_philox_skip (state, n_blocks);
  return taken;
}

MusterPhilox
muster_randoms_take (MusterRandoms *self, const MusterPlanNode *node, guint64 n)
{
  return muster_randoms_take_blocks (self, node, n > 0 ? n * DRAWS_PER_OUTPUT : DRAWS_UNKNOWN);
}
