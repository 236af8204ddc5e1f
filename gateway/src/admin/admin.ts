import { firstHeader } from '../net/http/headers.ts'
import type { IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { Backend } from '../pipeline/policy.ts'
import type { ApiRequest } from '../resources/api/api.ts'

/** Answers a request for the admin API; whoever asks it has made sure that the client may. */
export type ApiHandler = (request: ApiRequest) => Promise<Reply>

export type AdminOptions = {
  /** The port the admin address listens on, for checking `Host`. */
  port(): number
  api: ApiHandler
}

/**
 * The admin address. It has no authentication by specification, so it defends itself against what a browser on the
 * same machine can be tricked into: DNS rebinding (`Host`) and cross-site requests (`Origin`).
 */
export function createAdmin({
  port,
  api,
}: AdminOptions): (request: IncomingRequest) => Reply | Promise<Reply> {
  return (request) => {
    const { method, target, headers, body, connection } = request
    return (
      refuseCrossSite(request, port()) ?? api({ method, target, headers, body, address: connection.address })
    )
  }
}

/** The same on gateways, behind the policies of `ui`, which know who asks. */
export function createUi(api: ApiHandler): Backend {
  return ({ facts: { request, source, jwt, apiKey }, body }) => {
    const { method, path, query, headers } = request
    const subject = jwt?.['sub'] ?? apiKey?.['name'] ?? apiKey?.['id']
    const principal = typeof subject === 'string' ? subject : undefined
    return api({ method, target: path + query, headers, body, address: source.address, principal })
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

/** Errors are bare JSON strings, as the config resource API answers them. */
function json(status: number, value: unknown, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  }
}
