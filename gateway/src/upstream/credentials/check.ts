import { checkCel } from '../../cel/checked.ts'
import { parseDuration } from '../../lib/duration.ts'
import { isToken } from '../../lib/http-token.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkAwsAuth } from './aws/check.ts'
import { type BackendAuthConfig, keyOf, placeOf, placesOf } from './config.ts'
import { isCredential } from './credential.ts'
import { checkLocation, type LocationConfig, locationRoots } from './credential-location.ts'
import type {
  ClientAuthConfig,
  CrossAppAccessConfig,
  JwtSignConfig,
  TokenEndpointConfig,
  TokenExchangeConfig,
} from './oauth-config.ts'
import type { CredentialPlaceConfig } from './place-config.ts'
import { isRawToken } from './subject-token.ts'
import { originOf } from './token-endpoint.ts'

/** Checks `backendAuth` beyond its schema. */
export function checkBackendAuth(auth: BackendAuthConfig, report: ReportIssue): void {
  const { key: configured, jwtSign, oauthTokenExchange, crossAppAccess, aws, gcp } = auth
  const key = keyOf(auth)
  if (typeof key === 'string' && !isCredential(key)) {
    const path = typeof configured === 'string' ? ['key'] : ['key', 'value']
    report(path, 'not a credential: expected printable ASCII without spaces')
  }
  const places = placesOf(auth)
  for (const { place, path } of places) checkPlace(place, under(path, report))
  if (places.length > 1) report(['location'], `must be set once: ${places[0]?.path.join('.')} is set, too`)
  if (aws) {
    checkAwsAuth(aws, under(['aws'], report))
    if (auth.location) report(['location'], 'is not valid with aws: the signature has a fixed header')
  }
  checkCredentials(auth, report)
  if (jwtSign) checkJwtSign(jwtSign, under(['jwtSign'], report))
  if (oauthTokenExchange) checkTokenExchange(oauthTokenExchange, under(['oauthTokenExchange'], report))
  if (crossAppAccess) checkCrossAppAccess(crossAppAccess, under(['crossAppAccess'], report))
  if (gcp?.audience !== undefined && gcp.type !== 'idToken')
    report(['gcp', 'audience'], 'is only valid with type idToken')
}

/** Checks further credentials: their locations must differ from each other and from the first one. */
function checkCredentials(auth: BackendAuthConfig, report: ReportIssue): void {
  const { credentials = [], ...first } = auth
  const hasFirst = Object.values(first).some((value) => value !== undefined)
  const taken = new Set(hasFirst ? [placeName(placeOf(auth))] : [])
  for (const [index, { key, location }] of credentials.entries()) {
    const path = ['credentials', index]
    if (typeof key === 'string' && !isCredential(key))
      report([...path, 'key'], 'not a credential: expected printable ASCII without spaces')
    checkPlace(location, under([...path, 'location'], report))
    if (taken.has(placeName(location)))
      report([...path, 'location'], 'must differ from those of other credentials')
    taken.add(placeName(location))
  }
}

function placeName(place: CredentialPlaceConfig | undefined): string {
  const { header, queryParameter, cookie } = place ?? {}
  if (queryParameter !== undefined) return `query ${queryParameter.name}`
  return cookie === undefined
    ? `header ${(header?.name ?? 'authorization').toLowerCase()}`
    : `cookie ${cookie.name}`
}

function under(place: readonly (string | number)[], report: ReportIssue): ReportIssue {
  return (path, message) => report([...place, ...path], message)
}

function checkPlace({ header, cookie }: CredentialPlaceConfig, report: ReportIssue): void {
  if (cookie !== undefined && !isToken(cookie.name)) {
    report(['cookie', 'name'], `not a cookie name: "${cookie.name}"`)
  }
  if (header === undefined) return
  if (!isToken(header.name)) {
    report(['header', 'name'], `not a header name: "${header.name}"`)
  }
  if (header.prefix !== undefined && !/^[\x20-\x7e]*$/.test(header.prefix)) {
    report(['header', 'prefix'], 'expected printable ASCII')
  }
}

const signedClaims = ['iat', 'exp', 'nbf']

function checkJwtSign({ claims = {}, ttl }: JwtSignConfig, report: ReportIssue): void {
  for (const name of signedClaims) {
    if (Object.hasOwn(claims, name)) report(['claims', name], 'must not be set: the gateway sets it')
  }
  if (ttl !== undefined && (parseDuration(ttl) ?? 0) < 1_000) report(['ttl'], 'must be at least 1s')
}

