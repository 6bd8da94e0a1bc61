// SPDX-License-Identifier: Apache-2.0
#include "base/blocking_private.h"

static _Thread_local struct {
  MusterBlockingHook hook;
  gpointer user_data;
} listener;

void
muster_blocking_set_hook (MusterBlockingHook hook, gpointer user_data)
{
  listener.hook = hook;
  listener.user_data = user_data;
}

void
muster_about_to_block (void)
{
  if (listener.hook != NULL)
    listener.hook (listener.user_data);
}
