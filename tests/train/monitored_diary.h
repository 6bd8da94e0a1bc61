// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/gtest_shim.h"
#include "tests/train/monitored_fixture.h"

G_BEGIN_DECLS

/* A monitored session whose hooks keep a diary. */

#define SET_UP(f)                                                                                  \
  g_auto (Monitored) f = monitored_set_up ();                                                      \
  g_autoptr (GString) diary = g_string_new (NULL);                                                 \
  g_autoptr (GError) error = NULL;                                                                 \
  monitored_script (&f)

static inline MusterHook *
add (Monitored *f, const char *name, GString *diary)
{
  MusterHook *hook = diary_hook_new (name, diary);

  monitored_add (f, hook);

  return hook;
}

G_END_DECLS
