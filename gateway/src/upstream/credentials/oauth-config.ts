import {
  anyOfShapes,
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  filePath,
  type Infer,
  integer,
  jsonObject,
  list,
  map,
  name,
  object,
  optional,
  secret,
  secretSource,
  string,
} from '../../schema/dsl.ts'
import { backendTlsSchema, httpSchema, tcpSchema } from '../connection-config.ts'
import { locationRoots, partLocations } from './credential-location.ts'
import { credentialPlace } from './place-config.ts'

/** PEM text of a private key, inline or in a file. */
const signingKey = anyOfShapes(
  [
    secret({ doc: 'PEM text.', holds: 'privateKey', example: '$SIGNING_KEY' }),
    object(
      { file: filePath({ doc: 'Path of a file with the key, PEM.', holds: 'privateKey' }) },
      { doc: 'Key in a file.' },
    ),
  ],
  { doc: 'Private key, PEM: RSA, or EC of the curve of `alg`.' },
)

/** PEM text of certificates, inline or in a file. */
const certificate = anyOfShapes(
  [
    string({ doc: 'PEM text.', holds: 'certificates' }),
    object(
      { file: filePath({ doc: 'Path of a file with the certificates, PEM.', holds: 'certificates' }) },
      { doc: 'Certificates in a file.' },
    ),
  ],
  { doc: 'Certificate of `signingKey` with its chain, PEM, that of the key first.' },
)

const alg = enumeration(['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384'], {
  doc: 'Signature algorithm.',
  default: 'RS256',
})

const kid = name({ doc: 'Identifier of the key, in the header of the token.', example: 'key-1' })

/** `backendAuth.jwtSign`. */
export const jwtSignSchema = object(
  {
    signingKey,
    alg: optional(alg),
    kid: optional(kid),
    claims: optional(
      jsonObject({
        doc: 'Claims of the token. `iat`, `exp` and `nbf` must not be set.',
        example: { iss: 'gateway', aud: 'https://api.example.com' },
      }),
    ),
    ttl: optional(duration({ doc: 'Lifetime of the token, at least `1s`.', default: '300s' })),
    location: optional(credentialPlace),
  },
  { doc: 'Signs short-lived tokens (JWT) with a private key.' },
)

/** `clientAuth` of a token endpoint. */
const clientAuthSchema = object(
  {
    clientId: name({ doc: 'Client of the gateway at the authorization server.', example: 'gateway' }),
    method: optional(
      enumeration(['clientSecretBasic', 'clientSecretPost', 'privateKeyJwt'], {
        doc: 'Authentication method of the client.',
        default: 'clientSecretBasic',
      }),
    ),
    clientSecret: optional(
      secretSource({
        doc: 'Secret of the client; optional for `clientSecretPost`.',
        example: '$CLIENT_SECRET',
      }),
    ),
    signingKey: optional(signingKey),
    alg: optional(alg),
    kid: optional(kid),
    certificate: optional(certificate),
    certificateHeader: optional(
      enumeration(['x5c', 'x5t#S256'], {
        doc: 'Header of the assertion with `certificate`: `x5c`, the chain, or `x5t#S256`, the thumbprint of the certificate, as Microsoft Entra requires.',
      }),
    ),
    assertionAudience: optional(
      name({
        doc: 'Audience of the signed assertion of `privateKeyJwt`.',
        example: 'https://idp.example.com/token',
      }),
    ),
  },
  { doc: 'How the gateway authenticates to the token endpoint.' },
)

const endpointFields = {
  host: name({
    doc: 'Token endpoint: `host:port`, or an origin with its scheme. TLS is used for `https:`, at port 443 and with `policies.backendTLS`.',
    example: 'https://idp.example.com',
  }),
  path: optional(name({ doc: 'Path of the token endpoint.', default: '/', example: '/oauth2/token' })),
  policies: optional(
    object(
      { backendTLS: optional(backendTlsSchema), http: optional(httpSchema), tcp: optional(tcpSchema) },
      { doc: 'Policies of requests to the token endpoint. The default of `requestTimeout` is `10s`.' },
    ),
  ),
}

const scopes = list(name({ doc: 'A scope.' }), { doc: 'Requested scopes.' }, { max: 64 })
const resources = list(
  name({ doc: 'A URI.' }),
  { doc: 'Target resources (RFC 8707).', example: ['https://api.example.com'] },
  { max: 64 },
)

