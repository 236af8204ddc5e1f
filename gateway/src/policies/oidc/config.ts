import { checkJwks, jwksSchema } from '../../identity/jwt/verifier-config.ts'
import { parseJsonObject } from '../../lib/json/json.ts'
import {
  anyOfShapes,
  boolean,
  duration,
  enumeration,
  exactlyOne,
  filePath,
  type Infer,
  isHttpUrl,
  list,
  name,
  object,
  optional,
  secretSource,
  string,
  url,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkCallbackPath, isPath } from './paths.ts'

const discoverySchema = anyOfShapes(
  [
    string({ doc: 'Address of the document, or the document as JSON.' }),
    exactlyOne(
      {
        url: url({ doc: 'Address of the document.' }),
        file: filePath({ doc: 'Path of a file that contains the document.' }),
        inline: string({ doc: 'The document as JSON.' }),
      },
      {},
      { doc: 'Source of the document.' },
    ),
  ],
  {
    doc: 'Metadata of the provider (OpenID Connect Discovery).',
    default: '`{issuer}/.well-known/openid-configuration`',
    advanced: true,
  },
)

const sessionSchema = object(
  {
    idleTimeout: optional(
      duration({ doc: 'A session ends after this time without a request.', default: '1h' }),
    ),
    maxAge: optional(
      duration({ doc: 'A session ends at the latest this time after its login.', default: '12h' }),
    ),
    secrets: optional(
      list(
        secretSource({ doc: 'Text of at least 32 characters, for example 64 random hexadecimal digits.' }),
        {
          doc: 'Secrets that encrypt the session cookies. The first one encrypts, the others remain valid until they are removed. Default: `OIDC_COOKIE_SECRET` of the environment (several separated by commas), else the session key of the process.',
        },
        { min: 1, max: 8 },
      ),
    ),
  },
  { doc: 'Lifetime and encryption of sessions.' },
)

/** Fields of `oidc` without secrets. */
const oidcFields = {
  issuer: url({
    doc: 'Issuer of the ID tokens; must be identical to their `iss`.',
    example: 'https://id.example.com/realms/main',
  }),
  clientId: name({ doc: 'Client id of the gateway at the provider.', example: 'tollgate' }),
  redirectURI: optional(
    name({
      doc: 'Redirect URI that is registered at the provider, handled by the gateway. A path is completed with scheme and host of each request.',
      default: '/oauth/callback',
      example: 'https://gateway.example.com/oauth/callback',
    }),
  ),
  scopes: optional(
    list(name({ doc: 'A scope.' }), {
      doc: 'Scopes in addition to `openid`. With `offline_access`, many providers issue refresh tokens, which renew the claims during a session.',
      example: ['profile', 'email', 'offline_access'],
    }),
  ),
}

/** `oidc`: login with a browser. */
export const oidcSchema = object(
  {
    issuer: oidcFields.issuer,
    clientId: oidcFields.clientId,
    clientSecret: optional(secretSource({ doc: 'Secret of the client. Without one, the client is public.' })),
    redirectURI: oidcFields.redirectURI,
    scopes: oidcFields.scopes,
    discovery: optional(discoverySchema),
    authorizationEndpoint: optional(
      url({
        doc: 'Authorization endpoint. Replaces discovery, together with `tokenEndpoint` and `jwks`.',
        advanced: true,
      }),
    ),
    tokenEndpoint: optional(url({ doc: 'Token endpoint, without discovery.', advanced: true })),
    tokenEndpointAuth: optional(
      enumeration(['clientSecretBasic', 'clientSecretPost'], {
        doc: 'Client authentication at the token endpoint, without discovery.',
        default: 'clientSecretBasic',
        advanced: true,
      }),
    ),
    jwks: optional(jwksSchema({ default: '`jwks_uri` of the metadata' })),
    userinfoEndpoint: optional(url({ doc: 'UserInfo endpoint, without discovery.', advanced: true })),
    endSessionEndpoint: optional(
      url({ doc: 'Logout endpoint of the provider, without discovery.', advanced: true }),
    ),
    userinfo: optional(
      boolean({
        doc: 'Whether the claims of the UserInfo endpoint, if the provider has one, complete those of the ID token.',
        default: true,
        advanced: true,
      }),
    ),
    claims: optional(
      list(name({ doc: 'Name of a claim.' }), {
        doc: 'Claims in the session, besides `iss`, `sub` and `aud`. Restrict them if the session is too large for cookies.',
        default: 'all',
        example: ['email', 'name', 'groups'],
        advanced: true,
      }),
    ),
    logoutPath: optional(
      string({ doc: 'Path that ends the session.', default: 'path of `redirectURI` with `/logout`' }),
    ),
    postLogoutRedirectURI: optional(
      name({
        doc: 'Address after a logout, which must be registered at the provider. A path is completed with scheme and host of the request. Default: a page of the provider or of the gateway.',
        advanced: true,
      }),
    ),
    session: optional(sessionSchema),
  },
  {
    doc: 'Login with a browser at an OpenID provider. The claims of the user are `jwt.*` in expressions. Requests of scripts without a session receive 401.',
  },
)

