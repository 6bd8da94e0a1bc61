// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/config_file.h"
#include "cli/common/flags.h"
#include "engine/session/local_master.h"
#include "server/server.h"
#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* The options of `muster serve`, their checks, and the master and the server's options that they
 * describe. A plain struct; zero-initialise and clear it. */

typedef struct {
  char *listen, *health_listen, *http, *target, *task;       /* (owned) (nullable) */
  char **addresses;                                          /* (owned) those of listen */
  char *tls_cert, *tls_key, *tls_ca, *token;                 /* (owned) (nullable) files */
  char *master_cert, *master_key, *master_ca, *master_token; /* (owned) (nullable) files */
  char *idle_session, *chief_lease, *grace;                  /* (owned) (nullable) times */
  char *max_memory;                                          /* (owned) (nullable) a size */
  char *checkpoint_memory;                                   /* (owned) (nullable) likewise */
  char **allow_users;                                        /* (owned) (nullable) */
  GArray *users;                /* (owned) (nullable) (element-type guint32) those of allow_users */
  char **data_dirs;             /* (owned) (nullable) */
  MusterClusterSpec *cluster;   /* (owned) (nullable) whose task the master is to be */
  char **needed;                /* (owned) (nullable) the tasks that the cluster's task needs */
  char **http_hosts;            /* (owned) (nullable) */
  char *log_level, *log_format; /* (owned) (nullable) */
  MusterFlags *flags;           /* (owned) */
  MusterServerLimits limits;
  gboolean insecure, check_config;
  char **roles;                      /* (owned) (nullable) NAME=ROLE */
  char *config;                      /* (owned) (nullable) file */
  MusterConfigFile *file;            /* (owned) (nullable) from config */
  char **expected;                   /* (owned) (nullable) models */
  char **given;                      /* (owned) the options in effect, the file's first */
  gint64 grace_us;                   /* from muster_serve_options_server () */
  MusterRpcCredentials *credentials; /* (owned) (nullable) from muster_serve_options_server () */
  MusterRpcCredentials *master_credentials; /* (owned) (nullable) from ..._master () */
} MusterServeOptions;

void muster_serve_options_clear (MusterServeOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterServeOptions, muster_serve_options_clear)

/* Parses the command line and the file of --config, and sets up the log; --help prints and exits.
 * An option must be in a table of serve_options.c, or in that of a
 * struct's fields; then the file may set it too. */
gboolean muster_serve_options_parse (MusterServeOptions *self, int argc, char **argv,
                                     GError **error);

/* An option's name for messages: "--NAME", or where the file sets it; borrowed. */
const char *muster_serve_options_name (const MusterServeOptions *self, const char *name);

/* Checks the options for the server, reads its credentials and sets *server, which borrows them
 * from self. */
gboolean muster_serve_options_server (MusterServeOptions *self, MusterServerOptions *server,
                                      GError **error);

/* Which task of TF_CONFIG's cluster the master is to be, if --task says so; and the default of
 * --listen. */
gboolean muster_serve_options_task (MusterServeOptions *self, GError **error);

/* Makes the master to serve, after checking its options. (transfer full) */
MusterMaster *muster_serve_options_master (MusterServeOptions *self, GError **error);

/* Reads certificates and tokens again: if their files have changed, or now. Bad ones are logged,
 * and those before stay in use. */
void muster_serve_options_refresh (const MusterServeOptions *self);
void muster_serve_options_reload (const MusterServeOptions *self);

G_END_DECLS
