// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * muster_log_set_level:
 * @level: such as %G_LOG_LEVEL_INFO
 *
 * Sets the least severe level of the library's messages, for the process: %G_LOG_LEVEL_CRITICAL and
 * %G_LOG_LEVEL_WARNING for what an operator must know, %G_LOG_LEVEL_MESSAGE for what the user of a
 * training should read, %G_LOG_LEVEL_INFO for events, %G_LOG_LEVEL_DEBUG for each request. Without
 * it, messages below warnings are off, unless `G_MESSAGES_DEBUG` contains `Muster` or `all`. A
 * program receives them by g_log_set_writer_func (): the domain is "Muster".
 */
void muster_log_set_level (GLogLevelFlags level);

G_END_DECLS
