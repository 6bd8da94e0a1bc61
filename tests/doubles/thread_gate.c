// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/thread_gate.h"

gboolean
muster_thread_gate_wait (G_GNUC_UNUSED MusterCoordinator *coordinator, gpointer gate,
                         G_GNUC_UNUSED GError **error)
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
