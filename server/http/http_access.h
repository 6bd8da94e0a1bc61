// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials.h"

#include <microhttpd.h>

G_BEGIN_DECLS

/* Who may read a page that isn't open to all. */
typedef enum {
  MUSTER_HTTP_OPEN,    /* the server asks for nothing */
  MUSTER_HTTP_LET_IN,  /* the request's token has the role of reading */
  MUSTER_HTTP_STOPPED, /* it has no such token */
  MUSTER_HTTP_NO_WAY,  /* the server asks for client certificates alone, which HTTP doesn't */
} MusterHttpAccess;

/* credentials (nullable). The token is that of "Authorization: Bearer TOKEN", or the password of
 * Basic, for browsers. */
MusterHttpAccess muster_http_access (MusterRpcCredentials *credentials,
                                     struct MHD_Connection *connection);

G_END_DECLS
