// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * MUSTER_VERSION:
 *
 * The version of these headers, as in `muster --version` and the server's About.
 */
#define MUSTER_VERSION "0.1.0"

/**
 * MUSTER_MAJOR_VERSION:
 *
 * The first number of the version of these headers.
 */
#define MUSTER_MAJOR_VERSION 0

/**
 * MUSTER_MINOR_VERSION:
 *
 * The second number of the version of these headers.
 */
#define MUSTER_MINOR_VERSION 1

/**
 * MUSTER_MICRO_VERSION:
 *
 * The third number of the version of these headers.
 */
#define MUSTER_MICRO_VERSION 0

/**
 * MUSTER_CHECK_VERSION:
 * @major: the first number
 * @minor: the second number
 * @micro: the third number
 *
 * True if these headers are of that version or later. For the preprocessor, too.
 */
#define MUSTER_CHECK_VERSION(major, minor, micro)                                                  \
  (MUSTER_MAJOR_VERSION > (major) ||                                                               \
   (MUSTER_MAJOR_VERSION == (major) && MUSTER_MINOR_VERSION > (minor)) ||                          \
   (MUSTER_MAJOR_VERSION == (major) && MUSTER_MINOR_VERSION == (minor) &&                          \
    MUSTER_MICRO_VERSION >= (micro)))

/**
 * muster_version:
 *
 * The version of the library that is loaded, which may be later than %MUSTER_VERSION.
 *
 * Returns: the version, such as "0.1.0"
 */
const char *muster_version (void);

/**
 * muster_check_version:
 * @major: the first number
 * @minor: the second number
 * @micro: the third number
 *
 * Compares the version of the library that is loaded.
 *
 * Returns: %TRUE if it is that version or later
 */
gboolean muster_check_version (guint major, guint minor, guint micro);

G_END_DECLS
