// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <grpc/grpc.h>

G_BEGIN_DECLS

/* A connection of its own, which gRPC's C core would share otherwise; without a proxy, and without
 * retries, as muster's own client. ca is (nullable) in PEM: TLS. */
grpc_channel *bench_connect (const char *address, const char *ca);

G_END_DECLS
