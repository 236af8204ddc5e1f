import { locationSchema } from '../../identity/credential-location.ts'
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
import { authorizationServerSchema } from './authorization-server/config.ts'

function provider(doc: string) {
  return object({}, { doc })
}

const providerSchema = exactlyOne(
  {
    idpA: provider('Agentic issuers `{address}/v1/apps/agentic/<project>/<server>`, keys of the project.'),
    idpB: provider('Keys at `{issuer}/jwks/`, no registration of its own.'),
    descope: provider('Another name of `idpA`.'),
    authentik: provider('Another name of `idpB`.'),
    keycloak: provider('Realms of Keycloak.'),
    auth0: provider('Tenants of Auth0.'),
    okta: provider('Authorization servers of Okta.'),
    entra: provider('Tenants of Microsoft Entra ID.'),
  },
  {},
  { doc: 'The identity provider, where it differs from the standards.' },
)

const resourceMetadata = openObject(
  {
    resource: optional(
      url({
        doc: 'Address of the MCP endpoint as clients know it, with its path. Without it, it is read off each request.',
        example: 'https://gateway.example.com/mcp',
      }),
    ),
    scopesSupported: optional(
      list(name({ doc: 'A scope.' }), { doc: 'Scopes that clients should ask for.', example: ['openid'] }),
    ),
    bearerMethodsSupported: optional(
      list(name({ doc: '`header`, `body` or `query`.' }), {
        doc: 'How clients may send tokens.',
        example: ['header'],
      }),
    ),
  },
  {
    doc: 'What the protected resource metadata (RFC 9728) says. Further fields are added to it with their names in snake_case.',
  },
)

/** `mcp.policies.mcpAuthentication` (specification, "MCP authentication config"). */
export const mcpAuthenticationSchema = object(
  {
    mode: optional(
      enumeration(['strict', 'optional', 'permissive'], {
        doc: 'Who passes: `strict` only valid tokens, `optional` also requests without a token, `permissive` everyone.',
        default: 'strict',
      }),
    ),
    issuer: url({
      doc: 'Issuer of the tokens; equals their `iss` to the letter.',
      example: 'https://id.example.com/realms/main',
    }),
    audiences: list(
      name({ doc: 'An audience.' }),
      {
        doc: 'One of them must be in the `aud` of a token.',
        example: ['https://gateway.example.com/mcp'],
      },
      { min: 1 },
    ),
    provider: optional(providerSchema),
    clientId: optional(
      name({
        doc: 'Client registered at the provider. The gateway hands it to every client that registers; with `authorizationServers: front` the gateway is that client.',
      }),
    ),
    clientSecret: optional(
      secretSource({
        doc: 'Secret of that client, for token requests that the gateway makes (`authorizationServers: front`) or passes on (`entra`).',
        advanced: true,
      }),
    ),
    allowedRedirectUris: optional(
      list(name({ doc: 'An address; its port may be `*`, and `*` may stand at its end.' }), {
        doc: 'Redirect addresses that may be registered while `clientId` is set, and with `front` also used. Without it all may.',
        example: ['http://localhost:*/callback', 'https://chat.example.com/oauth/callback'],
      }),
    ),
    resourceMetadata: optional(resourceMetadata),
    jwks: optional(jwksSchema({ default: 'derived from issuer and provider' })),
    authorizationServers: optional(
      enumeration(['gateway', 'provider', 'front'], {
        doc: 'Where clients find the authorization server: `gateway` describes the provider under the address of the gateway, `provider` names the issuer itself, `front` makes the gateway an authorization server of its own that signs in at the provider.',
        default: 'gateway where provider is set, except keycloak; else provider',
      }),
    ),
    front: optional(authorizationServerSchema),
    authorizationLocation: optional(locationSchema),
    jwtValidationOptions: optional(validationOptionsSchema),
    trustForwardedHeaders: optional(
      boolean({
        doc: 'Whether `x-forwarded-proto` and `x-forwarded-host` tell the address clients use, where `resource` does not. Only behind a proxy that sets both.',
        default: false,
        advanced: true,
      }),
    ),
  },
  { doc: 'OAuth 2.1 access tokens of an identity provider, and what clients need to find it.' },
)

export type McpAuthenticationConfig = Infer<typeof mcpAuthenticationSchema>
export type ProviderConfig = NonNullable<McpAuthenticationConfig['provider']>
export type ResourceMetadataConfig = NonNullable<McpAuthenticationConfig['resourceMetadata']>
