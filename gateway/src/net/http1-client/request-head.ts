import { isToken } from '../../lib/http-token.ts'
import { isSource } from '../http/body.ts'
import type { OutgoingRequest } from '../http-client/send.ts'

/** A checked and serialized request. */
export type PreparedRequest = {
  readonly kind: 'prepared'
  /** Request line and fields. Before a streaming body, its framing and the empty line are missing. */
  readonly head: string
  /** A buffered body that is not empty. */
  readonly bytes: Uint8Array | undefined
  /** Declared length of a streaming body, if any. */
  readonly declaredLength: number | undefined
  /** The connection may serve another request afterwards. */
  readonly persistent: boolean
}

export type UnsendableRequest = { readonly kind: 'unsendable'; readonly reason: string }

/** Prepares a request to an origin with this `host`. */
export type RequestWriter = (request: OutgoingRequest, host: string) => PreparedRequest | UnsendableRequest

/** Methods with a defined meaning of a body; a server may ignore that of others and read it as a request. */
const methodsWithBody: ReadonlySet<string> = new Set([
  'POST',
  'PUT',
  'PATCH',
  'QUERY',
  'PROPFIND',
  'PROPPATCH',
])

/** Fields that only this client writes. */
const ownFields: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

type FieldRole = 'plain' | 'host' | 'length' | 'refused'

/** Limit of cached names; clients may send any name. */
const maxCachedNames = 1_000

/** Characters outside of a request target and of a field value (RFC 9110 section 5.5). */
const invalidInTarget = /[^\u0021-\u007e\u0080-\u00ff]/
const invalidInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/

const invalidLength = /^(?!\d{1,15}$)/

/** Whether the method has a body by definition, so that an empty one has a length (RFC 9110 section 8.6). */
export function expectsBody(method: string): boolean {
  return methodsWithBody.has(method)
}

/**
 * Creates the writer of request heads. Method, path, names and values are checked: none can end a line, and
 * no character is truncated to another byte.
 */
export function createRequestWriter(): RequestWriter {
  const roles = new Map<string, FieldRole>()

  function roleOf(name: string): FieldRole {
    const known = roles.get(name)
    if (known !== undefined) return known
    const role = decideRole(name)
    if (roles.size < maxCachedNames) roles.set(name, role)
    return role
  }

  return (request, originHost) => {
    const { method, path, headers, upgrade } = request
    if (!isMethod(method)) return unsendable('invalid method')
    if (path.charCodeAt(0) !== 0x2f || invalidInTarget.test(path)) return unsendable('invalid path')
    let fields = ''
    let host: string | undefined
    let declared: string | undefined
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined) continue
      const role = roleOf(name)
      if (role === 'plain') {
        const lines = typeof value === 'string' ? fieldLine(name, value) : listLines(name, value)
        if (lines === undefined) return unsendable(`invalid value of field ${name}`)
        fields += lines
        continue
      }
      if (role === 'refused' || typeof value !== 'string' || invalidInValue.test(value)) {
        return unsendable(`invalid field ${name.slice(0, 100)}`)
      }
      if (role === 'host' ? host !== undefined : declared !== undefined || invalidLength.test(value)) {
        return unsendable(`invalid field ${name}`)
      }
      if (role === 'host') host = value
      else declared = value
    }
    const connection = connectionOption(request)
    if (connection === undefined) return unsendable('invalid upgrade')
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${host ?? originHost}\r\n${connection}${fields}`
    const persistent = upgrade === undefined && connection === keepAlive
    return withBody(head, request, { declared, persistent })
  }
}

const keepAlive = 'connection: keep-alive\r\n'

function isMethod(method: string): boolean {
  switch (method) {
    case 'GET':
    case 'POST':
      return true
    case 'CONNECT':
      return false
    default:
      return method.length <= 64 && isToken(method)
  }
}

function decideRole(name: string): FieldRole {
  const lower = name.toLowerCase()
  if (lower === 'host') return 'host'
  if (lower === 'content-length') return 'length'
  return ownFields.has(lower) || !isToken(name) ? 'refused' : 'plain'
}

function fieldLine(name: string, value: string): string | undefined {
  return invalidInValue.test(value) ? undefined : `${name}: ${value}\r\n`
}

function listLines(name: string, values: readonly string[]): string | undefined {
  let lines = ''
  for (const value of values) {
    if (invalidInValue.test(value)) return undefined
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/**
 * Connection fields; undefined for an invalid protocol. A connection is closed after HEAD, whose responses
 * some servers send with a body, and after a body that the method does not expect.
 */
function connectionOption({ method, body, upgrade }: OutgoingRequest): string | undefined {
  if (upgrade !== undefined) {
    return invalidInValue.test(upgrade) ? undefined : `connection: upgrade\r\nupgrade: ${upgrade}\r\n`
  }
  if (method === 'HEAD' || (isBody(body) && !methodsWithBody.has(method))) return 'connection: close\r\n'
  return keepAlive
}

function isBody(body: OutgoingRequest['body']): boolean {
  if (body === undefined) return false
  return typeof body === 'string' ? body !== '' : isSource(body) || body.byteLength > 0
}

function withBody(
  head: string,
  { method, body }: OutgoingRequest,
  { declared, persistent }: { declared: string | undefined; persistent: boolean },
): PreparedRequest | UnsendableRequest {
  const kind = 'prepared'
  const declaredLength = declared === undefined ? undefined : Number(declared)
  if (typeof body === 'object' && isSource(body)) {
    return { kind, head, bytes: undefined, declaredLength, persistent }
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes === undefined || bytes.byteLength === 0) {
    const end = methodsWithBody.has(method) ? 'content-length: 0\r\n\r\n' : '\r\n'
    return { kind, head: head + end, bytes: undefined, declaredLength: undefined, persistent }
  }
  const length = bytes.byteLength
  if (declaredLength !== undefined && declaredLength !== length) return unsendable('content-length mismatch')
  return {
    kind,
    head: `${head}content-length: ${length}\r\n\r\n`,
    bytes,
    declaredLength: undefined,
    persistent,
  }
}

function unsendable(reason: string): UnsendableRequest {
  return { kind: 'unsendable', reason }
}
