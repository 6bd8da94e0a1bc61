// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/server_private.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

G_BEGIN_DECLS

/* A server with an HTTP port, and a client that says and hears every byte itself. */

typedef struct {
  MusterServer *server; /* (owned) */
  int port;
} HttpFixture;

HttpFixture http_start (void);
void http_clear (HttpFixture *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HttpFixture, http_clear)
GSocketConnection *http_visit (HttpFixture *f);
/* All that is answered until the other side closes. What can't be sent any more or is cut off is
 * no failure here. */
char *http_hear (GSocketConnection *connection);
void http_say (GSocketConnection *connection, const char *text);
char *http_ask_with (HttpFixture *f, const char *method, const char *path, const char *headers);
char *http_ask (HttpFixture *f, const char *method, const char *path);
void http_announce (HttpFixture *f, const char *model, gint64 epoch, MusterChiefPhase phase,
                    gint64 step);
gint64 http_claim (HttpFixture *f, const char *model);
void http_give_models (HttpFixture *f);
/* With another Host; "": HTTP/1.0, without one. */
char *http_ask_as (HttpFixture *f, const char *path, const char *host);
/* Reads from a connection until it has heard words, or the other side closes: FALSE. */
gboolean http_hears (GSocketConnection *connection, const char *words);

#define EXPECT_RECEIVED(heard, status, words)                                                      \
  do {                                                                                             \
    MUSTER_EXPECT_TRUE (g_str_has_prefix (heard, "HTTP/1.1 " status " "));                         \
    MUSTER_EXPECT_TRUE (strstr (heard, words) != NULL);                                            \
  } while (0)
#define EXPECT_ANSWER(f, method, path, status, words)                                              \
  do {                                                                                             \
    g_autofree char *heard_ = http_ask (f, method, path);                                          \
    MUSTER_TRACE ("%s %s: %s", method, path, heard_);                                              \
    EXPECT_RECEIVED (heard_, status, words);                                                       \
  } while (0)

G_END_DECLS
