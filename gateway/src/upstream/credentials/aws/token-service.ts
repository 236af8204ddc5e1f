import { compileConnection } from '../../connection.ts'
import { createTokenFetch, type TokenFetch, unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import { type IdentityOptions, type RequestKeys, timedKeys } from './keys.ts'
import type { RoleSession } from './session.ts'
import { type AwsCredentials, bodyHashOf, createSigner, signatureDate } from './sigv4.ts'

const timeoutMs = 10_000
const version = '2011-06-15'
const formType = 'application/x-www-form-urlencoded'

/** Requests keys of a role for a session, signed with the keys of the source. */
type RequestRole = (source: AwsCredentials, session: RoleSession) => Promise<TimedToken<AwsCredentials>>

/**
 * Compiles `AssumeRole` of the Security Token Service:
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
 */
export function compileRole(roleArn: string, options: IdentityOptions): RequestRole {
  const { clock } = options.context
  const { origin, region } = addressOf(options)
  const send = createPost(origin, options)
  const sign = createSigner({ region, service: 'sts' })
  const host = origin.replace(/^https?:\/\//, '')
  return async (source, { name, tags }) => {
    const form = new URLSearchParams({
      Action: 'AssumeRole',
      Version: version,
      RoleArn: roleArn,
      RoleSessionName: name,
    })
    for (const [index, [key, value]] of tags.entries()) {
      form.set(`Tags.member.${index + 1}.Key`, key)
      form.set(`Tags.member.${index + 1}.Value`, value)
    }
    const body = form.toString()
    const date = signatureDate(clock.now())
    const signed: [string, string][] = [
      ['content-type', formType],
      ['host', host],
      ['x-amz-date', date],
    ]
    if (source.sessionToken !== undefined) signed.push(['x-amz-security-token', source.sessionToken])
    const input = { method: 'POST', path: '/', query: '', headers: signed, bodyHash: bodyHashOf(body) }
    const authorization = sign(input, source, date)
    const { host: _, ...headers } = Object.fromEntries(signed)
    return keysIn(await send(body, { ...headers, authorization }), 'AssumeRole', () => clock.now())
  }
}

/** A role for the token of a service account. */
export type WebIdentity = { readonly file: string; readonly roleArn: string; readonly sessionName: string }

/**
 * Compiles `AssumeRoleWithWebIdentity`, used by service accounts of Kubernetes. The token is read for each
 * request, because Kubernetes replaces it.
 */
export function compileWebIdentity(
  { file, roleArn, sessionName }: WebIdentity,
  options: IdentityOptions,
): RequestKeys {
  const { readFileNow, clock } = options.context
  const { origin } = addressOf(options)
  const send = createPost(origin, options)
  const readToken = () => {
    try {
      return readFileNow(file).trim()
    } catch (cause) {
      throw unavailable('the web identity token file (AWS_WEB_IDENTITY_TOKEN_FILE) is not readable', cause)
    }
  }
  return async () => {
    const form = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: version,
      RoleArn: roleArn,
      RoleSessionName: sessionName,
      WebIdentityToken: readToken(),
    })
    const reply = await send(form.toString(), { 'content-type': formType })
    return keysIn(reply, 'AssumeRoleWithWebIdentity', () => clock.now())
  }
}

/** Endpoint of the region; the global one without a region. */
function addressOf({ context, region }: IdentityOptions): { origin: string; region: string } {
  const configured = context.environment['AWS_ENDPOINT_URL_STS']
  if (configured) {
    const address = URL.parse(configured)
    if (address === null) throw new Error('aws: AWS_ENDPOINT_URL_STS is not an address: use https://host')
    return { origin: address.origin, region: region ?? 'us-east-1' }
  }
  if (region === undefined) return { origin: 'https://sts.amazonaws.com', region: 'us-east-1' }
  const suffix = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return { origin: `https://sts.${region}.${suffix}`, region }
}

function createPost(origin: string, { node, context }: IdentityOptions) {
  const backendTLS = origin.startsWith('https:') ? {} : undefined
  const connection = compileConnection({ backendTLS }, context.egress.of(node), context)
  const fetchToken = createTokenFetch(context.send, timeoutMs)
  return (body: string, headers: Record<string, string>) =>
    fetchToken({ origin, path: '/', method: 'POST', headers, body: Buffer.from(body), connection })
}

/** The service answers in XML, whose elements with keys have no attributes. */
function keysIn({ status, text }: TokenFetch, action: string, now: () => number): TimedToken<AwsCredentials> {
  const element = (name: string) => unescaped(new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1])
  if (status !== 200) {
    const code = element('Code') ?? 'unknown error'
    const hint = hints[code] ?? 'check the role and its trust policy'
    // Other messages quote the request, with the session token or that of the service account.
    const message = code === 'AccessDenied' ? `: ${(element('Message') ?? '').slice(0, 500)}` : ''
    throw unavailable(`STS ${action}: status ${status}, ${nameForLog(code)}${message} (${hint})`)
  }
  const found = {
    id: element('AccessKeyId'),
    secret: element('SecretAccessKey'),
    sessionToken: element('SessionToken'),
    end: element('Expiration'),
  }
  return timedKeys(found, { service: `STS ${action}`, now })
}

const hints: Readonly<Record<string, string>> = {
  AccessDenied: "allow the identity in the role's trust policy, with sts:TagSession for tags",
  ExpiredToken: 'renew the keys or the token of the source',
  ExpiredTokenException: 'renew the token of the service account',
  InvalidClientTokenId: 'check the access key',
  SignatureDoesNotMatch: 'check the secret of the access key and the clock',
  InvalidIdentityToken: 'check the identity provider of the account and the audience of the token',
}

/** A code of the service, without other characters. */
function nameForLog(code: string): string {
  return /^[\w.]{1,80}$/.test(code) ? code : 'unknown error'
}

function unescaped(text: string | undefined): string | undefined {
  return text
    ?.replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')
}
