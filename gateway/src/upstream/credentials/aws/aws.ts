import { isSource, readAll } from '../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Caller } from '../caller.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import type { AuthorizedRequest } from '../placement.ts'
import type { AwsAuthConfig } from './config.ts'
import { compileIdentity } from './identity.ts'
import { type AwsCredentials, bodyHashOf, createSigner, type Sign, signatureDate } from './sigv4.ts'

const defaultService = 'bedrock'

/** Limit of streamed bodies, which are read completely for their hash. */
const maxSignedBytes = 10 * 1024 * 1024

/** Signs requests; a promise resolves before the request may be sent. */
export type AwsAuth = {
  readonly source: 'gateway'
  apply(request: AuthorizedRequest, caller: Caller): Promise<void> | undefined
  refused(request: AuthorizedRequest, caller: Caller): void
  /** The session token: errors of AWS quote the signed headers. */
  placed(request: AuthorizedRequest): readonly string[]
}

/**
 * Compiles `backendAuth.aws`. `node` is the configuration object whose source determines the egress policy of
 * requests for keys. Throws for unreadable profiles and a missing region.
 */
export function compileAwsAuth(config: AwsAuthConfig, node: object, context: CompileContext): AwsAuth {
  const { serviceName: service = defaultService } = config
  const { credentialsOf, refused, region } = compileIdentity(config, node, context)
  const signers = new Map<string, Signer>()
  const dateOf = createDate(() => context.clock.now())

  function signerOf(origin: string): Signer {
    const known = signers.get(origin)
    if (known !== undefined) return known
    const name = config.region ?? regionIn(origin) ?? region
    if (name === undefined)
      throw unavailable('aws: no region: set backendAuth.aws.region or the environment variable AWS_REGION')
    const created = { host: hostOf(origin), sign: createSigner({ region: name, service }) }
    if (signers.size < maxOrigins) signers.set(origin, created)
    return created
  }

  function signNow(request: AuthorizedRequest, bodyHash: string, credentials: AwsCredentials): void {
    const { headers, path, origin = '', method = '' } = request
    const date = dateOf()
    removeSignature(headers)
    headers['x-amz-date'] = date
    if (credentials.sessionToken !== undefined) headers['x-amz-security-token'] = credentials.sessionToken
    if (service === 's3') headers['x-amz-content-sha256'] = bodyHash
    const { host, sign } = signerOf(origin)
    const mark = path.indexOf('?')
    const input = {
      method,
      path: mark === -1 ? path : path.slice(0, mark),
      query: mark === -1 ? '' : path.slice(mark),
      headers: signedHeaders(headers, host),
      bodyHash,
    }
    headers['authorization'] = sign(input, credentials, date)
  }

  return {
    source: 'gateway',
    refused: (_, caller) => refused(caller),
    placed({ headers }) {
      const token = firstHeader(headers, 'x-amz-security-token')
      return token === undefined ? [] : [token]
    },
    apply(request, caller) {
      if (request.method === undefined)
        throw unavailable('aws: only HTTP requests can be signed, not calls of gRPC services')
      const hashing = hashBody(request, service)
      const credentials = credentialsOf(caller)
      if (typeof hashing === 'string' && !(credentials instanceof Promise)) {
        signNow(request, hashing, credentials)
        return undefined
      }
      return Promise.all([hashing, credentials]).then(([bodyHash, keys]) => signNow(request, bodyHash, keys))
    },
  }
}

/** Origins whose signers are stored. */
const maxOrigins = 64

/** Signer of the requests to an origin, and the `host` of these requests. */
type Signer = { readonly host: string; readonly sign: Sign }

/** Region in the host of an AWS endpoint: `bedrock-runtime.us-east-1.amazonaws.com`. */
function regionIn(origin: string): string | undefined {
  return /\.([a-z]{2,4}(?:-[a-z]+)+-\d)\.(?:[a-z0-9.-]+\.)?(?:amazonaws\.com|api\.aws|on\.aws)(?:\.cn)?(?::\d+)?$/.exec(
    origin,
  )?.[1]
}

/**
 * Hash of the body. Streams are read completely; S3 alone accepts a signature without its body, on
 * connections with TLS.
 */
function hashBody(request: AuthorizedRequest, service: string): string | Promise<string> {
  const { body, origin = '' } = request
  if (typeof body === 'string' || !isSource(body)) return bodyHashOf(body)
  if (service === 's3' && origin.startsWith('https:')) return 'UNSIGNED-PAYLOAD'
  return readAll(body, maxSignedBytes, 'request_too_large').then((bytes) => {
    request.body = bytes
    delete request.headers['content-length']
    return bodyHashOf(bytes)
  })
}

/** Headers of signatures of clients, which the service would read together with the own one. */
function removeSignature(headers: Headers): void {
  delete headers['x-amz-security-token']
  delete headers['x-amz-content-sha256']
}

/** Headers that no part of the connection changes after the signature. */
function signedHeaders(headers: Headers, host: string): [name: string, value: string][] {
  const signed: [string, string][] = []
  if (headers['host'] === undefined) signed.push(['host', host])
  for (const name in headers) {
    if (name !== 'host' && name !== 'content-type' && !name.startsWith('x-amz')) continue
    const value = headers[name]
    if (value !== undefined) signed.push([name, typeof value === 'string' ? value : value.join(',')])
  }
  return signed.sort(([one], [other]) => (one < other ? -1 : 1))
}

/** The `host` of requests to an origin: the default port is absent. */
function hostOf(origin: string): string {
  const [scheme = '', host = ''] = origin.split('://')
  return host.replace(scheme === 'https' ? /:443$/ : /:80$/, '')
}

/** The date of the current second. */
function createDate(now: () => number): () => string {
  let second = Number.NaN
  let date = ''
  return () => {
    const current = Math.floor(now() / 1_000)
    if (current !== second) {
      second = current
      date = signatureDate(current * 1_000)
    }
    return date
  }
}
