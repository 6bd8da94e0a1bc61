// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The path of a local file, which TensorFlow's programs may write as file:///PATH or
 * file://HOST/PATH; any other text as it is. Borrowed from text. */
const char *muster_local_path (const char *text);

G_END_DECLS
