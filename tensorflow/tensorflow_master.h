// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/**
 * MusterTensorflowMaster:
 *
 * The target "tensorflow": TensorFlow's runtime with all of its operations, as a child process of
 * this one. muster isn't linked to it: its library is found at run time, in TensorFlow's Python
 * package or tarball, or at a given path. The child listens on 127.0.0.1 only and always ends with
 * this process. When it dies it is restarted on the same port; its variables are lost, and its
 * sessions fail with UNAVAILABLE or ABORTED. Clients that then create another session, as a manager
 * does, continue.
 */

#define MUSTER_TYPE_TENSORFLOW_MASTER (muster_tensorflow_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterTensorflowMaster, muster_tensorflow_master, MUSTER, TENSORFLOW_MASTER,
                      GObject)

/**
 * muster_tensorflow_master_new:
 * @path: (nullable): the library, or a virtual environment or directory that contains it; NULL:
 *   search the virtual environment, python3's packages and /usr/local/lib
 *
 * Starts TensorFlow's runtime in the background, which takes a second or more, at most two minutes;
 * the first call waits for that, until its own deadline or its cancellation. The child lives as
 * long as the master and its sessions. NOT_FOUND tells how to install TensorFlow. If the library is
 * unsuitable, each call fails (INVALID_ARGUMENT, or INTERNAL if the child died).
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_tensorflow_master_new (const char *path, GError **error);

/**
 * muster_tensorflow_master_new_within:
 * @target: "tensorflow" or "tensorflow:PATH"
 * @directories: (array zero-terminated=1): directories, which must exist
 *
 * The same for a runtime that may open files only in these directories, and read the system's
 * programs and libraries: the kernel confines it (Landlock, Linux 5.19). Each call fails with
 * INVALID_ARGUMENT if it can't.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_tensorflow_master_new_within (const char *target,
                                                   const char *const *directories, GError **error);

/**
 * muster_tensorflow_master_new_task:
 * @target: "tensorflow" or "tensorflow:PATH"
 * @cluster: a cluster, and which task of it this is
 * @directories: (nullable) (array zero-terminated=1): as in muster_tensorflow_master_new_within ();
 *   %NULL: all files
 *
 * The same for a runtime that is a task of a cluster, like a tf.distribute.Server. It listens on
 * the port of the task's address, on every address of this machine, and takes connections of the
 * machines that the cluster's addresses name, as they resolve at the time, and on this machine of
 * this user. TensorFlow has neither TLS nor tokens between tasks: whoever runs programs on these
 * machines, or can send in their name, has all that the task has. Connections over the network end
 * when the other machine has been silent for three seconds. INVALID_ARGUMENT as well if @cluster
 * names no task, or one without a port.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_tensorflow_master_new_task (const char *target,
                                                 const MusterClusterSpec *cluster,
                                                 const char *const *directories, GError **error);

/**
 * muster_tensorflow_master_describe:
 * @self: a master
 *
 * "TensorFlow 2.21.0 from '/…/libtensorflow_cc.so.2', as process 1234"; before it serves, without
 * version and process. This is logged when it first serves.
 *
 * Returns: (transfer full): the text
 */
char *muster_tensorflow_master_describe (MusterTensorflowMaster *self);

/**
 * muster_tensorflow_master_offer:
 *
 * Offers "tensorflow" and "tensorflow:PATH" to muster_master_new_for_target (). Equal targets are
 * the same master, which lives as long as the process unless its start fails. (A path of digits is
 * a port: "tensorflow:2222" is the host with that name.)
 */
void muster_tensorflow_master_offer (void);

G_END_DECLS
