// SPDX-License-Identifier: Apache-2.0
#include "master/remote/target.h"

#include "base/require_private.h"
#include "master/remote/remote_master.h"

typedef struct {
  char *scheme;
  MusterMasterFactory factory;
} Offer;

static GMutex offers_lock;
static GArray
    *offers; /* guarded by offers_lock: (element-type Offer), for as long as the process */

static gboolean
is_of_scheme (const char *target, const char *scheme)
{
  gsize n = strlen (scheme);
  if (strncmp (target, scheme, n) != 0)
    return FALSE;
  const char *rest = target + n;
  return *rest == '\0' || (*rest == ':' && rest[1 + strspn (rest + 1, "0123456789")] != '\0');
}

static Offer *
find_offer (const char *target)
{
  for (guint i = 0; offers != NULL && i < offers->len; i++) {
    Offer *offer = &g_array_index (offers, Offer, i);
    if (is_of_scheme (target, offer->scheme))
      return offer;
  }
  return NULL;
}

void
muster_master_offer (const char *scheme, MusterMasterFactory factory)
{
  g_return_if_fail (scheme != NULL && factory != NULL);
  g_mutex_lock (&offers_lock);
  Offer *known = find_offer (scheme);
  if (known != NULL) {
    known->factory = factory;
  } else {
    if (offers == NULL)
      offers = g_array_new (FALSE, FALSE, sizeof (Offer));
    g_array_append_vals (offers, &(Offer){g_strdup (scheme), factory}, 1);
  }
  g_mutex_unlock (&offers_lock);
}

static MusterMasterFactory
factory_for (const char *target)
{
  g_mutex_lock (&offers_lock);
  const Offer *offer = find_offer (target);
  MusterMasterFactory factory = offer != NULL ? offer->factory : NULL;
  g_mutex_unlock (&offers_lock);
  return factory;
}

gboolean
muster_master_is_offered (const char *target)
{
  g_return_val_if_fail (target != NULL, FALSE);
  return factory_for (target) != NULL;
}

static char *
known_targets (void)
{
  GString *known = g_string_new ("'grpc://HOST:PORT', 'grpcs://HOST:PORT', 'unix:/PATH'");
  g_mutex_lock (&offers_lock);
  for (guint i = 0; offers != NULL && i < offers->len; i++)
    g_string_append_printf (known, ", '%s'", g_array_index (offers, Offer, i).scheme);
  g_mutex_unlock (&offers_lock);
  return g_string_free (known, FALSE);
}

MusterMaster *
muster_master_new_for_target (const char *target, GError **error)
{
  muster_require (error, NULL, target);
  return muster_master_new_secured (target, NULL, error);
}

MusterMaster *
muster_master_new_with_files (const char *target, const char *ca_file, const char *certificate_file,
                              const char *key_file, const char *token_file, GError **error)
{
  muster_require (error, NULL, target);

  const MusterRpcSecurity files = {.ca_file = ca_file,
                                   .certificate_file = certificate_file,
                                   .key_file = key_file,
                                   .token_file = token_file,
                                   .tls = g_str_has_prefix (target, "grpcs://")};
  g_autoptr (MusterRpcCredentials) credentials = muster_rpc_credentials_new (&files, error);
  return credentials == NULL ? NULL : muster_master_new_secured (target, credentials, error);
}

/* Returns the function by which a library offers such a target; NULL for any other target. */
static const char *
offer_of (const char *target)
{
  static const char *const offers[][2] = {
      {"local", "muster_local_master_offer"},
      {"tensorflow", "muster_tensorflow_master_offer"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (offers); i++)
    if (is_of_scheme (target, offers[i][0]))
      return offers[i][1];
  return NULL;
}

MusterMaster *
muster_master_new_secured (const char *target, MusterRpcCredentials *credentials, GError **error)
{
  muster_require (error, NULL, target);
  MusterMasterFactory factory = factory_for (target);
  if (factory != NULL && credentials != NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' takes neither TLS nor a token: those are for a server", target);
    return NULL;
  }
  if (factory != NULL)
    return factory (target, error);
  const char *offer = offer_of (target);
  if (offer != NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "master '%s' isn't offered by this program; call %s () first", target, offer);
    return NULL;
  }
  g_autoptr (GError) why = NULL;
  MusterMaster *remote = muster_remote_master_new_secured (target, credentials, &why);
  if (remote != NULL)
    return remote;
  g_autofree char *known = known_targets ();
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s; masters known here: %s", why->message,
               known);
  return NULL;
}
