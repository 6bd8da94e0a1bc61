// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* TRUE if a request's Host (nullable) names this server: an IP address, localhost, the machine's
 * own name, or one of the names (nullable, NULL-terminated). A name that somebody else's name
 * server answers for isn't accepted: a web page could use it to reach this server from a browser
 * (DNS rebinding). No Host: no browser, TRUE. */
gboolean muster_http_host_is_own (const char *host, const char *const *names);

G_END_DECLS
