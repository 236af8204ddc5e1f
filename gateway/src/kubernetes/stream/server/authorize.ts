import type { IncomingHttpHeaders } from 'node:http2'
import type { TokenVerdict, VerifyToken } from './verify-token.ts'

export type AuthorizationOptions = {
  readonly verify: VerifyToken
  serviceAccountOf(gateway: string): string
}

/** A request of a proxy of `gateway`. */
export type AuthorizedRequest = {
  readonly kind: 'authorized'
  readonly path: string
  /** `<namespace>/<name>`. */
  readonly gateway: string
  /** Name of the Pod, as the proxy states it. */
  readonly proxy: string
  /** Identifies the process of the proxy. */
  readonly id: string
  readonly resume: string | undefined
  /** Expiry of the token in milliseconds since the Unix epoch. */
  readonly expiresAt: number
  /** Verifies the token again. */
  verifyAgain(): Promise<TokenVerdict>
}

export type RefusedRequest = {
  readonly kind: 'refused'
  readonly status: number
  readonly message: string
  /** Undefined if the request names none. */
  readonly gateway?: string
}

/**
 * Creates the check of requests: a proxy authenticates with a service account token and reads the
 * configuration of its own Gateway only.
 */
export function createAuthorization({
  verify,
  serviceAccountOf,
}: AuthorizationOptions): (headers: IncomingHttpHeaders) => Promise<AuthorizedRequest | RefusedRequest> {
  return async ({ ':path': target = '/', authorization }) => {
    const query = readQuery(target)
    if (query === undefined) return refused(400, 'the parameters gateway, proxy and id are required')
    const { gateway } = query
    const token = bearerToken(authorization)
    if (token === undefined) return refused(401, 'a bearer token is required', gateway)
    const verdict = await verify(token)
    if (verdict.kind === 'refused') return refused(401, verdict.reason, gateway)
    if (verdict.kind === 'unavailable') return refused(503, verdict.reason, gateway)
    const { namespace, serviceAccount, expiresAt } = verdict
    const isOwn = gateway.startsWith(`${namespace}/`) && serviceAccount === serviceAccountOf(gateway)
    if (!isOwn) {
      const message = `the service account ${namespace}/${serviceAccount} is not that of the Gateway`
      return refused(403, message, gateway)
    }
    return { kind: 'authorized', ...query, expiresAt, verifyAgain: () => verify(token) }
  }
}

const namePattern = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const gatewayPattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const idPattern = /^[\w-]{16,64}$/

function readQuery(target: string) {
  if (!URL.canParse(target, origin)) return undefined
  const { pathname: path, searchParams } = new URL(target, origin)
  const gateway = searchParams.get('gateway') ?? ''
  const proxy = searchParams.get('proxy') ?? ''
  const id = searchParams.get('id') ?? ''
  const resume = searchParams.get('resume') ?? undefined
  if (!gatewayPattern.test(gateway) || !namePattern.test(proxy) || !idPattern.test(id)) return undefined
  return { path, gateway, proxy, id, resume }
}

/** Of relative references; not part of the result. */
const origin = 'https://controller'

function bearerToken(header = ''): string | undefined {
  return /^bearer +(\S+)$/i.exec(header)?.[1]
}

function refused(status: number, message: string, gateway?: string): RefusedRequest {
  return { kind: 'refused', status, message, ...(gateway !== undefined && { gateway }) }
}
