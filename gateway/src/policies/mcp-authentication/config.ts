import { jwksSchema, validationOptionsSchema } from '../../identity/jwt/verifier-config.ts'
import {
  boolean,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  name,
  object,
  openObject,
  optional,
  secretSource,
  url,
} from '../../schema/dsl.ts'
import { locationSchema } from '../../upstream/credentials/credential-location.ts'
import { authorizationServerSchema } from './authorization-server/config.ts'

function provider(doc: string) {
  return object({}, { doc })
}

const providerSchema = exactlyOne(
  {
    idpA: provider(
      'Agentic issuers `{address}/v1/apps/agentic/<project>/<server>`, with the keys of the project.',
    ),
    idpB: provider('Keys at `{issuer}/jwks/`, no client registration.'),
    descope: provider('Alias of `idpA`.'),
    authentik: provider('Alias of `idpB`.'),
    keycloak: provider('Realms of Keycloak.'),
    auth0: provider('Tenants of Auth0.'),
    okta: provider('Authorization servers of Okta.'),
    entra: provider('Tenants of Microsoft Entra ID.'),
  },
  {},
  { doc: 'Kind of identity provider, for deviations from the standards.' },
)

const resourceMetadata = openObject(
  {
    resource: optional(
      url({
        doc: 'Public address of the MCP endpoint, with its path. By default it is derived from each request.',
        example: 'https://gateway.example.com/mcp',
      }),
    ),
    scopesSupported: optional(
      list(name({ doc: 'A scope.' }), { doc: 'Scopes that clients should request.', example: ['openid'] }),
    ),
    bearerMethodsSupported: optional(
      list(name({ doc: '`header`, `body` or `query`.' }), {
        doc: 'Methods by which clients may send tokens.',
        example: ['header'],
      }),
    ),
  },
  {
    doc: 'Protected resource metadata (RFC 9728). Additional fields are published with their names in snake_case.',
  },
)

/** Fields without files, secrets and alternatives of form. */
export const mcpAuthenticationFields = {
  issuer: url({
    doc: 'Issuer of the tokens; must be identical to their `iss`.',
    example: 'https://id.example.com/realms/main',
  }),
  audiences: list(
    name({ doc: 'An audience.' }),
    {
      doc: 'Accepted audiences: `aud` of a token must contain one of them.',
      example: ['https://gateway.example.com/mcp'],
    },
    { min: 1 },
  ),
  clientId: optional(
    name({
      doc: 'Client id registered at the provider. The gateway returns it to every client that registers; with `authorizationServers: front` the gateway uses it itself.',
    }),
  ),
  allowedRedirectUris: optional(
    list(name({ doc: 'A redirect URI; the port may be `*`, and the path may end with `*`.' }), {
      doc: 'Redirect URIs that clients may register if `clientId` is set, and with `front` also use. By default all are allowed.',
      example: ['http://localhost:*/callback', 'https://chat.example.com/oauth/callback'],
    }),
  ),
  resourceMetadata: optional(resourceMetadata),
  authorizationLocation: optional(locationSchema),
  jwtValidationOptions: optional(validationOptionsSchema),
  trustForwardedHeaders: optional(
    boolean({
      doc: 'Whether `x-forwarded-proto` and `x-forwarded-host` determine the public address if `resource` is unset. Enable only behind a proxy that sets both.',
      default: false,
      advanced: true,
    }),
  ),
}

/** `mcp.policies.mcpAuthentication` (specification, "MCP authentication config"). */
export const mcpAuthenticationSchema = object(
  {
    mode: optional(
      enumeration(['strict', 'optional', 'permissive'], {
        doc: 'Authentication mode: `strict` requires a valid token, `optional` also admits requests without a token, `permissive` admits all requests.',
        default: 'strict',
      }),
    ),
    issuer: mcpAuthenticationFields.issuer,
    audiences: mcpAuthenticationFields.audiences,
    provider: optional(providerSchema),
    clientId: mcpAuthenticationFields.clientId,
    clientSecret: optional(
      secretSource({
        doc: 'Secret of the client, for token requests that the gateway sends (`authorizationServers: front`) or forwards (`entra`).',
        advanced: true,
      }),
    ),
    allowedRedirectUris: mcpAuthenticationFields.allowedRedirectUris,
    resourceMetadata: mcpAuthenticationFields.resourceMetadata,
    jwks: optional(jwksSchema({ default: 'derived from issuer and provider' })),
    authorizationServers: optional(
      enumeration(['gateway', 'provider', 'front'], {
        doc: 'Authorization server that clients discover: `gateway` publishes the metadata of the provider under the address of the gateway, `provider` refers to the issuer, `front` makes the gateway an authorization server that signs in at the provider.',
        default: 'gateway if provider is set, except keycloak; else provider',
      }),
    ),
    front: optional(authorizationServerSchema),
    authorizationLocation: mcpAuthenticationFields.authorizationLocation,
    jwtValidationOptions: mcpAuthenticationFields.jwtValidationOptions,
    trustForwardedHeaders: mcpAuthenticationFields.trustForwardedHeaders,
  },
  { doc: 'Authentication by OAuth 2.1 access tokens of an identity provider, with discovery for clients.' },
)

export type McpAuthenticationConfig = Infer<typeof mcpAuthenticationSchema>
export type ProviderConfig = NonNullable<McpAuthenticationConfig['provider']>
export type ResourceMetadataConfig = NonNullable<McpAuthenticationConfig['resourceMetadata']>
