// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"
#include "rpc/server/rpc_server_private.h"
#include "tests/master/tiny_registry.h"

G_BEGIN_DECLS

/* As little of a MasterService as shows what the remote master sends and makes of answers: one
 * session, "tiny", whose steps answer each fetch with the first feed, fail where they have the
 * target "fail", as in a session that is being closed where they have the target "closed", as
 * cancelled with the target as the text where that is a list of TensorFlow's, and never end where
 * they have the target "hang". */
enum { TINY_GONE = 100, TINY_SILENT };

typedef struct {
  MusterRpcServer *server;
  MusterMaster *master; /* a remote one, of it */
  GMutex lock;
  GBytes *graph;        /* what CreateSession brought; guarded by lock */
  GBytes *config;       /* guarded by lock */
  gint64 version;       /* of the graph; guarded by lock */
  GBytes *options;      /* (nullable) of the last step; guarded by lock */
  gint64 request_id;    /* of the last step; guarded by lock */
  char **containers;    /* (nullable) of the last reset; guarded by lock */
  gint64 released;      /* the callable released last; guarded by lock */
  gint known_answer;    /* atomic: of CreateKnown: 0, or an error's code */
  gint n_asked;         /* atomic: how often a session of a known graph was asked for, … */
  gint n_sent;          /* atomic: … and a graph was sent */
  GAsyncQueue *closed;  /* handles, as they are closed */
  GAsyncQueue *hanging; /* calls that never end */
  gboolean is_lost;     /* atomic: answers as a master that restarted, … */
  gboolean is_closing;  /* atomic: … or as one that is closing the session */
  TinyRegistry registry;
  char *lease;          /* (nullable) the header of the last CreateSession; guarded by lock */
  gint renew_answer;    /* atomic: 0, an error's code, TINY_GONE or TINY_SILENT */
  GAsyncQueue *renewed; /* (element-type utf8) the handles of each Renew: "tiny tiny" */
  gint is_deaf;         /* atomic: sessions are never closed */
} TinyMaster;

void tiny_master_start (TinyMaster *self);
void tiny_master_clear (TinyMaster *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyMaster, tiny_master_clear)

G_END_DECLS
