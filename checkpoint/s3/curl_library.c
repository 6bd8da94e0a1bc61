// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/curl_library_private.h"

#include "base/error.h"

#include <dlfcn.h>

#define LIBRARY "libcurl.so.4"

/* 7.88 is Debian 12's. Versions before 7.86 don't sign a request's own headers. */
#define OLDEST 0x075800

static gboolean
find (void *library, const char *name, void *function, GError **error)
{
  *(void **)function = dlsym (library, name);
  return *(void **)function != NULL ||
         muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "object stores need libcurl 7.88 or newer, and the installed one lacks %s; "
                      "install the package libcurl4",
                      name);
}

static gboolean
find_all (void *library, MusterCurl *curl, GError **error)
{
  const struct {
    const char *name;
    void *function;
  } wanted[] = {
      {"curl_global_init", &curl->global_init},
      {"curl_version_info", &curl->version_info},
      {"curl_getdate", &curl->getdate},
      {"curl_easy_init", &curl->easy_init},
      {"curl_easy_reset", &curl->easy_reset},
      {"curl_easy_cleanup", &curl->easy_cleanup},
      {"curl_easy_setopt", &curl->easy_setopt},
      {"curl_easy_getinfo", &curl->easy_getinfo},
      {"curl_easy_strerror", &curl->easy_strerror},
      {"curl_multi_init", &curl->multi_init},
      {"curl_multi_setopt", &curl->multi_setopt},
      {"curl_multi_add_handle", &curl->multi_add_handle},
      {"curl_multi_remove_handle", &curl->multi_remove_handle},
      {"curl_multi_perform", &curl->multi_perform},
      {"curl_multi_poll", &curl->multi_poll},
      {"curl_multi_wakeup", &curl->multi_wakeup},
      {"curl_multi_info_read", &curl->multi_info_read},
      {"curl_multi_cleanup", &curl->multi_cleanup},
      {"curl_slist_append", &curl->slist_append},
      {"curl_slist_free_all", &curl->slist_free_all},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (wanted); i++)
    if (!find (library, wanted[i].name, wanted[i].function, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_version (const MusterCurl *curl, GError **error)
{
  const curl_version_info_data *info = curl->version_info (CURLVERSION_NOW);
  return info->version_num >= OLDEST ||
         muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "object stores need libcurl 7.88 or newer, and %s is installed; upgrade the "
                      "package libcurl4",
                      info->version);
}

gboolean
muster_curl_load (const char *name, MusterCurl *curl, GError **error)
{
  void *library = dlopen (name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "object stores need libcurl: %s; install the package libcurl4", dlerror ());
  if (find_all (library, curl, error) && check_version (curl, error)) {
    if (curl->global_init (CURL_GLOBAL_DEFAULT) == CURLE_OK)
      return TRUE;
    muster_fail (error, MUSTER_ERROR_INTERNAL, "libcurl could not be initialised");
  }
  dlclose (library);
  return FALSE;
}

const MusterCurl *
muster_curl (GError **error)
{
  static GMutex lock;
  static MusterCurl curl;
  static gboolean is_loaded;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (!is_loaded)
    is_loaded = muster_curl_load (LIBRARY, &curl, error);
  return is_loaded ? &curl : NULL;
}
