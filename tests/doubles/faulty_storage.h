// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files, of which those under one directory fail in some way. Any thread. */

#define MUSTER_TYPE_FAULTY_STORAGE (muster_faulty_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterFaultyStorage, muster_faulty_storage, MUSTER, FAULTY_STORAGE,
                      MusterForwardingStorage)

typedef enum {
  MUSTER_FAULT_NONE,
  MUSTER_FAULT_NO_SPACE,  /* no byte is free, which a check tells */
  MUSTER_FAULT_FILLS_UP,  /* data can't be written, though a check tells of space */
  MUSTER_FAULT_EXHAUSTED, /* the same, in a master's words: RESOURCE_EXHAUSTED */
  MUSTER_FAULT_BROKEN,    /* whatever is asked fails: an input/output error */
  MUSTER_FAULT_AWAY,      /* nothing answers, as an object store says it: UNAVAILABLE */
  MUSTER_FAULT_ABSENT,    /* no file is there, as on a host that doesn't share the directory */
  MUSTER_FAULT_HANGS,     /* whoever opens, lists or looks at a file waits until this ends, a minute
                             at most */
} MusterFault;

MusterFaultyStorage *muster_faulty_storage_new (void);

/* From now on; directory is borrowed, and the same in each call. */
void muster_faulty_storage_set (MusterFaultyStorage *self, const char *directory,
                                MusterFault fault);

G_END_DECLS
