import { type CelIssue, compileCel } from '../../cel/cel.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'

export type CelResult =
  | { readonly kind: 'value'; readonly value: JsonValue; readonly type: string }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'issue'; readonly issue: CelIssue }

/** Maximum size of a result in characters of JSON. */
const maxResultLength = 256 * 1024
const maxResultDepth = 100

/**
 * Evaluates an expression over facts. Length, steps and work of the expression are limited as for requests,
 * the size of the result too.
 */
export function evaluateCel(
  source: string,
  variables: ReadonlySet<string>,
  { facts, clock }: { readonly facts: JsonObject; readonly clock: Clock },
): CelResult {
  const compiled = compileCel(source, variables)
  if (compiled.kind === 'issue') return { kind: 'issue', issue: compiled }
  try {
    const value = compiled.program.evaluate(withBody(facts, clock))
    const json = plainJson(value, 0)
    if (JSON.stringify(json).length > maxResultLength) return failed('the result is larger than 256 KiB')
    return { kind: 'value', value: json, type: typeName(value) }
  } catch (error) {
    if (error instanceof CelEvaluationError) return failed(error.message)
    if (error instanceof RangeError) return failed('values are nested too deeply or too large')
    throw error
  }
}

function failed(message: string): CelResult {
  return { kind: 'failed', message }
}

/** Facts as the request path has them: the body as bytes, the clock for `now`. */
function withBody(facts: JsonObject, clock: Clock): object {
  const { request } = facts
  if (!isJsonObject(request)) return { ...facts, clock }
  const { body, ...rest } = request
  const bytes =
    body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return { ...facts, request: { arrivedAt: clock.now(), ...rest }, body: bytes, clock }
}

/** JSON of a result: large integers and bytes as text. */
function plainJson(value: unknown, depth: number): JsonValue {
  if (depth > maxResultDepth) throw new RangeError('too deep')
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
    case 'object': {
      if (value === null) return null
      if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
      if (value instanceof Date) return value.toISOString()
      if (Array.isArray(value)) return value.map((item) => plainJson(item, depth + 1))
      const entries: Iterable<[unknown, unknown]> = value instanceof Map ? value : Object.entries(value)
      return Object.fromEntries([...entries].map(([key, item]) => [String(key), plainJson(item, depth + 1)]))
    }
    default:
      return null
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  if (value instanceof Uint8Array) return 'bytes'
  switch (typeof value) {
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int'
    case 'number':
      return Number.isInteger(value) ? 'int' : 'double'
    case 'object':
      return 'map'
    default:
      return typeof value
  }
}
