import type { ConfigStatus } from '../config/running.ts'
import { parseRequestTarget } from '../lib/request-target.ts'
import { firstHeader } from '../net/headers.ts'
import type { IncomingRequest } from '../net/http-server.ts'
import type { Reply } from '../net/send.ts'
import type { Backend } from '../pipeline/policy.ts'

export type AdminOptions = {
  /** The port the admin address listens on, for checking `Host`. */
  port(): number
  status(): ConfigStatus
  /** JSON Schema of the config file. */
  schema: object
  version: string
}

/**
 * The admin address. It has no authentication by specification, so it defends itself against what a browser on the
 * same machine can be tricked into: DNS rebinding (`Host`) and cross-site requests (`Origin`).
 */
export function createAdmin(options: AdminOptions): (request: IncomingRequest) => Reply {
  return (request) => {
    const refusal = refuseForeign(request, options.port())
    if (refusal) return refusal
    const target = parseRequestTarget(request.target)
    return answer(request.method, target?.path ?? request.target, options)
  }
}

/** The same on gateways, behind the policies of `ui`, which know who asks. */
export function createUi(options: AdminOptions): Backend {
  return ({ facts: { request } }) => answer(request.method, request.path, options)
}

function answer(method: string, path: string, options: AdminOptions): Reply {
  const body = resources[path]
  if (!body) return json(404, `no such admin resource: ${path}`)
  if (method !== 'GET' && method !== 'HEAD') {
    return json(405, `method ${method} is not allowed here`, { allow: 'GET, HEAD' })
  }
  return json(200, body(options))
}

const resources: Record<string, ((options: AdminOptions) => unknown) | undefined> = {
  __proto__: null as never,
  '/api/config/status': ({ status, version }) => ({ version, ...status() }),
  '/api/config/schema': ({ schema }) => schema,
}

function refuseForeign(request: IncomingRequest, port: number): Reply | undefined {
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