const cache = object(
  {
    maxEntries: optional(
      integer(
        { doc: 'Maximum number of tokens. 0 disables the cache.', default: 8192 },
        { min: 0, max: 1_000_000 },
      ),
    ),
    defaultTtl: optional(
      duration({ doc: 'Lifetime of tokens whose response has no `expires_in`.', default: '300s' }),
    ),
  },
  { doc: 'Cache of tokens, in memory. Tokens expire at the latest with the token of the client.' },
)

const tokenType = string({
  doc: 'Token type (RFC 8693 section 3).',
  default: 'urn:ietf:params:oauth:token-type:access_token',
})

/** Location of a token to exchange. */
const tokenSource = exactlyOne(
  {
    ...partLocations,
    expression: string({
      doc: 'Expression (CEL) of the token, or `jwt.rawToken`: the token that authentication accepted.',
      example: 'jwt.rawToken',
    }),
  },
  {},
  { doc: 'Location of the token in the request.' },
)

const subjectToken = object(
  {
    source: optional(tokenSource),
    tokenType: optional(tokenType),
  },
  {
    doc: 'Token of the client. Default: the token that authentication accepted, else the bearer token of the request.',
  },
)

/** `backendAuth.oauthTokenExchange`. */
export const tokenExchangeSchema = object(
  {
    ...endpointFields,
    grantType: optional(
      enumeration(['tokenExchange', 'jwtBearer', 'clientCredentials'], {
        doc: '`tokenExchange` (RFC 8693) and `jwtBearer` (RFC 7523) exchange the token of the client. `clientCredentials` (RFC 6749 section 4.4) requests a token of the gateway.',
        default: 'tokenExchange',
      }),
    ),
    subjectToken: optional(subjectToken),
    actorToken: optional(
      object(
        {
          source: tokenSource,
          tokenType: optional(tokenType),
          enforceMayAct: optional(
            boolean({
              doc: 'Requires that the claim `may_act` of the token of the client permits the actor (RFC 8693 section 4.4); other requests are 403. Needs the `tokenType` `urn:ietf:params:oauth:token-type:jwt`.',
              default: false,
            }),
          ),
        },
        { doc: 'Token of the acting party (RFC 8693), only for `tokenExchange`.' },
      ),
    ),
    audiences: optional(list(name({ doc: 'A name.' }), { doc: 'Target services.' }, { max: 64 })),
    scopes: optional(scopes),
    resources: optional(resources),
    requestedTokenType: optional(
      string({
        doc: 'Type of the requested token. Tokens of another type are refused.',
        default: 'not sent',
      }),
    ),
    clientAuth: optional(clientAuthSchema),
    additionalParams: optional(
      map(cel({ doc: 'Expression of the value, a text.', reveals: true }, [...locationRoots]), {
        doc: 'Further parameters of the token request.',
        example: { requested_token_use: '"on_behalf_of"' },
      }),
    ),
    authorizationLocation: optional(credentialPlace),
    cache: optional(cache),
  },
  { doc: 'Requests a token for the backend from the token endpoint of an authorization server.' },
)

const crossAppEndpoint = object(
  { ...endpointFields, clientAuth: clientAuthSchema },
  { doc: 'A token endpoint, with the client of the gateway there.' },
)

/** `backendAuth.crossAppAccess`. */
export const crossAppAccessSchema = object(
  {
    identityProvider: crossAppEndpoint,
    resourceAuthorizationServer: crossAppEndpoint,
    audience: name({
      doc: 'Identifier of the authorization server of the resource, the audience of the ID-JAG.',
      example: 'https://auth.example.com/',
    }),
    resources: optional(resources),
    scopes: optional(scopes),
    accessTokenScopes: optional(
      list(
        name({ doc: 'A scope.' }),
        { doc: 'Scopes of the second request.', default: '`scopes`' },
        { max: 64 },
      ),
    ),
    subjectToken: optional(subjectToken),
    cache: optional(cache),
  },
  {
    doc: 'Cross App Access: exchanges the ID token of the client for an assertion (ID-JAG) at the identity provider, and that for an access token at the authorization server of the resource.',
  },
)

export type JwtSignConfig = Infer<typeof jwtSignSchema>
export type ClientAuthConfig = Infer<typeof clientAuthSchema>
export type TokenExchangeConfig = Infer<typeof tokenExchangeSchema>
export type CrossAppAccessConfig = Infer<typeof crossAppAccessSchema>
export type TokenEndpointConfig = Pick<TokenExchangeConfig, 'host' | 'path' | 'policies' | 'clientAuth'>
export type TokenCacheConfig = Infer<typeof cache>
export type SigningKeyConfig = JwtSignConfig['signingKey']
