// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Finds the name that an unknown word was meant to be, among those that are tried. */
typedef struct {
  const char *word;
  const char *name; /* the nearest so far; NULL: none is near */
  guint distance;   /* from word */
} MusterNearest;

void muster_nearest_begin (MusterNearest *self, const char *word);
void muster_nearest_try (MusterNearest *self, const char *name);

/* "; did you mean 'PREFIXname'?", or the empty string. (transfer full) */
char *muster_nearest_text (const MusterNearest *self, const char *prefix);

G_END_DECLS
