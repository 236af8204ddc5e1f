import { createHash } from 'node:crypto'
import { compileConnection } from '../../connection.ts'
import { createTokenFetch, parseObject, type TokenFetch, unavailable } from '../cloud/fetch-token.ts'
import { type IdentityOptions, type RequestKeys, timedKeys } from './keys.ts'
import { homeFolder, type Profile, ssoSessionIn } from './profile.ts'

const timeoutMs = 10_000

/** Settings of a profile with a login to IAM Identity Center. */
type SsoSettings = {
  readonly region: string
  readonly accountId: string
  readonly roleName: string
  /** Name of the session, or the start URL of a profile without one: the key of the token's file. */
  readonly tokenKey: string
}

/** Whether a profile has the keys of a role of IAM Identity Center. */
export function isSsoProfile({ settings }: Profile): boolean {
  return settings.has('sso_session') || settings.has('sso_start_url')
}

/**
 * Compiles `GetRoleCredentials` of a profile:
 * https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/API_GetRoleCredentials.html. The token is
 * that of `aws sso login`, read for each request, because the AWS CLI replaces it. Throws for an incomplete
 * profile.
 */
export function compileSso(profile: Profile, options: IdentityOptions): RequestKeys {
  const { context, node } = options
  const at = `aws: profile "${profile.name}"`
  const login = `run: aws sso login --profile ${profile.name}`
  const { region, accountId, roleName, tokenKey } = settingsOf(profile, at)
  const folder = homeFolder(context.environment)
  if (folder === undefined) throw new Error(`${at}: the token of SSO requires HOME in the environment`)
  const file = `${folder}/sso/cache/${createHash('sha1').update(tokenKey).digest('hex')}.json`
  const origin = originOf(region, context.environment)
  const backendTLS = origin.startsWith('https:') ? {} : undefined
  const connection = compileConnection({ backendTLS }, context.egress.of(node), context)
  const fetchKeys = createTokenFetch(context.send, timeoutMs)
  const query = new URLSearchParams({ role_name: roleName, account_id: accountId })
  const now = () => context.clock.now()
  return async () => {
    const token = tokenIn(
      textOf(() => context.readFileNow(file)),
      now(),
    )
    if (token === undefined) throw unavailable(`${at}: no valid token of SSO: ${login}`)
    const headers = { 'x-amz-sso_bearer_token': token }
    const path = `/federation/credentials?${query}`
    const reply = await fetchKeys({ origin, path, method: 'GET', headers, body: undefined, connection })
    if (reply.status === 401) throw unavailable(`${at}: the token of SSO is refused: ${login}`)
    if (reply.status !== 200)
      throw unavailable(
        `${at}: SSO GetRoleCredentials: status ${reply.status} (check sso_account_id, sso_role_name and the assignment of the role)`,
      )
    return keysIn(reply, `${at}: SSO GetRoleCredentials`, now)
  }
}

function settingsOf(profile: Profile, at: string): SsoSettings {
  const { settings } = profile
  const sessionName = settings.get('sso_session')
  const session = sessionName === undefined ? undefined : ssoSessionIn(profile, sessionName)
  const required = (name: string, from = settings) => {
    const value = from.get(name)
    if (value === undefined) throw new Error(`${at}: ${name} is not set`)
    return value
  }
  for (const name of ['sso_region', 'sso_start_url'])
    if (session !== undefined && settings.has(name) && settings.get(name) !== session.get(name))
      throw new Error(`${at}: ${name} must be absent or equal to that of its sso_session`)
  const region = required('sso_region', session)
  if (!/^[a-z0-9-]{1,63}$/.test(region)) throw new Error(`${at}: sso_region must be a region`)
  const startUrl = required('sso_start_url', session)
  const accountId = required('sso_account_id')
  return { region, accountId, roleName: required('sso_role_name'), tokenKey: sessionName ?? startUrl }
}

function originOf(region: string, environment: IdentityOptions['context']['environment']): string {
  const configured = environment['AWS_ENDPOINT_URL_SSO']
  if (!configured) {
    const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
    return `https://portal.sso.${region}.${suffix}`
  }
  const address = URL.parse(configured)
  if (address === null) throw new Error('aws: AWS_ENDPOINT_URL_SSO is not an address: use https://host')
  return address.origin
}

/** Without a login, there is no file. */
function textOf(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

/** The token in a file of the AWS CLI; undefined if it has ended. */
function tokenIn(text: string, nowMs: number): string | undefined {
  const { accessToken: token, expiresAt: end } = parseObject(text)
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token) || typeof end !== 'string') return undefined
  // Older versions of the AWS CLI write the zone as text.
  return Date.parse(end.replace(/UTC$/, 'Z')) > nowMs ? token : undefined
}

function keysIn({ body }: TokenFetch, service: string, now: () => number) {
  const { roleCredentials: found } = body
  const keys: Readonly<Record<string, unknown>> =
    typeof found === 'object' && found !== null ? { ...found } : {}
  const { accessKeyId: id, secretAccessKey: secret, sessionToken, expiration: endMs } = keys
  const end = typeof endMs === 'number' && endMs < maxDateMs ? new Date(endMs).toISOString() : undefined
  return timedKeys({ id, secret, sessionToken, end }, { service, now })
}

/** Year 9999. */
const maxDateMs = 253_402_300_799_999
