import { hash } from 'node:crypto'
import { compileVerifier } from '../../identity/jwt/verifier-config.ts'
import { createReplayCache } from '../../identity/tokens/replay.ts'
import { createRotationResults } from '../../identity/tokens/rotation-results.ts'
import { createTokenFamilies, type TokenFamilies } from '../../identity/tokens/token-families.ts'
import { milliseconds } from '../../lib/duration.ts'
import { createGauge } from '../../lib/planes/gauge.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { sendUnder } from '../../upstream/egress.ts'
import { compileUserClaims } from './claims.ts'
import type { OidcConfig } from './config.ts'
import { compileCallback, compileLoginStart, type LoginOptions } from './login.ts'
import { compileLogout } from './logout.ts'
import { createPublicUrls, loginPaths } from './paths.ts'
import { createLoginProvider, type LoginProvider } from './provider.ts'
import { compileMetadata, type LoginMetadata } from './provider-metadata.ts'
import { compileRefresh, isRefreshResult, type RefreshResult } from './refresh.ts'
import { createLoginCookies, removeLoginCookies } from './session/cookies.ts'
import { createSealing } from './session/sealing.ts'
import { compileSecrets } from './session/secrets.ts'
import { createSessions } from './session/sessions.ts'
import { compileSessionCheck } from './session-check.ts'

const defaultIdleMs = 3_600_000
const defaultMaxAgeMs = 12 * 3_600_000
const maxLogins = 10_000
const maxSessions = 10_000
/** Browsers repeat requests with a cookie whose replacement was lost with a cancelled reply. */
const repeatMs = 60_000

/**
 * Compiles `oidc`. Sessions are sealed into cookies: any data plane or replica with the secret continues
 * them. Equal settings share a session. `scope` is the name of the policy scope.
 */
export function compileOidc(config: OidcConfig, context: CompileContext, scope: string): Policy {
  const { clientId, session = {} } = config
  const now = () => context.clock.now()
  const policy = identityOf(config)
  const name = `oidc: ${policy}`
  const secrets = compileSecrets(session.secrets, context)
  const idleMs = milliseconds(session.idleTimeout) ?? defaultIdleMs
  const maxAgeMs = milliseconds(session.maxAge) ?? defaultMaxAgeMs
  const metadata = compileMetadata(config, context)
  const provider = compileProvider(config, metadata, context)
  const families = sharedFamilies(name, context)
  const sessions = createSessions(createSealing(secrets, 'session', policy), idleMs, now)
  const { jwks, issuer } = config
  const verifier = compileVerifier(
    { issuer, audiences: [clientId], jwks, jwtValidationOptions: undefined, node: config },
    context,
    metadata.jwksUri,
  )
  const readClaims = compileUserClaims({
    ...{ verifier, provider, names: config.claims },
    userinfo: config.userinfo !== false,
  })
  const login: LoginOptions = {
    paths: loginPaths(config),
    urls: createPublicUrls(config),
    cookies: createLoginCookies(policy.slice(0, 12)),
    sealing: createSealing(secrets, 'login', policy),
    ...{ sessions, provider, readClaims, maxAgeMs, now },
    home: scope === 'ui' ? '/ui/' : '/',
    completed: context.retained(`${name}/logins`, () =>
      createReplayCache(context.memory, { name: `${name}/logins`, capacity: maxLogins }, context.clock),
    ),
  }
  return compileSessionCheck({
    ...login,
    idleMs,
    isEnded: families.isRevoked,
    refresh: compileRefresh({ families, sessions, provider, readClaims, now }),
    start: compileLoginStart(login),
    callback: compileCallback(login),
    logout: compileLogout({
      ...login,
      clientId,
      redirectUri: config.postLogoutRedirectURI,
      end: families.revoke,
    }),
  })
}

/** Removes login cookies from the forwarded request, after the checks of all scopes. */
export const withoutLoginCookies: Policy = {
  name: 'oidc cookies',
  onRequest({ facts }) {
    removeLoginCookies(facts.request.headers)
    return undefined
  },
}

/** Digest of the settings that determine the claims of a session. */
function identityOf({ issuer, clientId, scopes = [], claims, userinfo }: OidcConfig): string {
  return hash('sha256', JSON.stringify([issuer, clientId, scopes, claims, userinfo !== false]), 'hex').slice(
    0,
    32,
  )
}

function compileProvider(
  config: OidcConfig,
  metadata: LoginMetadata,
  context: CompileContext,
): LoginProvider {
  const { issuer, clientId, clientSecret, scopes = [], tokenEndpointAuth } = config
  const { log, memory, retained, readFile, send } = context
  const name = `oidc requests: ${issuer}`
  const secret = typeof clientSecret === 'object' ? readFile(clientSecret.file).trim() : clientSecret
  return createLoginProvider({
    ...{ issuer, client: { id: clientId, secret }, log },
    scopes: [...new Set(['openid', ...scopes])],
    serverMetadata: metadata.serverMetadata,
    authentication: tokenEndpointAuth,
    send: sendUnder(metadata.egress, send),
    active: retained(name, () => createGauge(memory, name)),
  })
}

function sharedFamilies(name: string, context: CompileContext): TokenFamilies<RefreshResult> {
  const { memory, peers, clock, retained } = context
  const results = retained('oidc: refresh results', () => createRotationResults(peers, 'oidc refreshes'))
  const options = {
    ...{ name: `${name}/sessions`, capacity: maxSessions, results, repeatMs },
    isResult: isRefreshResult,
  }
  return retained(`${name}/sessions`, () => createTokenFamilies<RefreshResult>(options, memory, clock))
}
