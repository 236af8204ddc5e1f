import { firstHeader } from '../net/http/headers.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import { sentPath } from '../pipeline/exchange.ts'
import type { Backend } from '../pipeline/policy.ts'
import type { Permits } from '../policies/registry/permits.ts'
import type { ApiRequest } from '../resources/api/request.ts'
import { viewerOf, whoamiPath } from './whoami/viewer.ts'

/** Handles a request of the admin API, after the caller has authorized it. */
export type ApiHandler = (request: ApiRequest) => Promise<Reply>

export type AdminOptions = {
  /** Port of the admin address, for the check of `Host`. */
  port(): number
  api: ApiHandler
}

/**
 * Creates the handler of the admin address. It has no authentication by specification, so it protects against
 * attacks through a browser on the same machine: DNS rebinding (`Host`) and cross-site requests (`Origin`).
 */
export function createAdmin({
  port,
  api,
}: AdminOptions): (request: IncomingRequest) => Reply | Promise<Reply> {
  return (request) => {
    const { method, target, headers, body, cancellation, connection } = request
    const { address } = connection
    return refuseCrossSite(request, port()) ?? api({ method, target, headers, body, cancellation, address })
  }
}

/**
 * Creates the admin backend of gateways. The policies of `ui` authenticate and authorize its requests;
 * `permits` evaluates their rules for further ones.
 */
export function createUi(api: ApiHandler): (permits: Permits) => Backend {
  return (permits) => async (exchange) => {
    const { facts, body, cancellation } = exchange
    const { request, source, jwt, basicAuth, apiKey } = facts
    const { method, query, headers, path } = request
    const subject = jwt?.['sub'] ?? basicAuth?.username ?? apiKey?.['name'] ?? apiKey?.['id']
    return api({
      method,
      target: sentPath(request) + query,
      headers,
      body,
      cancellation,
      address: source.address,
      principal: typeof subject === 'string' ? subject : undefined,
      viewer: path === whoamiPath ? await viewerOf(exchange, permits) : undefined,
    })
  }
}

function refuseCrossSite(request: IncomingRequest, port: number): Reply | undefined {
  const host = firstHeader(request.headers, 'host') ?? ''
  if (!isLoopbackHost(host, port)) {
    return json(403, `Host must be a loopback name or address with port ${port}`)
  }
  const origin = firstHeader(request.headers, 'origin')
  if (origin !== undefined && origin !== `http://${host}`) {
    return json(403, 'Origin must be the admin address itself')
  }
  return undefined
}

function isLoopbackHost(host: string, port: number): boolean {
  const suffix = `:${port}`
  if (!host.endsWith(suffix)) return false
  const name = host.slice(0, -suffix.length).toLowerCase()
  return name === 'localhost' || name === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(name)
}

/** Creates a JSON reply. Errors are bare JSON strings, as in the config resource API. */
function json(status: number, value: unknown, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  }
}
