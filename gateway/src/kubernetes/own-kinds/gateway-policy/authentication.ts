import { realmSchema } from '../../../policies/basic-auth/basic-auth.ts'
import { issuerFields } from '../../../policies/jwt-auth.ts'
import { authorizationServerFields } from '../../../policies/mcp-authentication/authorization-server/config.ts'
import { mcpAuthenticationFields } from '../../../policies/mcp-authentication/config.ts'
import { exactlyOne, type Infer, list, map, object, optional, string, url } from '../../../schema/dsl.ts'
import { locationSchema } from '../../../upstream/credentials/credential-location.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { secretEntrySchema, secretReferenceSchema } from '../references.ts'

/** Entry of a Secret with users, if the reference names none. */
export const htpasswdKey = '.htaccess'

function modeSchema(credential: string) {
  return optional(
    clusterEnumeration(['strict', 'optional', 'permissive'], {
      doc: `Authentication mode: \`Strict\` requires a valid ${credential}, \`Optional\` also admits requests without one, \`Permissive\` admits all requests.`,
      default: 'Strict',
    }),
  )
}

const keySet = exactlyOne(
  {
    remote: object(
      { url: url({ doc: 'Address of the key set, fetched by the proxies.' }) },
      { doc: 'Key set at an address.' },
    ),
    inline: string({ doc: 'The key set as JSON.' }),
  },
  {},
  { doc: 'JSON Web Key Set that verifies tokens (RFC 7517).' },
)

const issuer = object({ ...issuerFields, jwks: keySet }, { doc: 'Issuer of tokens.' })

/** `traffic.jwtAuthentication`. */
export const jwtAuthenticationSchema = object(
  {
    mode: modeSchema('token'),
    location: optional(locationSchema),
    providers: list(
      issuer,
      { doc: 'Issuers. The `iss` of a token selects one of them.' },
      { min: 1, max: 64 },
    ),
  },
  {
    doc: 'Authentication with signed tokens (JWT). The claims of a valid token are `jwt.*` in expressions, and the token is removed from the request.',
  },
)

/** `traffic.apiKeyAuthentication`. */
export const apiKeyAuthenticationSchema = exactlyOne(
  {
    secretRef: secretReferenceSchema('Secret with keys.'),
    secretSelector: object(
      {
        matchLabels: map(string({ doc: 'Value of the label.' }), {
          doc: 'Labels of the Secrets, in the namespace of the policy.',
          example: { 'example.com/api-keys': 'search' },
        }),
      },
      { doc: 'Secrets with keys, by label. Without a matching Secret, no key is accepted.' },
    ),
  },
  { mode: modeSchema('key'), location: optional(locationSchema) },
  {
    doc: 'Authentication with API keys. Each entry of a Secret is a key as plain text, or a JSON object with the fields of a virtual key record: `key` or `keyHash`, `metadata`, `expiresAt`, `allowedModels` and the others. The metadata is `apiKey.*` in expressions; `apiKey.name` is by default the name of the entry.',
  },
)

/** `traffic.basicAuthentication`. */
export const basicAuthenticationSchema = object(
  {
    mode: optional(
      clusterEnumeration(['strict', 'optional'], {
        doc: 'Authentication mode: `Strict` requires a valid password, `Optional` also admits requests without one.',
        default: 'Strict',
      }),
    ),
    realm: realmSchema,
    location: optional(locationSchema),
    secretRef: secretEntrySchema(
      'Secret with users and bcrypt or argon2 hashes, as `htpasswd -B` writes them.',
      { key: htpasswdKey },
    ),
  },
  {
    doc: 'Authentication with user name and password. The name is `basicAuth.username` in expressions, and the password is removed from the request.',
  },
)

const authorizationServer = object(
  {
    claims: optional(
      clusterEnumeration(['accessToken', 'idToken'], {
        doc: 'Source of the claims (`jwt.*`). `IdToken` is for providers whose access tokens are not JWTs for `audiences`; `audiences` must then include `clientId`.',
        default: 'AccessToken',
      }),
    ),
    accessTokens: optional(
      clusterEnumeration(['gateway', 'provider'], {
        doc: 'Access tokens that clients receive: `Gateway` issues opaque tokens of its own, `Provider` forwards the tokens of the provider.',
        default: 'Gateway',
      }),
    ),
    ...authorizationServerFields,
  },
  { doc: 'Settings of the gateway as authorization server, with `authorizationServers: Front`.' },
)

/** `backend.mcp.mcpAuthentication`. */
export const mcpAuthenticationSchema = object(
  {
    mode: modeSchema('token'),
    ...mcpAuthenticationFields,
    provider: optional(
      clusterEnumeration(['idpA', 'idpB', 'descope', 'authentik', 'keycloak', 'auth0', 'okta', 'entra'], {
        doc: 'Kind of identity provider, for deviations from the standards.',
      }),
    ),
    clientSecretRef: optional(
      secretEntrySchema(
        'Secret of the client, for token requests that the gateway sends (`authorizationServers: Front`) or forwards (`Entra`).',
        { key: 'client-secret' },
      ),
    ),
    jwks: optional(keySet),
    authorizationServers: optional(
      clusterEnumeration(['gateway', 'provider', 'front'], {
        doc: 'Authorization server that clients discover: `Gateway` publishes the metadata of the provider under the address of the gateway, `Provider` refers to the issuer, `Front` makes the gateway an authorization server that signs in at the provider.',
        default: 'Gateway if provider is set, except Keycloak; else Provider',
      }),
    ),
    front: optional(authorizationServer),
  },
  { doc: 'Authentication by OAuth 2.1 access tokens of an identity provider, with discovery for clients.' },
)

export type KeySet = Infer<typeof keySet>
export type BasicAuthentication = Infer<typeof basicAuthenticationSchema>
export type ApiKeyAuthentication = Infer<typeof apiKeyAuthenticationSchema>
export type McpAuthentication = Infer<typeof mcpAuthenticationSchema>