const jwtTokenType = 'urn:ietf:params:oauth:token-type:jwt'

/** Parameters that other settings determine. */
const reservedParams: ReadonlySet<string> = new Set([
  ...['grant_type', 'subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'assertion'],
  ...['audience', 'resource', 'scope', 'requested_token_type', 'client_id', 'client_secret'],
  ...['client_assertion', 'client_assertion_type'],
])

function checkTokenExchange(config: TokenExchangeConfig, report: ReportIssue): void {
  const {
    grantType = 'tokenExchange',
    subjectToken,
    actorToken,
    requestedTokenType,
    additionalParams,
  } = config
  checkEndpoint(config, report)
  if (grantType !== 'tokenExchange') {
    const reason = 'is only valid with grantType tokenExchange'
    if (actorToken) report(['actorToken'], reason)
    if (requestedTokenType !== undefined) report(['requestedTokenType'], reason)
  }
  if (grantType === 'clientCredentials') {
    if (subjectToken) report(['subjectToken'], 'is not used by grantType clientCredentials')
    if (!config.clientAuth) report(['clientAuth'], 'must be set for grantType clientCredentials')
  }
  if (requestedTokenType?.endsWith(':id-jag'))
    report(['requestedTokenType'], 'must not be id-jag: use crossAppAccess')
  if (subjectToken?.source) checkSource(subjectToken.source, under(['subjectToken', 'source'], report))
  if (actorToken) checkSource(actorToken.source, under(['actorToken', 'source'], report))
  if (actorToken?.enforceMayAct === true && actorToken.tokenType !== jwtTokenType)
    report(['actorToken', 'enforceMayAct'], `must have actorToken.tokenType ${jwtTokenType}`)
  for (const [name, expression] of Object.entries(additionalParams ?? {})) {
    const path = ['additionalParams', name]
    if (reservedParams.has(name.toLowerCase())) report(path, 'must not be set here: it is set by another key')
    checkCel(expression, locationRoots, (message) => report(path, message))
  }
}

function checkCrossAppAccess(config: CrossAppAccessConfig, report: ReportIssue): void {
  const { subjectToken } = config
  for (const key of ['identityProvider', 'resourceAuthorizationServer'] as const) {
    checkEndpoint(config[key], under([key], report))
  }
  if (subjectToken?.source) checkSource(subjectToken.source, under(['subjectToken', 'source'], report))
}

function checkSource(source: LocationConfig, report: ReportIssue): void {
  if (source.expression === undefined || !isRawToken(source.expression)) checkLocation(source, report)
}

function checkEndpoint(config: TokenEndpointConfig, report: ReportIssue): void {
  try {
    const { origin } = originOf(config)
    const bare = config.host.replace(/^https?:\/\//, '').replace(/\/$/, '')
    if (/[/?#@\s]/.test(bare)) report(['host'], `must be host:port or an origin, such as ${origin}`)
  } catch {
    report(['host'], 'must be host:port or an origin, such as https://idp.example.com')
  }
  if (config.path?.startsWith('/') === false) report(['path'], 'must start with /')
  if (config.clientAuth) checkClientAuth(config.clientAuth, under(['clientAuth'], report))
}

function checkClientAuth(auth: ClientAuthConfig, report: ReportIssue): void {
  const { method = 'clientSecretBasic' } = auth
  const required = {
    clientSecretBasic: ['clientSecret'],
    clientSecretPost: [],
    privateKeyJwt: ['signingKey', 'assertionAudience'],
  }
  for (const key of required[method]) {
    if (!presentIn(auth, key)) report([key], `must be set for ${method}`)
  }
  const others =
    method === 'privateKeyJwt'
      ? ['clientSecret']
      : ['signingKey', 'alg', 'kid', 'certificate', 'certificateHeader', 'assertionAudience']
  if (auth.certificate !== undefined && auth.certificateHeader === undefined)
    report(['certificateHeader'], 'must be set with certificate: x5c or x5t#S256')
  if (auth.certificateHeader !== undefined && auth.certificate === undefined)
    report(['certificate'], 'must be set with certificateHeader')
  for (const key of others) if (presentIn(auth, key)) report([key], `is not used by ${method}`)
}

function presentIn(auth: ClientAuthConfig, key: string): boolean {
  return Object.entries(auth).some(([name, value]) => name === key && value !== undefined)
}
