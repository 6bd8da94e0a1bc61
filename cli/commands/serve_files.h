// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "cli/commands/serve_options.h"

G_BEGIN_DECLS

/* Which files the steps of clients may open: --data-dir. */

/* Sets *storage (transfer full) to the store within --data-dir, to local files without it, and to
 * NULL where this process opens no files: TRUE then, unless a directory doesn't exist. */
gboolean muster_serve_files_storage (const MusterServeOptions *options, MusterStorage **storage,
                                     GError **error);

/* TRUE if --data-dir is for TensorFlow's runtime, which opens files itself. */
gboolean muster_serve_files_are_of_child (const MusterServeOptions *options);

/* Warns on standard error if other machines, which reach an exposed server, can make this process
 * open any of its files. */
void muster_serve_files_warn (const MusterServeOptions *options, gboolean is_exposed);

G_END_DECLS
