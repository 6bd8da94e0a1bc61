// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* PEM files in a folder, made by the openssl command: a CA, "ca.pem"; "server.pem" (for localhost,
 * 127.0.0.1 and ::1), "client.pem" and "elsewhere.pem" (for another host), signed by it;
 * "other_ca.pem", and "other_server.pem" and "other_client.pem", signed by that one; the keys
 * beside them, as "server.key". */

/* Makes them; the test fails if it can't. */
void certificates_make (const char *folder);

/* The path of one of them; owned by the caller. */
char *certificates_path (const char *folder, const char *name);

/* Writes a file there, which only its owner can read, in place of an older one; returns its path.
 */
char *certificates_write (const char *folder, const char *name, const char *text);

G_END_DECLS
