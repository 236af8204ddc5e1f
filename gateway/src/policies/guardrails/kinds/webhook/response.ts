import { isUtf8 } from 'node:buffer'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { foldName } from '../../../../lib/json/names.ts'
import { readJsonObject } from '../../../../lib/json/text.ts'
import { CheckFailure, type Phase, type Verdict } from '../../guard.ts'

export type ResponseReader = (bytes: Buffer) => Verdict

/** Maximum size of a cached response. */
const maxKnownBytes = 1024

/**
 * Creates a reader of responses of one phase that caches the last allow, because most responses are equal.
 */
export function createResponseReader(phase: Phase): ResponseReader {
  let known: { readonly bytes: Buffer; readonly verdict: Verdict } | undefined
  return (bytes) => {
    if (known?.bytes.equals(bytes)) return known.verdict
    const verdict = readResponse(bytes, phase)
    // Copied, because the bytes retain a larger underlying buffer.
    if (verdict.kind === 'allow' && bytes.byteLength <= maxKnownBytes)
      known = { bytes: Buffer.from(bytes), verdict }
    return verdict
  }
}

/**
 * Parses the response of a webhook: `{"action": …}`, whose shape determines its kind. Any other response
 * fails the check, because the webhook may have rejected the content in another protocol. Unknown members
 * next to a reason are ignored unless their name suggests a decision. Throws `CheckFailure`.
 */
function readResponse(bytes: Buffer, phase: Phase): Verdict {
  if (!isUtf8(bytes)) throw malformed('not UTF-8')
  const json = readJsonObject(bytes.toString())
  if (json.kind === 'invalid') throw malformed(json.message)
  if (json.kind === 'duplicate') throw malformed('a key occurs twice')
  const { action } = json.value
  if (!isJsonObject(action)) throw malformed('no action')
  const reason = reasonOf(action)
  if (Object.hasOwn(action, 'body')) return readDecision(action, phase, reason)
  const others = Object.keys(action).filter((name) => name !== 'reason')
  if (others.length > 0 && (reason === undefined || others.some(mayDecide))) {
    throw malformed('an action of no known shape')
  }
  return { kind: 'allow', reason }
}

/** Name fragments of decisions in other webhook protocols: `blocked`, `status`, `type`. */
const decisions = [
  ...[
    'accept',
    'action',
    'allow',
    'approv',
    'banned',
    'block',
    'bod',
    'choice',
    'code',
    'content',
    'decision',
    'denial',
  ],
  ...[
    'denied',
    'deny',
    'drop',
    'error',
    'fail',
    'flag',
    'forbid',
    'harm',
    'mask',
    'message',
    'modif',
    'outcome',
    'pass',
  ],
  ...[
    'permit',
    'prohibit',
    'redact',
    'refus',
    'reject',
    'replac',
    'response',
    'result',
    'safe',
    'status',
    'stop',
    'success',
  ],
  ...['text', 'type', 'valid', 'verdict', 'violat'],
].map(foldName)

/** Whether a member name of an allow suggests another decision; others, such as `score`, are ignored. */
function mayDecide(name: string): boolean {
  const folded = foldName(name)
  return folded === 'OK' || decisions.some((part) => folded.includes(part))
}

function readDecision(action: JsonObject, phase: Phase, reason: string | undefined): Verdict {
  const { body, status_code: status } = action
  if (isJsonObject(body)) {
    if (status !== undefined && status !== null) throw malformed('new content together with a status')
    return { kind: 'modify', contents: readContents(body, phase), reason }
  }
  if (typeof body !== 'string') throw malformed('a body that is neither text nor content')
  if (!isStatus(status)) throw malformed('a rejection without a status between 200 and 599')
  return { kind: 'reject', rejection: { status, body, headers: headersFor(body) }, reason }
}

function reasonOf({ reason }: JsonObject): string | undefined {
  if (reason === undefined || reason === null) return undefined
  if (typeof reason !== 'string') throw malformed('a reason that is no text')
  return reason
}

/** Whether the value is a final HTTP status. */
function isStatus(status: JsonValue | undefined): status is number {
  return typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599
}

function readContents(body: JsonObject, phase: Phase): string[] {
  const [own, other] =
    phase === 'request' ? (['messages', 'choices'] as const) : (['choices', 'messages'] as const)
  const list = body[own]
  if (Object.hasOwn(body, other) || !Array.isArray(list)) throw malformed(`no ${own}, or others as well`)
  return list.map((item) => readContent(phase === 'request' ? item : messageOf(item)))
}

function messageOf(choice: JsonValue): JsonValue | undefined {
  return isJsonObject(choice) ? choice['message'] : undefined
}

/** Returns the content of a message, which must have exactly role and content. */
function readContent(message: JsonValue | undefined): string {
  if (!isJsonObject(message)) throw malformed('content that is no message')
  const { role, content } = message
  if (typeof role !== 'string' || typeof content !== 'string' || Object.keys(message).length !== 2) {
    throw malformed('a message of other members than role and content, both texts')
  }
  return content
}

/** Content type of a rejection: JSON for LLM clients if the body is JSON, otherwise plain text. */
function headersFor(body: string): Record<string, string> {
  const isJson = body.startsWith('{') && readJsonObject(body).kind === 'object'
  return { 'content-type': isJson ? 'application/json' : 'text/plain; charset=utf-8' }
}

function malformed(problem: string): CheckFailure {
  return new CheckFailure(`invalid webhook response: ${problem}`)
}