export type OidcConfig = Infer<typeof oidcSchema>

const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const minSecretLength = 32

/** Reports contradictory endpoints and invalid paths, scopes and secrets. */
export function checkOidc(config: OidcConfig, report: ReportIssue): void {
  checkProvider(config, report)
  checkRedirects(config, report)
  config.scopes?.forEach((scope, index) => {
    if (!scopeForm.test(scope)) report(['scopes', index], `must be a scope, got "${scope}"`)
  })
  config.session?.secrets?.forEach((secret, index) => {
    if (typeof secret === 'string' && secret.length < minSecretLength)
      report(['session', 'secrets', index], `must have at least ${minSecretLength} characters`)
  })
}

const explicitFields = ['authorizationEndpoint', 'tokenEndpoint'] as const
const dependentFields = ['tokenEndpointAuth', 'userinfoEndpoint', 'endSessionEndpoint'] as const

function checkProvider(config: OidcConfig, report: ReportIssue): void {
  const { discovery, jwks } = config
  const isExplicit = explicitFields.some((field) => config[field] !== undefined)
  if (jwks !== undefined) checkJwks(jwks, (path, message) => report(['jwks', ...path], message))
  if (isExplicit) {
    for (const field of [...explicitFields, 'jwks'] as const)
      if (config[field] === undefined)
        report(
          [field],
          'is required: authorizationEndpoint, tokenEndpoint and jwks replace discovery together',
        )
    if (discovery !== undefined)
      report(['discovery'], 'must be absent if authorizationEndpoint, tokenEndpoint and jwks are set')
    return
  }
  for (const field of dependentFields)
    if (config[field] !== undefined)
      report(
        [field],
        'requires authorizationEndpoint, tokenEndpoint and jwks: discovery provides it otherwise',
      )
  const text = typeof discovery === 'string' ? discovery : discovery?.inline
  if (text === undefined || (typeof discovery === 'string' && isHttpUrl(text))) return
  if (parseJsonObject(text) === undefined)
    report(['discovery'], 'must be an address (https://...) or a document as JSON ({...})')
}

function checkRedirects(
  { redirectURI, logoutPath, postLogoutRedirectURI }: OidcConfig,
  report: ReportIssue,
): void {
  if (redirectURI !== undefined) {
    const mistake = checkCallbackPath(redirectURI)
    if (mistake !== undefined) report(['redirectURI'], mistake)
  }
  if (logoutPath !== undefined) {
    const mistake = logoutPath.startsWith('/') ? checkCallbackPath(logoutPath) : 'must be a path: /logout'
    if (mistake !== undefined) report(['logoutPath'], mistake)
  }
  if (
    postLogoutRedirectURI !== undefined &&
    !isHttpUrl(postLogoutRedirectURI) &&
    !isPath(postLogoutRedirectURI)
  )
    report(['postLogoutRedirectURI'], 'must be an address (https://...) or a path (/...)')
}
