import type { CelProgram } from '../../../../cel/cel.ts'
import { compileCheckedCel } from '../../../../cel/checked.ts'
import { CelEvaluationError } from '../../../../cel/failure.ts'
import { compilePattern } from '../../../../lib/pattern.ts'
import { type Headers, isHopByHop } from '../../../../net/http/headers.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import type { CheckInput, Phase } from '../../guard.ts'

/** Request line and headers of a webhook call. */
export type CallHead = { method: string; path: string; readonly headers: Headers }

export type HeadConfig = {
  headers?: Readonly<Record<string, string>> | undefined
  forwardHeaderMatches?: readonly HeaderMatch[] | undefined
}

type HeaderMatch = {
  name: string
  value: { exact?: string | undefined; regex?: string | undefined }
}

/**
 * Variables of header expressions. `llmRequest` has a value in the request phase only, and the last members
 * of `llm` in the response phase only; a header whose expression cannot be evaluated is omitted
 * (specification, "Guardrail webhook calls").
 */
export const headerVariables: ReadonlySet<string> = new Set([
  ...['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey', 'llm', 'llmRequest'],
  ...['llm.configuredModel', 'llm.provider', 'llm.responseModel'],
])

/** Returns the header name as sent, or a pseudo-header. */
export function headerTarget(name: string): string {
  const lower = name.toLowerCase()
  return lower === 'host' ? ':authority' : lower
}

/** Whether the gateway sets the header for each call. */
export function isDerived(name: string): boolean {
  return isHopByHop(name) || name === 'content-length' || name === 'expect'
}

type Expression = { target: string; program: CelProgram }

/** Compiles the head of calls, without the credential and header edits of a named backend. */
export function compileHead(config: HeadConfig, phase: Phase): (question: CheckInput) => CallHead {
  const expressions = Object.entries(config.headers ?? {}).map(
    ([name, source]): Expression => ({
      target: headerTarget(name),
      program: compileCheckedCel(source, headerVariables),
    }),
  )
  const namesBody = expressions.some(({ program }) => program.roots.has('llmRequest'))
  const forwards = (config.forwardHeaderMatches ?? []).map(compileMatch)
  const path = phase === 'request' ? '/request' : '/response'
  return (question) => {
    const head: CallHead = { method: 'POST', path, headers: { 'content-type': 'application/json' } }
    for (const forward of forwards) forward(question, head.headers)
    const { facts } = question.exchange
    const visible = phase === 'request' || !namesBody ? facts : { ...facts, llmRequest: undefined }
    for (const expression of expressions) apply(expression, visible, head)
    return head
  }
}

/** Forwards headers of the client in the request phase, of the model's response in the response phase. */
function compileMatch({ name, value }: HeaderMatch): (question: CheckInput, headers: Headers) => void {
  const field = name.toLowerCase()
  const matches = compileValue(value)
  return ({ exchange, replyHeaders }, headers) => {
    const own = exchange.facts.request.headers
    // The trace context is that of the client in both phases.
    const found = replyHeaders === undefined || field === 'traceparent' ? own[field] : replyHeaders[field]
    if (found === undefined) return
    const kept = typeof found === 'string' ? [found].filter(matches) : found.filter(matches)
    const [first] = kept
    if (first !== undefined) headers[field] = kept.length === 1 ? first : kept
  }
}

function compileValue({ exact, regex }: HeaderMatch['value']): (value: string) => boolean {
  if (regex === undefined) return (value) => value === exact
  const pattern = compilePattern(`^(?:${regex})$`)
  if (!pattern.ok) throw new Error(pattern.message)
  return (value) => pattern.test(value)
}

/** Sets a header. A failed evaluation removes it, including a forwarded header of the same name. */
function apply({ target, program }: Expression, facts: Facts, head: CallHead): void {
  const text = evaluate(program, facts)
  switch (target) {
    case ':path':
      if (text !== undefined && /^\/[\x21-\x7e]*$/.test(text)) head.path = text
      return
    case ':method':
      if (text !== undefined && methods.has(text)) head.method = text
      return
    case ':authority':
      if (text !== undefined && /^[\w.:[\]-]+$/.test(text)) head.headers['host'] = text
      return
  }
  const value = text === undefined ? undefined : fieldValue(text)
  if (value === undefined) delete head.headers[target]
  else head.headers[target] = value
}

/** Methods with a request body and a response. */
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

function evaluate(program: CelProgram, facts: Facts): string | undefined {
  try {
    const value = program.evaluate(facts)
    switch (typeof value) {
      case 'string':
        return value
      case 'number':
      case 'bigint':
      case 'boolean':
        return String(value)
      default:
        return value instanceof Uint8Array ? Buffer.from(value).toString() : undefined
    }
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

/** Encodes a field value (RFC 9110 section 5.5): no control characters, non-ASCII as UTF-8 bytes. */
function fieldValue(text: string): string | undefined {
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) return undefined
  const trimmed = text.trim()
  return /^[\t\x20-\x7e]*$/.test(trimmed) ? trimmed : Buffer.from(trimmed).toString('latin1')
}
