// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Sets INVALID_ARGUMENT. Always returns FALSE. */
gboolean muster_cli_usage_error (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

G_END_DECLS
