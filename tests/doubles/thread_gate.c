// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/thread_gate.h"

gboolean
muster_thread_gate_wait (MusterCoordinator *coordinator G_GNUC_UNUSED, gpointer gate,
                         GError **error G_GNUC_UNUSED)
{
  MusterThreadGate *self = gate;
  g_mutex_lock (&self->lock);
  while (!self->is_open)
    g_cond_wait (&self->cond, &self->lock);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

void
muster_thread_gate_open (MusterThreadGate *self)
{
  g_mutex_lock (&self->lock);
  self->is_open = TRUE;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}
