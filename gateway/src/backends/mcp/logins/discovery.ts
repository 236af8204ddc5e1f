import { type FetchedDocument, fetchDocument } from '../../../identity/jwt/fetch-document.ts'
import { isSecureUrl } from '../../../identity/provider/discovered-jwks-uri.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Send } from '../../../net/http-client/send.ts'

/** The authorization server of a target. */
export type FoundServer = {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly registrationEndpoint: string | undefined
  /** Whether the URL of a document may be the id of a client (`client_id_metadata_document_supported`). */
  readonly readsDocuments: boolean
  /** `token_endpoint_auth_methods_supported`. */
  readonly authMethods: readonly string[] | undefined
  /** Whether authorization responses have `iss` (RFC 9207). */
  readonly sendsIssuer: boolean
  /** Canonical URI of the target, `resource` of RFC 8707. */
  readonly resource: string
  /** Scopes that the target names. */
  readonly scopes: readonly string[]
}

export type DiscoveryOptions = {
  /** URL of the target. */
  readonly target: string
  /** Configured authorization server. */
  readonly issuer: string | undefined
  readonly send: Send
}

/** Failure of the discovery. The message is for logs and pages; it is short, because it quotes the target. */
export class DiscoveryError extends Error {
  constructor(message: string) {
    super(message.length > maxErrorChars ? `${message.slice(0, maxErrorChars)}...` : message)
  }
}

const maxErrorChars = 200
/** The issuer is part of the state of a login. */
const maxIssuerChars = 1_000

const maxBytes = 256 * 1024
const timeoutMs = 10_000

/**
 * Finds the authorization server of a target: the challenge of the target or its well-known metadata (RFC
 * 9728), then the metadata of the server (RFC 8414, OpenID Connect Discovery). Throws `DiscoveryError`.
 */
export async function discoverServer(options: DiscoveryOptions): Promise<FoundServer> {
  const { target, send } = options
  const challenge = await readChallenge(target, send)
  const resource = await findResource(challenge.metadataUrl, target, send)
  const issuer = options.issuer ?? issuerOf(resource) ?? new URL(target).origin
  const metadata = await findMetadata(issuer, send)
  const endpoint = (name: string) => {
    const value = metadata[name]
    return typeof value === 'string' && isSecureUrl(value, issuer) ? value : undefined
  }
  const authorizationEndpoint = endpoint('authorization_endpoint')
  const tokenEndpoint = endpoint('token_endpoint')
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined)
    throw new DiscoveryError(`the metadata of ${issuer} has no usable endpoints`)
  // Without the announcement a server may ignore the challenge (MCP 2025-11-25, Authorization).
  if (!textsOf(metadata['code_challenge_methods_supported'])?.includes('S256'))
    throw new DiscoveryError(`the authorization server ${issuer} does not support PKCE with S256`)
  return {
    // The exact text: servers compare it with and without a slash at the end.
    issuer: String(metadata['issuer']),
    authorizationEndpoint,
    tokenEndpoint,
    registrationEndpoint: endpoint('registration_endpoint'),
    readsDocuments: metadata['client_id_metadata_document_supported'] === true,
    authMethods: textsOf(metadata['token_endpoint_auth_methods_supported']),
    sendsIssuer: metadata['authorization_response_iss_parameter_supported'] === true,
    resource: typeof resource?.['resource'] === 'string' ? resource['resource'] : target,
    scopes: challenge.scopes ?? textsOf(resource?.['scopes_supported']) ?? [],
  }
}

type Challenge = { metadataUrl: string | undefined; scopes: readonly string[] | undefined }

const noChallenge: Challenge = { metadataUrl: undefined, scopes: undefined }

/** Reads the challenge of a request without a token. */
async function readChallenge(target: string, send: Send): Promise<Challenge> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = '{"jsonrpc":"2.0","id":0,"method":"ping"}'
  let reply: FetchedDocument
  try {
    reply = await fetchDocument(send, { url: target, method: 'POST', headers, body, maxBytes, timeoutMs })
  } catch {
    return noChallenge
  }
  return reply.status === 401
    ? parseChallenge(firstHeader(reply.headers, 'www-authenticate') ?? '')
    : noChallenge
}

/** Parses the parameters of a `Bearer` challenge that concern the authorization server. */
export function parseChallenge(text: string): Challenge {
  const scope = parameterOf(text, 'scope')
  return {
    metadataUrl: parameterOf(text, 'resource_metadata'),
    scopes: scope?.split(' ').filter((name) => name !== ''),
  }
}

function parameterOf(text: string, name: string): string | undefined {
  if (text.length > 8_192) return undefined
  const match = new RegExp(`(?:^|[\\s,])${name}=(?:"([^"\\\\]*)"|([^\\s,"]+))`, 'i').exec(text)
  return match?.[1] ?? match?.[2]
}

async function findResource(
  challenged: string | undefined,
  target: string,
  send: Send,
): Promise<JsonObject | undefined> {
  const { origin, pathname } = new URL(target)
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`
  const path = pathname === '/' ? '' : pathname
  const urls = challenged === undefined ? [`${wellKnown}${path}`, wellKnown] : [challenged]
  for (const url of new Set(urls)) {
    if (!isSecureUrl(url, origin)) throw new DiscoveryError('the challenge of the target has an invalid URL')
    const found = await fetchObject(url, send)
    if (found === undefined) continue
    if (!isResourceOf(found['resource'], target))
      throw new DiscoveryError(`the metadata ${url} is of another resource`)
    return found
  }
  return undefined
}

/** Whether a resource identifier covers the target: the same origin, and its path or one above. */
export function isResourceOf(resource: unknown, target: string): boolean {
  const identifier = typeof resource === 'string' ? URL.parse(resource) : null
  const { origin, pathname } = new URL(target)
  if (identifier === null || identifier.origin !== origin || identifier.search !== '') return false
  const prefix = identifier.pathname.replace(/\/$/, '')
  return pathname === prefix || pathname.startsWith(`${prefix}/`)
}

function issuerOf(resource: JsonObject | undefined): string | undefined {
  return textsOf(resource?.['authorization_servers'])?.[0]
}

async function findMetadata(issuer: string, send: Send): Promise<JsonObject> {
  const parsed = URL.parse(issuer)
  if (parsed === null || issuer.length > maxIssuerChars || !/^https?:$/.test(parsed.protocol))
    throw new DiscoveryError('the metadata of the target has an invalid authorization server')
  const { origin, pathname } = parsed
  const path = pathname.replace(/\/$/, '')
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  for (const url of new Set(urls)) {
    const found = await fetchObject(url, send)
    // RFC 8414 section 3.3: metadata of another issuer must not be used.
    if (found !== undefined && sameIssuer(found['issuer'], issuer)) return found
  }
  throw new DiscoveryError(`the authorization server ${issuer} has no metadata`)
}

function sameIssuer(found: unknown, issuer: string): boolean {
  return typeof found === 'string' && found.replace(/\/$/, '') === issuer.replace(/\/$/, '')
}

async function fetchObject(url: string, send: Send): Promise<JsonObject | undefined> {
  try {
    const { status, text } = await fetchDocument(send, { url, maxBytes, timeoutMs })
    return status === 200 ? parseJsonObject(text) : undefined
  } catch {
    return undefined
  }
}

function textsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  return value.filter((item): item is string => typeof item === 'string').slice(0, 100)
}
