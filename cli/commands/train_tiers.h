// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/tiers/tier.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Parses the values of --fast-dir, "DIR[,every=STEPS|secs=TIME][,keep=N]": words is (nullable),
 * NULL-terminated. *tiers: (out) (transfer full) (array length=n) (nullable); free it with
 * muster_train_tiers_free (). */
gboolean muster_train_tiers_parse (char **words, MusterTier **tiers, gsize *n, GError **error);
void muster_train_tiers_free (MusterTier *tiers, gsize n);

G_END_DECLS
