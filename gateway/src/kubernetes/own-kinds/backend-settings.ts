import { responseCacheSchema } from '../../backends/llm/cache/config.ts'
import { llmPolicyFields, routeTypeNames } from '../../backends/llm/config/backend-config.ts'
import {
  boolean,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  object,
  optional,
  withFields,
} from '../../schema/dsl.ts'
import { serverNameFields } from '../../upstream/connection-config.ts'
import { credentialLocation } from '../../upstream/credentials/place-config.ts'
import { clusterEnumeration } from './enumerations.ts'
import { authoritiesReferenceSchema, secretEntrySchema, secretReferenceSchema } from './references.ts'

// Settings of requests to backends that several kinds have.

/** Entry of a Secret with a credential, if the reference names none. */
export const credentialKey = 'Authorization'

/** Schema of TLS to backends. */
export function tlsSchema(doc: string) {
  return object(
    {
      caCertificateRefs: optional(
        list(
          authoritiesReferenceSchema,
          { doc: 'Trusted certificate authorities.', default: 'the well-known authorities' },
          { min: 1, max: 8 },
        ),
      ),
      clientCertificateRef: optional(
        secretReferenceSchema(
          'Secret of type `kubernetes.io/tls` with the client certificate of the gateway.',
        ),
      ),
      ...serverNameFields,
      insecureSkipVerify: optional(
        boolean({ doc: 'Accepts every certificate. For tests only.', default: false, advanced: true }),
      ),
    },
    { doc },
  )
}

/** Schema of credentials for backends. */
export const authSchema = exactlyOne(
  {
    secretRef: secretEntrySchema(
      "The gateway's own credential at the backend. A prefix `Bearer ` of the entry is removed.",
      { key: credentialKey },
    ),
    passthrough: object(
      {},
      { doc: 'Forwards the accepted credential of the client, which is otherwise withheld from backends.' },
    ),
  },
  { location: optional(credentialLocation) },
  { doc: 'How the gateway authenticates to backends.' },
)

// The proxies of a cluster have no database.
const cache = withFields(responseCacheSchema, {
  store: optional(
    enumeration(['memory'], {
      doc: '`memory` of each proxy. `database` of files is not available: the proxies of a cluster have no database.',
      default: 'memory',
    }),
  ),
})

/** Fields of the reading and modification of LLM requests. */
export const llmFields = {
  ...llmPolicyFields,
  cache: optional(cache),
  routes: optional(
    map(clusterEnumeration(routeTypeNames, { doc: 'API call at these paths.' }), {
      doc: 'API calls by path suffix. The longest matching suffix wins, and `*` matches all other paths. Without it every path is a chat completion.',
      example: { '/v1/messages': 'Messages', '/v1/chat/completions': 'Completions', '*': 'Passthrough' },
    }),
  ),
}

const tls = tlsSchema('')

export type TlsSettings = Infer<typeof tls>
export type AuthSettings = Infer<typeof authSchema>
